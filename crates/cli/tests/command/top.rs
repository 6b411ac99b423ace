//! `apportion top`: its refusals, and in a terminal its screen and its end.

use std::net::TcpListener;

use apportion_testing::skip;

use crate::common::apportion;

#[test]
fn an_address_without_a_page_is_refused_with_what_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    for given in [address.clone(), format!("http://{address}/")] {
        let run = apportion(folder.path(), &["top", &given, "--once"]);
        let start = format!("error: no answer from http://{address}/: ");
        assert!(
            run.err.starts_with(&start) && run.err.contains("`apportion run SCENARIO --watch`"),
            "{}",
            run.err
        );
        assert_eq!((run.status, run.out.as_str(), run.err.lines().count()), (2, "", 1));
    }
}

#[test]
fn without_an_address_the_usual_ones_are_tried_and_named() {
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    if !(is_free(9_617) && is_free(9_618)) {
        return skip::because("another program uses port 9617 or 9618");
    }
    let run = apportion(tempfile::tempdir().unwrap().path(), &["top"]);
    assert_eq!((run.status, run.out.as_str(), run.err.lines().count()), (2, "", 1));
    for says in [
        "http://127.0.0.1:9617/ (a gateway)",
        "http://127.0.0.1:9618/ (a run)",
        "`apportion run SCENARIO --watch`",
        "`metrics = \"127.0.0.1:9617\"`",
    ] {
        assert!(run.err.contains(says), "{}", run.err);
    }
}

#[test]
fn words_that_cannot_be_are_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    for (words, says) in [
        (&["9618"][..], "write an address with a port, such as 127.0.0.1:9618 or localhost:9617"),
        (
            &["https://127.0.0.1:9617"],
            "pages have no TLS of their own; run `ssh -L 9617:127.0.0.1:9617 HOST`",
        ),
        (&["router:9617"], "a page answers its own machine only; run `ssh -L 9617:127.0.0.1:9617 HOST`"),
        (&["127.0.0.1:0"], "port 0 is no address"),
        (&["--interval", "0"], "write a number of seconds from 0.1 to 60"),
        (&["--interval", "NaN"], "write a number of seconds from 0.1 to 60"),
        (&["--interval", "1", "--once"], "cannot be used with"),
    ] {
        let run = apportion(folder.path(), &[&["top"], words].concat());
        assert!(run.err.contains(says), "{}", run.err);
        assert_eq!((run.status, run.out.as_str()), (2, ""));
    }
}

/// In a pseudo-terminal.
#[cfg(target_os = "linux")]
mod screen {
    use std::fs::File;
    use std::io::Read as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use apportion_core::units::Time;
    use apportion_linux::clock::Clock;
    use apportion_testing::child::Running;
    use nix::pty::{OpenptyResult, Winsize, openpty};
    use nix::sys::signal::Signal;
    use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    use nix::unistd::write;

    use crate::common::watched::Watched;

    const SCENARIO: &str = r#"seed = 3
stop = "100s"
[link.bottleneck]
from = "a"
to = "b"
rate = "2Mbit"
delay = "5ms"
watch = true
[flow.tcp]
count = 3
from = "a"
to = "b"
tcp = "rfc"
"#;

    /// A terminal of 80 columns and 24 rows, and the command in it.
    fn top(address: &str) -> (OpenptyResult, Running) {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let mut pair = openpty(&size, None).unwrap();
        // The copy is closed in the child, which would keep its own terminal open.
        pair.master = pair.master.try_clone().unwrap();
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
        command.args(["top", address]).env("TERM", "xterm").env_remove("NO_COLOR");
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        // Ctrl-Z stops its process group.
        command.process_group(0);
        let child = Running::start(command.stdin(end()).stdout(end()).stderr(end()));
        (pair, child)
    }

    /// The command, and what its terminal shows.
    struct Terminal {
        child: Running,
        keyboard: OwnedFd,
        before: Termios,
        /// What it wrote, as it comes.
        output: Receiver<Vec<u8>>,
        said: String,
    }

    impl Terminal {
        fn start(address: &str) -> Self {
            let (pair, child) = top(address);
            let before = tcgetattr(&pair.slave).unwrap();
            let mut screen = File::from(pair.master.try_clone().unwrap());
            let (tell, output) = channel();
            std::thread::spawn(move || {
                let mut buffer = [0; 4_096];
                while let Ok(count @ 1..) = screen.read(&mut buffer) {
                    if tell.send(buffer[..count].to_vec()).is_err() {
                        return;
                    }
                }
            });
            // The terminal stays open, so that its modes can be read in the end.
            std::mem::forget(pair.slave);
            Self { child, keyboard: pair.master, before, output, said: String::new() }
        }

        /// Waits until it has written a word after the last one. Blanks between words are moves of the cursor.
        fn wait_for(&mut self, text: &str) {
            let clock = Clock::start();
            let end = loop {
                if let Some(at) = self.said.find(text) {
                    break at + text.len();
                }
                let more = self.output.recv_timeout(Duration::from_secs(1)).unwrap_or_default();
                self.said += &String::from_utf8_lossy(&more);
                assert!(clock.now() < Time::from_secs(60), "{text}: {:?}", self.said);
            };
            self.said.drain(..end);
        }

        fn press(&self, keys: &str) {
            write(&self.keyboard, keys.as_bytes()).unwrap();
        }

        /// Returns its status, after it has restored the terminal.
        fn end(mut self) -> i32 {
            self.wait_for("\x1b[?1049l");
            let status = self.child.wait().code().unwrap();
            assert_eq!(tcgetattr(&self.keyboard).unwrap(), self.before, "the modes of the terminal");
            status
        }
    }

    fn watched(folder: &std::path::Path) -> Watched {
        std::fs::write(folder.join("x.toml"), SCENARIO).unwrap();
        let mut watched = Watched::start(folder, &["run", "x.toml", "--quiet", "--watch", "127.0.0.1:0"]);
        watched.line_with("its page stays at");
        watched
    }

    #[test]
    fn keys_and_signals_end_it_and_the_terminal_is_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let watched = watched(folder.path());
        let signals = [
            ("q", None, 0),
            ("\x03", None, 0),
            ("", Some(Signal::SIGTERM), 1),
            ("", Some(Signal::SIGHUP), 1),
        ];
        for (keys, signal, status) in signals {
            let mut terminal = Terminal::start(watched.address());
            terminal.wait_for("ended");
            terminal.press("\t");
            terminal.wait_for("BACKLOG");
            terminal.press(keys);
            signal.into_iter().for_each(|signal| terminal.child.signal(signal));
            assert_eq!(terminal.end(), status, "{keys:?} {signal:?}");
        }
    }

    #[test]
    fn a_suspension_gives_the_terminal_back_and_takes_it_again() {
        let folder = tempfile::tempdir().unwrap();
        let watched = watched(folder.path());
        let mut terminal = Terminal::start(watched.address());
        terminal.wait_for("\x1b[2J");
        terminal.wait_for("ENTITLED");
        for (keys, signal) in [("\x1a", None), ("", Some(Signal::SIGTSTP)), ("", Some(Signal::SIGSTOP))] {
            terminal.press(keys);
            signal.into_iter().for_each(|signal| terminal.child.signal(signal));
            let is_told = signal != Some(Signal::SIGSTOP);
            if is_told {
                terminal.wait_for("\x1b[?1049l");
            }
            let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOWAIT;
            let stopped = waitid(Id::Pid(terminal.child.id()), flags).unwrap();
            assert_eq!(stopped, WaitStatus::Stopped(terminal.child.id(), Signal::SIGSTOP));
            assert!(!is_told || tcgetattr(&terminal.keyboard).unwrap() == terminal.before);
            // A shell sets the modes that it needs.
            tcsetattr(&terminal.keyboard, SetArg::TCSANOW, &terminal.before).unwrap();
            terminal.child.signal(Signal::SIGCONT);
            terminal.wait_for("\x1b[?1049h");
            terminal.wait_for("ENTITLED");
            assert_ne!(tcgetattr(&terminal.keyboard).unwrap(), terminal.before);
        }
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }

    #[test]
    fn it_ends_with_its_terminal_without_a_signal() {
        let folder = tempfile::tempdir().unwrap();
        let watched = watched(folder.path());
        let (pair, mut child) = top(watched.address());
        let mut screen = File::from(pair.master);
        assert_ne!(screen.read(&mut [0; 4_096]).unwrap(), 0);
        drop((screen, pair.slave));
        let status = child.wait();
        assert_eq!(status.code(), Some(2), "{status}");
    }

    #[test]
    fn a_page_that_goes_leaves_its_last_values() {
        let folder = tempfile::tempdir().unwrap();
        let watched = watched(folder.path());
        let mut terminal = Terminal::start(watched.address());
        terminal.wait_for("tcp.3");
        assert_eq!(watched.interrupt().0, 0);
        terminal.wait_for("answer");
        // All is drawn again after the help.
        terminal.press("?");
        terminal.wait_for("reverse");
        terminal.press("x");
        terminal.wait_for("ENTITLED");
        terminal.press("q");
        assert_eq!(terminal.end(), 0);
    }
}
