//! `apportion gateway`: a gateway between two interfaces, and commands to one that runs.

use std::path::Path;

use anyhow::Context as _;
use apportion::gateway::{Backend, Gateway, Interface, Log, Restored};
use tracing_subscriber::filter::LevelFilter;

use crate::arguments::{self, GatewayCommand, LogFormat};
use crate::status::Status;
use crate::{flow_rules, output};

pub fn gateway(arguments: &arguments::Gateway) -> anyhow::Result<Status> {
    match &arguments.command {
        None => {
            let config = arguments.config.as_deref().context("name a configuration file")?;
            write_logs(arguments);
            let backend = arguments.backend.into();
            Gateway::new(config).backend(backend).fail_open(arguments.fail_open).run()?;
        }
        Some(GatewayCommand::Check { config, backend }) => {
            return check(config, (*backend).into());
        }
        Some(GatewayCommand::Show { config, running: false }) => {
            let config = Gateway::new(config).load()?;
            config.warnings().iter().for_each(|warning| output::note(&format!("warning: {warning}")));
            output::print(
                &(config.canonical()
                    + &as_comments(CHARGES, &config.charges())
                    + &as_comments(RATES, &config.plan_rates())),
            )?;
        }
        Some(GatewayCommand::Show { config, running: true }) => {
            output::print(&Gateway::new(config).running()?)?;
        }
        Some(GatewayCommand::Stats { config }) => output::print(&Gateway::new(config).stats()?)?,
        Some(GatewayCommand::Rules { config, format, device }) => {
            flow_rules::print(&Gateway::new(config), *format, device.as_deref())?;
        }
        Some(GatewayCommand::Restore { config }) => return restore(config),
        Some(GatewayCommand::Bypass { config, off }) => {
            let changed = Gateway::new(config).bypass(!off)?;
            output::print(match (off, changed) {
                (false, _) => "frames bypass the gateway\n",
                (true, true) => "frames do not bypass the gateway any more\n",
                (true, false) => "frames did not bypass the gateway\n",
            })?;
        }
        Some(GatewayCommand::Reload { config }) => {
            let changes = Gateway::new(config).reload()?;
            output::print(if changes.is_empty() { "nothing changed\n" } else { &changes })?;
        }
    }
    Ok(Status::SUCCESS)
}

/// Headings of the table of charges per packet, and of the rates that plans give each node.
const CHARGES: &str = "Bytes charged for IP packets of 40, 100 and 1500 B:";
const RATES: &str = "Assured rate of plans under load, to their maximum:";

/// Formats lines under a heading as TOML comments; empty if there are no lines.
fn as_comments(heading: &str, lines: &str) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines: String = lines.lines().map(|line| format!("# {line}\n")).collect();
    format!("\n# {heading}\n{lines}")
}

/// Restores offloads; status 1 if some could not be restored.
fn restore(config: &Path) -> anyhow::Result<Status> {
    let restored = Gateway::new(config).restore()?;
    let line = |(interface, result): &Restored| match result {
        Ok(()) => format!("{interface}: offloads are restored\n"),
        Err(error) => format!("{interface}: offloads cannot be restored: {error}\n"),
    };
    let lines: String = restored.iter().map(line).collect();
    output::print(if lines.is_empty() { "there is nothing to restore\n" } else { &lines })?;
    Ok(if restored.iter().all(|(_, result)| result.is_ok()) { Status::SUCCESS } else { Status::FAILURE })
}

fn write_logs(arguments: &arguments::Gateway) {
    let level: LevelFilter = arguments.log_level.into();
    let json = matches!(arguments.log_format, LogFormat::Json);
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(move || Log { json });
    match arguments.log_format {
        LogFormat::Text => log.with_target(false).with_ansi(false).init(),
        LogFormat::Json => log.json().flatten_event(true).with_target(false).init(),
    }
}

/// Prints a file's configuration and the state of its interfaces; status 1 if a gateway of its title runs and
/// forwards no frames.
fn check(config: &Path, backend: Backend) -> anyhow::Result<Status> {
    let gateway = Gateway::new(config).backend(backend);
    let found = gateway.check()?;
    let sides: String =
        found.iter().zip(["inside", "outside"]).map(|(it, side)| describe(it, side, backend)).collect();
    let mut text = format!("{}: the configuration is valid\n{sides}", config.display());
    if found[0].mtu != found[1].mtu {
        text += "warning: the MTUs differ: longer packets would be lost without a message\n";
    }
    for warning in gateway.load()?.warnings() {
        text += &format!("warning: {warning}\n");
    }
    let health = gateway.health();
    if let Some(health) = &health {
        text += &format!("a gateway of this title is running: {}", health.said);
    }
    output::print(&text)?;
    Ok(if health.is_none_or(|health| health.passes) { Status::SUCCESS } else { Status::FAILURE })
}

fn describe(interface: &Interface, side: &str, backend: Backend) -> String {
    let off = interface.to_turn_off();
    let off = if backend == Backend::Kernel {
        "nothing is turned off".to_owned()
    } else if off.is_empty() {
        "nothing to turn off".to_owned()
    } else {
        format!("would turn off {}", off.join(", "))
    };
    let state = if interface.is_running { "up" } else { "down" };
    format!("{side} {}: {state}, MTU {}, {off}\n", interface.name, interface.mtu)
}
