//! A gateway process between two hosts, and the commands to it.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_linux::host::Host;
use apportion_linux::netlink::Netlink;
use apportion_testing::child::{self, Limited, Running};
use nix::sys::signal::Signal;
use tempfile::TempDir;

pub const PLAIN: &str = "inside = \"near\"\noutside = \"far\"\nmetrics = \"127.0.0.1:9617\"\n\
    up.rate = \"10Mbit\"\ndown.rate = \"10Mbit\"\n";

/// A folder for files and sockets, and two hosts.
pub struct Place {
    pub folder: TempDir,
    pub hosts: [Host; 2],
}

pub fn place() -> Place {
    place_of(|last| vec![[10, 0, 0, last].into()])
}

/// Like [`place`], with these addresses of the first and the second host.
pub fn place_of(addresses: impl Fn(u8) -> Vec<IpAddr>) -> Place {
    super::processes::enter();
    let mut netlink = Netlink::open().unwrap();
    let loopback = netlink.index_of("lo").unwrap();
    netlink.set_up(loopback).unwrap();
    let host =
        |name, last| Host::create(name, &addresses(last), apportion_core::units::Bytes::new(1500)).unwrap();
    let hosts = [host("near", 1), host("far", 2)];
    Place { folder: tempfile::tempdir().unwrap(), hosts }
}

impl Place {
    pub fn write(&self, text: &str) -> PathBuf {
        let path = self.folder.path().join("x.toml");
        fs::write(&path, text).unwrap();
        path
    }

    /// Command of the program that APPORTION names, for example a release, or of this build.
    pub fn command(&self, arguments: &[&str], path: &Path) -> Command {
        let own = || env!("CARGO_BIN_EXE_apportion").into();
        let mut command = Command::new(std::env::var_os("APPORTION").unwrap_or_else(own));
        command.arg("gateway").args(arguments).arg(path).env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    pub fn ask(&self, arguments: &[&str], path: &Path) -> (i32, String, String) {
        let Output { status, stdout, stderr } = child::output(&mut self.command(arguments, path));
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    /// Starts a gateway and waits for its report; later output is not read.
    pub fn start_unread(&self, path: &Path) -> Silent {
        self.start_with(&["--log-format", "json"], path)
    }

    fn start_with(&self, arguments: &[&str], path: &Path) -> Silent {
        Self::spawn(self.command(arguments, path))
    }

    fn spawn(mut command: Command) -> Silent {
        let mut child = Running::start(command.stderr(Stdio::piped()));
        let mut log = BufReader::new(child.stderr());
        let mut said = String::new();
        while !said.contains("the gateway is running") {
            assert!(log.read_line(&mut said).unwrap() > 0, "{said}");
        }
        Silent { child, log }
    }

    /// Like [`Self::start_unread`]; the output is read at the end.
    pub fn start(&self, path: &Path) -> Gateway {
        Self::listen(self.start_unread(path))
    }

    /// Like [`Self::start`], with these options.
    pub fn start_by(&self, arguments: &[&str], path: &Path) -> Gateway {
        Self::listen(self.start_with(arguments, path))
    }

    /// Like [`Self::start`], reporting to the service manager at this socket, whose watchdog has this limit.
    pub fn start_service(&self, path: &Path, socket: &Path, limit: Duration) -> Gateway {
        let mut command = self.command(&[], path);
        command.env("NOTIFY_SOCKET", socket).env("WATCHDOG_USEC", limit.as_micros().to_string());
        Self::listen(Self::spawn(command))
    }

    fn listen(Silent { child, mut log }: Silent) -> Gateway {
        let log = std::thread::spawn(move || {
            let mut said = String::new();
            log.read_to_string(&mut said).unwrap();
            said
        });
        Gateway { child, log }
    }
}

pub struct Silent {
    pub child: Running,
    pub log: BufReader<Limited<ChildStderr>>,
}

pub struct Gateway {
    pub child: Running,
    /// Output until the gateway ends.
    log: JoinHandle<String>,
}

impl Gateway {
    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Stops the gateway. Returns its output.
    pub fn stop(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let status = self.child.wait();
        let said = self.log.join().unwrap();
        assert!(status.success(), "{said}");
        said
    }
}

/// Waits until `condition` holds, for ten seconds at most.
pub fn eventually(condition: impl Fn() -> bool) -> bool {
    let clock = Clock::start();
    while clock.now() < Time::from_secs(10) {
        if condition() {
            return true;
        }
        pause(Span::from_millis(10));
    }
    false
}

pub fn get(path: &str) -> String {
    ask(9_617, path).unwrap()
}

/// Asks this port. Returns the answer.
pub fn ask(port: u16, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
