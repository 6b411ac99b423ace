//! Asks the system to run threads on time: scheduling ahead of other programs and locked memory, as far as
//! they are permitted. Both are optional.
//!
//! - SCHED_RR (sched(7)) puts a thread ahead of all ordinary ones. It is requested only while the kernel
//!   limits the share of real-time threads (`sched_rt_runtime_us`), so that a loop cannot block the machine.
//! - A short time slice, if SCHED_RR is not granted: since Linux 6.12 an ordinary thread with a short slice
//!   runs sooner after it wakes up, without more time in total (`sched_runtime` of sched_setattr(2)). It
//!   needs no rights. Older kernels ignore it.
//! - Locked memory (mlockall(2)) is not swapped out. It is requested only without a limit, because
//!   allocations beyond a limit would fail.
//!
//! The rights count only in the first user namespace, so [ask](Precision::ask) before entering another. A
//! second thread that must be on time and starts later can only inherit them: [`spawn_behind`]. All other
//! threads and processes that are started after [`Precision::seal`] inherit nothing (SCHED_RESET_ON_FORK).
#![expect(unsafe_code, reason = "nix has no sched_setscheduler(2) and no MCL_ONFAULT")]

use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::{fs, io};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};

/// The precision granted to the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Precision {
    /// Real-time scheduling.
    pub real_time: bool,
    /// Locked memory, of the whole process.
    pub locked: bool,
}

/// A real-time priority of the calling thread (sched(7)): any is ahead of ordinary threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(libc::c_int);

/// Priority of a thread that must not be late. The kernel's own real-time threads stay ahead of it.
const FIRST: Priority = Priority(2);
/// Priority of a thread that runs [behind](run_behind) it; the lowest one.
const SECOND: Priority = Priority(1);
/// The shortest slice that the kernel grants, in nanoseconds (sched_setattr(2)).
const SLICE: u64 = 100_000;

impl Precision {
    /// Asks for real-time scheduling of the calling thread and for locked memory of the process. Threads that
    /// the caller starts before [`seal`](Self::seal) inherit the scheduling.
    pub fn ask() {
        raise(Resource::RLIMIT_RTPRIO);
        raise(Resource::RLIMIT_MEMLOCK);
        // A priority that it has already could not be regained in a user namespace.
        if priority().is_none() && !run_in_real_time(FIRST) && !run_in_real_time(SECOND) {
            shorten_slice(0);
        }
        if getrlimit(Resource::RLIMIT_MEMLOCK).is_ok_and(|(soft, _)| soft == RLIM_INFINITY) {
            // Pages are locked when they are used, so that large buffers take no more memory than without.
            // SAFETY: the call changes no memory of ours.
            let _ = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
        }
    }

    /// From now on only threads of [`spawn_behind`] inherit from the calling thread.
    pub fn seal() {
        let leader = priority();
        SECOND_THREADS.get_or_init(|| start_keeper(leader));
        if leader.is_none() || !keep_from_children() {
            shorten_slice(RESET_ON_FORK);
        }
    }

    /// The precision that the calling thread has now.
    #[must_use]
    pub fn read() -> Self {
        Self { real_time: priority().is_some(), locked: locked_kib() > 0 }
    }
}

/// The real-time priority that the calling thread has; none if it is an ordinary thread.
#[must_use]
pub fn priority() -> Option<Priority> {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel writes the parameters of the calling thread. The C library of musl does not have this call.
    let done = unsafe { libc::syscall(libc::SYS_sched_getparam, 0, &raw mut parameters) } == 0;
    // Ordinary threads have priority zero.
    (done && parameters.sched_priority > 0).then_some(Priority(parameters.sched_priority))
}

/// A job that starts a thread.
type Start = Box<dyn FnOnce() + Send>;

/// Takes jobs for the keeper; none if there is no keeper.
static SECOND_THREADS: OnceLock<Option<SyncSender<Start>>> = OnceLock::new();

/// Starts a thread that runs ahead of other programs, but behind the thread that called [`Precision::ask`]
/// and [`Precision::seal`], as far as that is permitted. Its network namespace is the one in which `seal` was
/// called.
///
/// # Errors
/// If the system starts no more threads.
pub fn spawn_behind<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let builder = thread::Builder::new().name(name.to_owned());
    let start = move || builder.spawn(body);
    let Some(keeper) = SECOND_THREADS.get().and_then(Option::as_ref) else { return start() };
    let (reply, answer) = sync_channel(1);
    let job = move || _ = reply.send(start());
    // A job that is not accepted drops its reply.
    let _ = keeper.send(Box::new(job));
    answer.recv().map_err(io::Error::other)?
}

/// Starts the keeper, a thread that only starts others, which inherit from it to run behind a thread with the
/// priority of `leader`. None if it cannot start.
fn start_keeper(leader: Option<Priority>) -> Option<SyncSender<Start>> {
    let (starts, inbox) = sync_channel::<Start>(1);
    let keep = move || {
        run_behind(leader);
        inbox.into_iter().for_each(|start| start());
    };
    thread::Builder::new().name("keeper".to_owned()).spawn(keep).ok().map(|_| starts)
}

/// Makes the calling thread run behind one with the priority of `leader`, which it has inherited.
///
/// At the same priority it could keep that thread from a core for a slice of 100 ms. If the leader has the
/// lowest priority or is an ordinary thread, the calling thread therefore becomes an ordinary thread.
fn run_behind(leader: Option<Priority>) {
    // Lowering a priority needs no rights.
    if leader <= Some(SECOND) || !run_in_real_time(SECOND) {
        shorten_slice(0);
    }
}

/// Gives the calling thread a real-time priority. Returns whether that was permitted.
fn run_in_real_time(priority: Priority) -> bool {
    is_throttled() && schedule(libc::SCHED_RR, priority)
}

/// Keeps threads that the calling thread starts from inheriting its policy and priority, which it keeps.
/// Returns whether that succeeded.
fn keep_from_children() -> bool {
    // SAFETY: the call takes a number. The C library of musl does not have it.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let own = i32::try_from(policy).ok().filter(|policy| *policy >= 0).zip(priority());
    own.is_some_and(|(policy, priority)| schedule(policy | libc::SCHED_RESET_ON_FORK, priority))
}

/// Sets policy and priority of the calling thread. Returns whether that succeeded.
fn schedule(policy: libc::c_int, Priority(priority): Priority) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads the parameters of the calling thread. The C library of musl does not have this call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters) == 0 }
}

/// The attributes of sched_setattr(2), in its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// SCHED_FLAG_RESET_ON_FORK of linux/sched.h.
const RESET_ON_FORK: u64 = 1;

/// Makes the calling thread an ordinary one with the shortest slice, and keeps its niceness.
fn shorten_slice(flags: u64) {
    // SAFETY: the call takes numbers. It returns 20 minus the niceness, from 1 to 40.
    let niceness = unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
    let Ok(niceness @ 1..=40) = i32::try_from(niceness) else { return };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER.unsigned_abs(),
        flags,
        nice: 20 - niceness,
        priority: 0,
        runtime: SLICE,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of attributes for the calling thread.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// Raises a limit to the maximum of the process, or removes it if the process may.
fn raise(limit: Resource) {
    if setrlimit(limit, RLIM_INFINITY, RLIM_INFINITY).is_err()
        && let Ok((_, hard)) = getrlimit(limit)
    {
        let _ = setrlimit(limit, hard, hard);
    }
}

/// Whether the kernel reserves a part of each period for ordinary threads.
fn is_throttled() -> bool {
    let micros = |name: &str| -> Option<i64> {
        fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?.trim().parse().ok()
    };
    // A runtime of -1 means no limit.
    micros("runtime").zip(micros("period")).is_some_and(|(runtime, period)| (1..period).contains(&runtime))
}

/// The locked memory of the process.
fn locked_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_behind_inherits_what_is_granted() {
        // In a thread of its own, so that the others of this test program stay as they are.
        let granted = thread::spawn(|| {
            Precision::ask();
            let asked = Precision::read();
            Precision::seal();
            assert_eq!(Precision::read(), asked);
            let ordinary = thread::spawn(priority).join().unwrap();
            let behind = spawn_behind("behind", priority).unwrap().join().unwrap();
            assert_eq!(ordinary, None);
            assert_eq!(behind, (priority() == Some(FIRST)).then_some(SECOND));
            // No priority is behind the lowest one.
            let keeper = start_keeper(Some(SECOND)).unwrap();
            let (reply, answer) = sync_channel(1);
            keeper.send(Box::new(move || reply.send(priority()).unwrap())).unwrap();
            assert_eq!(answer.recv().unwrap(), None);
            asked
        });
        let granted = granted.join().unwrap();
        // SAFETY: the call takes no arguments.
        let is_root = unsafe { libc::geteuid() } == 0;
        // Root may lack this right in a container.
        println!("root: {is_root}, {granted:?}");
    }
}
