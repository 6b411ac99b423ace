//! A command that shows a page, and its browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;

use apportion_testing::child::{Limited, Running};
use nix::sys::signal::Signal;
use serde_json::Value;

/// A command with a page, ended if the test fails.
pub struct Watched {
    child: Running,
    err: BufReader<Limited<ChildStderr>>,
    address: String,
}

impl Watched {
    /// Starts the command, and reads the address of its page.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
        command.current_dir(folder).env("APPORTION_CACHE_DIR", folder.join("cache")).args(arguments);
        let mut child = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let err = BufReader::new(child.stderr());
        let mut watched = Self { child, err, address: String::new() };
        let url = watched.line_with("watch it at ");
        watched.address = url.split_once("http://").unwrap().1.trim_end_matches('/').to_owned();
        watched
    }

    /// Host and port of the page.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the next line on standard error that contains `text`.
    pub fn line_with(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.err.read_line(&mut line).unwrap() > 0, "{text}: not said");
            if line.contains(text) {
                return line.trim_end().to_owned();
            }
        }
    }

    /// Answer to a browser.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Numbers that the page shows.
    pub fn stats(&self, query: &str) -> Value {
        serde_json::from_str(&self.get(&format!("/stats.json{query}"))).unwrap()
    }

    /// Interrupts the command. Returns its status and its output.
    pub fn interrupt(mut self) -> (i32, String) {
        self.child.signal(Signal::SIGINT);
        let mut out = String::new();
        self.child.stdout().read_to_string(&mut out).unwrap();
        (self.child.wait().code().unwrap(), out)
    }
}
