//! Cases that end abnormally, and the children that they leave. This program runs itself again, with
//! [`WRONG`] as its cases.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::disallowed_methods, reason = "what is waited for are other processes, in real time")]

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

mod right {
    use std::fs;
    use std::io::Read as _;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use apportion_testing::child::{self, LIMIT, Running};
    use apportion_testing::processes::this_program;
    use apportion_testing::skip;
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use crate::{PIDS, WRONG_ONES};

    /// Time by which a program of these tests has ended.
    const SOON: Duration = Duration::from_secs(30);

    fn wrong(case: &str, folder: &Path) -> Command {
        let mut command = this_program();
        command
            .args(["--exact", &format!("wrong::{case}")])
            .env(WRONG_ONES, "1")
            .env(PIDS, folder.join("pids"));
        command
    }

    /// Status and output of the program that runs this case; it ends soon.
    fn said(command: &mut Command) -> (Option<i32>, String) {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (output, ended) = Running::start(command).output_within(SOON);
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(ended, "{text}");
        (output.status.code(), text)
    }

    /// Processes recorded by the case.
    fn pids(folder: &Path) -> Vec<Pid> {
        let text = fs::read_to_string(folder.join("pids")).unwrap_or_default();
        text.lines().map(|line| Pid::from_raw(line.parse().unwrap())).collect()
    }

    fn eventually(condition: impl Fn() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if condition() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// Whether `count` processes were recorded, and all are gone. Kills the remaining ones, so that a failure
    /// leaves none.
    fn are_gone(folder: &Path, count: usize) -> bool {
        let pids = pids(folder);
        assert_eq!(pids.len(), count);
        // A zombie exists, but does not run.
        let runs = |pid: &&Pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            stat.is_ok_and(|stat| !stat.rsplit_once(") ").unwrap().1.starts_with(['Z', 'X']))
        };
        let gone = eventually(|| !pids.iter().any(|pid| runs(&pid)));
        pids.iter().filter(runs).for_each(|pid| kill(*pid, Signal::SIGKILL).unwrap_or_default());
        gone
    }

    pub fn a_case_that_panics_is_named_and_its_child_killed() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text) = said(&mut wrong("panics", folder.path()));
        assert!(are_gone(folder.path(), 1), "{text}");
        assert!(status == Some(1) && text.contains("test wrong::panics ... FAILED"), "{text}");
        assert!(text.contains("---- wrong::panics (exit status: 101) ----") && text.contains("on purpose"));
    }

    pub fn a_case_that_returns_early_leaves_no_child_at_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text) = said(&mut wrong("returns", folder.path()));
        assert!(are_gone(folder.path(), 1), "{text}");
        assert!(status == Some(0) && text.contains("test wrong::returns ... ok"), "{text}");
    }

    pub fn output_that_a_process_outside_the_group_holds_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text) = said(wrong("leaves_a_daemon", folder.path()).arg("--show-output"));
        let daemon = pids(folder.path())[0];
        kill(daemon, Signal::SIGKILL).unwrap();
        assert!(status == Some(0) && text.contains("the last word"), "{text}");
    }

    pub fn a_case_that_hangs_is_ended_at_the_limit_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text) = said(wrong("hangs", folder.path()).env(LIMIT, "1"));
        assert!(are_gone(folder.path(), 1), "{text}");
        assert!(status == Some(1) && text.contains("\nwrong::hangs took more than 1 s\nbegun\n"), "{text}");
    }

    /// Checks that the case, its child and the child's child are gone.
    fn is_gone_with_its_program(case: &str) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = wrong(case, folder.path());
        let mut program = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        let begun = eventually(|| pids(folder.path()).len() == 2 || program.has_ended());
        if program.has_ended() && program.wait().success() {
            return skip::because("the system forbids user namespaces");
        }
        assert!(begun);
        program.kill();
        assert!(are_gone(folder.path(), 2));
    }

    pub fn a_case_ends_with_a_program_that_is_killed() {
        is_gone_with_its_program("holds_a_child");
    }

    pub fn a_case_in_a_namespace_ends_with_a_program_that_is_killed() {
        is_gone_with_its_program("enters_and_holds_a_child");
    }

    pub fn a_child_that_is_dropped_ends_with_the_group_it_leads() {
        use std::os::unix::process::CommandExt as _;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "sleep 1000 & echo $!; wait"]).process_group(0).stdout(Stdio::piped());
        let mut child = Running::start(&mut shell);
        let mut line = [0; 32];
        let length = child.stdout().read(&mut line).unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("pids"), &line[..length]).unwrap();
        drop(child);
        assert!(are_gone(folder.path(), 1));
    }

    pub fn a_command_that_hangs_panics_with_its_name() {
        let hangs = |case: &str| {
            let folder = tempfile::tempdir().unwrap();
            let (status, text) = said(wrong(case, folder.path()).env(LIMIT, "4"));
            assert!(status == Some(1) && text.contains("sleep 1000 took more than 3 s"), "{text}");
        };
        std::thread::scope(|scope| {
            for case in ["waits_for_a_command", "waits_for_a_child", "reads_from_a_child"] {
                scope.spawn(move || hangs(case));
            }
        });
    }

    /// Status and output of the program that runs this case, and how often the case ran.
    fn runs(command: &mut Command, folder: &Path) -> (Option<i32>, String, usize) {
        let (status, text) = said(command);
        (status, text, pids(folder).len())
    }

    pub fn what_fails_on_a_busy_machine_runs_again_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text, runs) = runs(&mut wrong("fails_while_it_is_busy", folder.path()), folder.path());
        assert!(status == Some(0) && runs == 2, "{text}");
        assert!(text.contains("runs again at the end: threads woke up to "), "{text}");
        assert!(text.contains("... ok\n") && text.contains("1 passed; 0 failed; 0 ignored"), "{text}");
    }

    pub fn a_machine_that_stays_busy_skips_a_case_unless_the_clock_judges() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("skipped");
        let mut command = wrong("fails_and_is_always_busy", folder.path());
        let (status, text, count) = runs(command.env(skip::FILE, &list), folder.path());
        assert!(status == Some(0) && count == 4 && text.contains("0 passed; 0 failed; 1 ignored"), "{text}");
        let listed = fs::read_to_string(list).unwrap();
        assert!(
            listed.starts_with("skipped: wrong::fails_and_is_always_busy: it failed on a busy machine: ")
        );
        let (status, text, count) = runs(command.env("APPORTION_REAL_TIME", "1"), folder.path());
        assert!(status == Some(1) && count == 5 && text.contains("0 passed; 1 failed; 0 ignored"), "{text}");
    }

    pub fn only_a_case_that_judges_times_runs_again() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text, runs) = runs(&mut wrong("fails_by_counts", folder.path()), folder.path());
        assert!(status == Some(1) && runs == 1 && text.contains("... FAILED"), "{text}");
    }

    pub fn what_is_skipped_is_listed_with_its_package() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        let mut command = wrong("lacks_a_program", folder.path());
        let (status, text) = said(command.env("PATH", folder.path()).env(skip::FILE, &file));
        let line =
            "skipped: wrong::lacks_a_program: there is no nginx, no jq in PATH (package nginx-light, jq)\n";
        assert_eq!((status, fs::read_to_string(&file).unwrap().as_str()), (Some(0), line));
        assert!(text.contains(line), "{text}");
        assert!(!child::output(Command::new("/bin/sh").args(["-c", "exit 3"])).status.success());
    }

    pub fn what_ran_is_counted_and_no_threads_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skipped");
        let run = |arguments: &[&str]| {
            said(wrong("lacks_a_program", folder.path()).args(arguments).env(skip::FILE, &file))
        };
        for arguments in [["--test-threads", "0"].as_slice(), &["--test-threads=many"], &["--test-threads"]] {
            let (status, text) = run(arguments);
            assert!(status == Some(2) && text.contains("tests cannot run at once"), "{text}");
        }
        assert!(run(&["--test-threads=1"]).1.contains("1 passed; 0 failed"));
        assert!(run(&["--skip=wrong::lacks_a_program"]).1.contains("0 passed; 0 failed"));
    }
}

/// Cases that end abnormally.
#[expect(clippy::zombie_processes, reason = "to leave children behind is what is tested")]
mod wrong {
    use std::io::{Read as _, Write as _};
    use std::process::{Child, Command, Stdio};

    use apportion_testing::child::{self, Running};
    use apportion_testing::processes::{enter, judge_by_time};
    use apportion_testing::skip;
    use nix::unistd::Pid;

    use crate::PIDS;

    fn sleep() -> Command {
        let mut command = Command::new("sleep");
        command.arg("1000");
        command
    }

    fn write_down(pid: u32) {
        let path = std::env::var_os(PIDS).unwrap();
        let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
        writeln!(file, "{pid}").unwrap();
    }

    /// A child that ends only with its group.
    fn forgotten() -> Child {
        let child = sleep().spawn().unwrap();
        write_down(child.id());
        child
    }

    pub fn panics() {
        let _child = forgotten();
        panic!("on purpose");
    }

    pub fn returns() {
        let _child = forgotten();
    }

    #[expect(clippy::print_stdout, reason = "it is read by the test")]
    pub fn leaves_a_daemon() {
        use std::os::unix::process::CommandExt as _;
        let child = sleep().process_group(0).spawn().unwrap();
        write_down(child.id());
        println!("the last word");
    }

    #[expect(clippy::print_stdout, reason = "it is read by the test")]
    pub fn hangs() {
        println!("begun");
        let _ = forgotten().wait();
    }

    pub fn holds_a_child() {
        write_down(Pid::this().as_raw().cast_unsigned());
        let mut child = Running::start(&mut sleep());
        write_down(child.id().as_raw().cast_unsigned());
        child.wait();
    }

    pub fn enters_and_holds_a_child() {
        enter();
        holds_a_child();
    }

    pub fn waits_for_a_command() {
        drop(child::output(&mut sleep()));
    }

    pub fn waits_for_a_child() {
        Running::start(&mut sleep()).wait();
    }

    pub fn reads_from_a_child() {
        let mut child = Running::start(sleep().stdout(Stdio::piped()));
        child.stdout().read_to_end(&mut Vec::new()).unwrap();
    }

    /// Simulates a machine that gives the program that runs this case no CPU for 200 ms.
    fn stand_still() {
        write_down(Pid::this().as_raw().cast_unsigned());
        let script = format!("kill -STOP {0}; sleep 0.2; kill -CONT {0}", Pid::parent());
        assert!(Command::new("/bin/sh").args(["-c", &script]).status().unwrap().success());
    }

    pub fn fails_while_it_is_busy() {
        judge_by_time();
        let path = std::env::var_os(PIDS).unwrap();
        if !std::path::Path::new(&path).exists() {
            stand_still();
            panic!("on purpose");
        }
        write_down(0);
    }

    pub fn fails_and_is_always_busy() {
        judge_by_time();
        stand_still();
        panic!("on purpose");
    }

    pub fn fails_by_counts() {
        stand_still();
        panic!("on purpose");
    }

    pub fn lacks_a_program() {
        assert!(!skip::unless_found(&["nginx", "jq"]));
    }
}

/// Set if the cases are those of [`WRONG`].
const WRONG_ONES: &str = "APPORTION_WRONG_CASES";
/// Environment variable with the file in which processes are recorded.
const PIDS: &str = "APPORTION_PIDS";
const CASES: &[Case] = cases! {
    right: a_case_that_panics_is_named_and_its_child_killed,
        a_case_that_returns_early_leaves_no_child_at_its_output,
        output_that_a_process_outside_the_group_holds_is_read,
        a_case_that_hangs_is_ended_at_the_limit_and_named,
        a_case_ends_with_a_program_that_is_killed,
        a_case_in_a_namespace_ends_with_a_program_that_is_killed,
        a_child_that_is_dropped_ends_with_the_group_it_leads,
        a_command_that_hangs_panics_with_its_name,
        what_fails_on_a_busy_machine_runs_again_alone,
        a_machine_that_stays_busy_skips_a_case_unless_the_clock_judges,
        only_a_case_that_judges_times_runs_again,
        what_is_skipped_is_listed_with_its_package,
        what_ran_is_counted_and_no_threads_are_refused;
};
const WRONG: &[Case] = cases! {
    wrong: panics, returns, leaves_a_daemon, hangs, holds_a_child, enters_and_holds_a_child, waits_for_a_command, waits_for_a_child,
        reads_from_a_child, fails_while_it_is_busy, fails_and_is_always_busy, fails_by_counts, lacks_a_program;
};

fn main() -> ExitCode {
    let is_wrong = std::env::var_os(WRONG_ONES).is_some();
    processes::main(if is_wrong { WRONG } else { CASES }, &[])
}
