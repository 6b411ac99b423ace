//! `apportion gateway`: a bump in the wire, and commands to one that runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, anyhow, bail};
use apportion_core::system::Catalog;
use apportion_live::gateway::control::{ask, load, title};
use apportion_live::gateway::interfaces::{self, Interface};
use apportion_live::gateway::log::Log;
use apportion_live::gateway::run::run;
use apportion_scenario::gateway::GatewayConfig;
use tracing_subscriber::filter::LevelFilter;

use crate::arguments::{Gateway, GatewayCommand, LogFormat};
use crate::output;

/// Where sockets are of gateways that the system runs.
const SYSTEM_FOLDER: &str = "/run/apportion";

pub fn gateway(arguments: &Gateway) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => {
            let path = arguments.config.as_deref().context("name a configuration file")?;
            listen_to_logs(arguments);
            let folder = folders().swap_remove(0);
            run(path, &folder, &Catalog::default())
                .map_err(|error| anyhow!("{}", error.to_string().trim_end()))?;
        }
        Some(GatewayCommand::Check { config }) => return check(config),
        Some(GatewayCommand::Show { config, running: false }) => output::print(&read(config)?.canonical())?,
        Some(GatewayCommand::Show { config, running: true }) => {
            output::print(&tell(config, "GET", "/config")?)?;
        }
        Some(GatewayCommand::Stats { config }) => output::print(&tell(config, "GET", "/stats.json")?)?,
        Some(GatewayCommand::Reload { config }) => {
            is_its_own(config)?;
            let changes = tell(config, "POST", "/reload")?;
            output::print(if changes.is_empty() { "nothing changed\n" } else { &changes })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Where control sockets are: the first is for new ones.
fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    own.map(PathBuf::from).into_iter().chain([PathBuf::from(SYSTEM_FOLDER)]).collect()
}

fn listen_to_logs(arguments: &Gateway) {
    let level: LevelFilter = arguments.log_level.into();
    let json = matches!(arguments.log_format, LogFormat::Json);
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(move || Log { json });
    match arguments.log_format {
        LogFormat::Text => log.with_target(false).with_ansi(false).init(),
        LogFormat::Json => log.json().flatten_event(true).with_target(false).init(),
    }
}

fn read(path: &Path) -> anyhow::Result<GatewayConfig> {
    load(path, &Catalog::default()).map_err(|problems| anyhow!("{}", problems.trim_end()))
}

/// Asks the gateway of the title that this file has. It may be wrong or gone: that is what one asks about.
fn tell(path: &Path, method: &str, request: &str) -> anyhow::Result<String> {
    let (status, body) = ask(&folders(), &title(path), method, request).map_err(|error| {
        match load(path, &Catalog::default()) {
            Ok(_) => anyhow!(error),
            Err(problems) => anyhow!("{problems}{error}"),
        }
    })?;
    if status != 200 {
        bail!("{}", body.trim_end());
    }
    Ok(body)
}

/// Refuses a file that is not the one which the gateway of its title reads again.
fn is_its_own(path: &Path) -> anyhow::Result<()> {
    let own = tell(path, "GET", "/file")?;
    let own = own.trim_end();
    match (path.canonicalize(), Path::new(own).canonicalize()) {
        (Ok(named), Ok(read)) if named != read => {
            bail!(
                "{}: the gateway of this title runs by {own} and reads that again; write the changes there, or give \
                 this file another `title` and start a gateway by it",
                path.display()
            )
        }
        // What is gone is for the gateway to say.
        _ => Ok(()),
    }
}

fn check(path: &Path) -> anyhow::Result<ExitCode> {
    let config = read(path)?;
    let found = interfaces::look(&config).map_err(|problems| {
        anyhow!(problems.iter().map(|it| format!("{}: {it}", path.display())).collect::<Vec<_>>().join("\n"))
    })?;
    let told: String = found.iter().zip(["inside", "outside"]).map(|(it, side)| describe(it, side)).collect();
    let mut told = format!("{}: the configuration is right\n{told}", path.display());
    if found[0].mtu != found[1].mtu {
        told += "the MTUs differ: longer packets would be lost without a word\n";
    }
    output::print(&told)?;
    Ok(ExitCode::SUCCESS)
}

fn describe(interface: &Interface, side: &str) -> String {
    let off = interface.to_turn_off();
    let off = if off.is_empty() {
        "nothing to turn off".to_owned()
    } else {
        format!("would turn off {}", off.join(", "))
    };
    let state = if interface.is_running { "up" } else { "down" };
    format!("{side} {}: {state}, MTU {}, {off}\n", interface.name, interface.mtu)
}
