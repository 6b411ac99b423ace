//! A gateway between two network interfaces, and requests to a running one.
//!
//! `docs/gateway.md` describes configuration files. A gateway needs the capabilities `CAP_NET_ADMIN` and
//! `CAP_NET_RAW`; it logs through the crate `tracing`, to the subscriber that the caller sets.
//!
//! ```no_run
//! let gateway = apportion::gateway::Gateway::new("scenarios/gateway/home.toml");
//! println!("{}", gateway.load()?.canonical());
//! gateway.run()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use apportion_core::system::Catalog;
use apportion_live::gateway::control::{request, title};
use apportion_live::gateway::{bypass, control, interface_lock, interfaces, run as live};
use apportion_scenario::gateway::GatewayConfig;

pub use apportion_live::gateway::interfaces::Interface;
pub use apportion_live::gateway::log::Log;
pub use apportion_live::gateway::offloads::Restored;
use apportion_live::gateway::offloads::restore;

/// The folder of the control sockets of gateways that the system starts.
const SYSTEM_FOLDER: &str = "/run/apportion";

/// The reason why a gateway did not start or ended, or a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The configuration or the interfaces are wrong, or the running gateway refused a request: one problem
    /// per line.
    #[error("{0}")]
    Refused(String),
    /// No gateway with this title answers; starts with the problems of its file, if any.
    #[error("{0}")]
    Unreachable(String),
    /// The gateway failed to start or stopped with an error.
    #[error("{}", .0.to_string().trim_end())]
    Failed(Box<live::GatewayError>),
    /// A gateway in the kernel failed to start or stopped with an error.
    #[cfg(feature = "bpf")]
    #[error("{}", .0.to_string().trim_end())]
    FailedInKernel(Box<apportion_kernel::gateway::GatewayError>),
}

/// The error of a build without the feature for [`Backend::Kernel`].
#[cfg(not(feature = "bpf"))]
pub(crate) const NO_KERNEL: &str = "this build has no kernel backend; build it with `--features bpf` (needs clang), or use the \
                                    user-space backend";

/// The part of the system that moves the packets of a gateway, or implements the queues of a
/// [lab](crate::lab).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// This process, with every discipline. The default.
    #[default]
    UserSpace,
    /// The kernel, by HTB and tc programs, with the disciplines of `docs/kernel.md`. Requires the feature
    /// `bpf`, and also the capability `CAP_BPF`.
    Kernel,
}

/// Whether frames can pass a running gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether frames can pass.
    pub passes: bool,
    /// `frames pass`, or the reasons why they cannot, one per line.
    pub said: String,
}

/// The gateway of a configuration file.
#[derive(Clone, Debug)]
pub struct Gateway {
    config: PathBuf,
    catalog: Catalog,
    backend: Backend,
    fail_open: bool,
}

impl Gateway {
    /// Creates the gateway of the configuration file at this path, with the disciplines of this project. The
    /// file is not read yet.
    #[must_use]
    pub fn new(config: impl Into<PathBuf>) -> Self {
        Self {
            config: config.into(),
            catalog: Catalog::default(),
            backend: Backend::default(),
            fail_open: false,
        }
    }

    /// Sets the backend. Default: this process.
    #[must_use]
    pub const fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Sets the disciplines that the file can name. Default: the disciplines of this project.
    #[must_use]
    pub fn catalog(mut self, catalog: &Catalog) -> Self {
        self.catalog = catalog.clone();
        self
    }

    /// Sets whether the gateway leaves a bypass when it ends: the kernel hands the frames of each interface
    /// to the other one, undivided. Default: false. A gateway in user space that is killed leaves none; see
    /// [`bypass`](Self::bypass).
    #[must_use]
    pub const fn fail_open(mut self, fail_open: bool) -> Self {
        self.fail_open = fail_open;
        self
    }

    /// Runs the gateway until SIGINT or SIGTERM; SIGHUP reloads the file. The process must have a single
    /// thread. The control socket is in `$XDG_RUNTIME_DIR`, or in `/run/apportion`.
    ///
    /// # Errors
    /// If the gateway failed to start or stopped with an error.
    pub fn run(&self) -> Result<(), GatewayError> {
        let folder = folders().swap_remove(0);
        match self.backend {
            Backend::UserSpace => live::run(&self.config, &folder, &self.catalog, self.fail_open)
                .map_err(|error| GatewayError::Failed(Box::new(error))),
            Backend::Kernel => in_kernel::run(&self.config, &folder, &self.catalog, self.fail_open),
        }
    }

    /// Reads and checks the configuration file.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn load(&self) -> Result<GatewayConfig, GatewayError> {
        control::load(&self.config, &self.catalog)
            .map_err(|problems| GatewayError::Refused(problems.trim_end().to_owned()))
    }

    /// Checks the configuration file, the token that it names, its interfaces without changing them, and,
    /// unless a gateway with its title answers, whether its address of metrics is available. Returns the
    /// interfaces, the inside one first.
    ///
    /// # Errors
    /// All problems found.
    pub fn check(&self) -> Result<[Interface; 2], GatewayError> {
        let place = self.config.display();
        let config = self.load()?;
        let token = control::check_token(&config).err().map(|error| error.to_string());
        let found = interfaces::look(&config);
        let backend = match self.backend {
            Backend::UserSpace => Vec::new(),
            Backend::Kernel => in_kernel::check(&config)?,
        };
        let of_interfaces = found.as_ref().err().cloned().unwrap_or_default();
        // A running gateway with this title occupies the address.
        let metrics = config.metrics.filter(|_| !self.may_run());
        let metrics =
            metrics.and_then(|address| control::listen(address).err()).map(|error| error.to_string());
        let problems = [backend, of_interfaces, token.into_iter().chain(metrics).collect()].concat();
        match found {
            Ok(found) if problems.is_empty() => Ok(found),
            _ => {
                let lines: Vec<_> = problems.iter().map(|problem| format!("{place}: {problem}")).collect();
                Err(GatewayError::Refused(lines.join("\n")))
            }
        }
    }

    /// Returns the configuration in effect of the running gateway with the file's title, in canonical form.
    ///
    /// # Errors
    /// If no gateway answers.
    pub fn running(&self) -> Result<String, GatewayError> {
        self.request("GET", "/config")
    }

    /// Returns the statistics of the running gateway with the file's title, as JSON.
    ///
    /// # Errors
    /// If no gateway answers.
    pub fn stats(&self) -> Result<String, GatewayError> {
        self.request("GET", "/stats.json")
    }

    /// Lets the running gateway with the file's title reload the file. Returns the changes, one per line;
    /// empty if there are none.
    ///
    /// # Errors
    /// If no gateway answers, it runs with another file, or it refuses the new configuration.
    pub fn reload(&self) -> Result<String, GatewayError> {
        self.is_its_own()?;
        self.request("POST", "/reload")
    }

    /// Returns whether frames can pass the running gateway with the file's title; `None` if no gateway
    /// answers.
    #[must_use]
    pub fn health(&self) -> Option<Health> {
        let (status, said) = request(&folders(), &title(&self.config), "GET", "/healthz").ok()?;
        Some(Health { passes: status == 200, said })
    }

    /// Restores the offloads that the gateway with the file's title left off when it was killed. Returns the
    /// interfaces, with the reason if one could not be restored. Requires CAP_NET_ADMIN.
    ///
    /// # Errors
    /// If the gateway runs, or its state file cannot be read.
    pub fn restore(&self) -> Result<Vec<Restored>, GatewayError> {
        restore(&folders(), &title(&self.config)).map_err(|error| GatewayError::Refused(error.to_string()))
    }

    /// Turns the bypass on or off: the kernel hands the frames of each interface to the other one while no
    /// gateway runs; a gateway turns it off when it starts. Returns whether something changed. Requires
    /// CAP_NET_ADMIN.
    ///
    /// # Errors
    /// If the gateway runs, an interface does not exist, or the kernel cannot redirect frames.
    pub fn bypass(&self, on: bool) -> Result<bool, GatewayError> {
        let config = self.load()?;
        if let Some(health) = self.health() {
            let said = health.said.trim_end();
            let message = format!("the gateway `{}` is running ({said}); stop it first", config.title);
            return Err(GatewayError::Refused(message));
        }
        // A gateway with another title may hold the interfaces, or one that does not answer.
        let folder = folders().swap_remove(0);
        let _interface_locks = interface_lock::take_those_there(&interface_lock::folder(&folder), &config)
            .map_err(|error| GatewayError::Refused(error.to_string()))?;
        bypass::set(&config, on).map_err(|error| GatewayError::Refused(error.to_string()))
    }

    /// Whether a process listens at the control socket of the file's title, or this cannot be determined.
    fn may_run(&self) -> bool {
        let name = control::socket_name(&title(&self.config));
        folders().iter().any(|folder| match UnixStream::connect(folder.join(&name)) {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused),
        })
    }

    /// Sends a request to the gateway with the file's title. The file itself may be wrong or missing.
    fn request(&self, method: &str, path: &str) -> Result<String, GatewayError> {
        let answer = request(&folders(), &title(&self.config), method, path);
        let (status, body) = answer.map_err(|error| {
            let problems = control::load(&self.config, &self.catalog).err().unwrap_or_default();
            GatewayError::Unreachable(problems + &error.to_string())
        })?;
        if status == 200 { Ok(body) } else { Err(GatewayError::Refused(body.trim_end().to_owned())) }
    }

    /// Returns an error if the file is not the one that the gateway with its title reloads.
    fn is_its_own(&self) -> Result<(), GatewayError> {
        let own = self.request("GET", "/file")?;
        let own = own.trim_end();
        match (self.config.canonicalize(), Path::new(own).canonicalize()) {
            (Ok(named), Ok(read)) if named != read => Err(GatewayError::Refused(format!(
                "{}: the gateway of this title runs by {own} and reads that again; write the changes there, or give \
                 this file another `title` and start a gateway by it",
                self.config.display()
            ))),
            // The gateway reports a missing file.
            _ => Ok(()),
        }
    }
}

/// Returns the folders of control sockets: the first is for new ones.
fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    own.map(PathBuf::from).into_iter().chain([PathBuf::from(SYSTEM_FOLDER)]).collect()
}

/// The backend in the kernel, if it is part of the build.
#[cfg(feature = "bpf")]
mod in_kernel {
    use std::path::Path;

    use apportion_core::system::Catalog;
    use apportion_kernel::gateway;
    use apportion_scenario::gateway::GatewayConfig;

    use super::GatewayError;

    pub(super) fn run(
        config: &Path,
        folder: &Path,
        catalog: &Catalog,
        fail_open: bool,
    ) -> Result<(), GatewayError> {
        gateway::run(config, folder, catalog, fail_open)
            .map_err(|error| GatewayError::FailedInKernel(Box::new(error)))
    }

    /// Returns the parts of the configuration that the kernel cannot implement.
    pub(super) fn check(config: &GatewayConfig) -> Result<Vec<String>, GatewayError> {
        Ok(gateway::plan(config).err().unwrap_or_default())
    }
}

/// A build without the backend in the kernel.
#[cfg(not(feature = "bpf"))]
mod in_kernel {
    use std::path::Path;

    use apportion_core::system::Catalog;
    use apportion_scenario::gateway::GatewayConfig;

    use super::GatewayError;

    fn missing() -> GatewayError {
        GatewayError::Refused(super::NO_KERNEL.to_owned())
    }

    pub(super) fn run(_: &Path, _: &Path, _: &Catalog, _: bool) -> Result<(), GatewayError> {
        Err(missing())
    }

    pub(super) fn check(_: &GatewayConfig) -> Result<Vec<String>, GatewayError> {
        Err(missing())
    }
}
