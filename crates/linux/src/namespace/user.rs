//! A user namespace, in which an ordinary user has rights over their own networks; or the reason why there is
//! none.
//!
//! Source: user_namespaces(7), unshare(2), sysctl documentation of the distributions that forbid it. One user
//! and one group are mapped, which the kernel lets every user do for their own if `setgroups` is denied. Each
//! kind of namespace is created by a call of its own, so that a refusal shows which one it was.

use std::fmt;
use std::fs;
use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

/// The caller's user inside the user namespace. Either has all rights until it executes a program; after that
/// only root has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// User and group 0: programs have all rights over the namespaces inside.
    Root,
    /// The caller's user and group: programs have no special rights.
    Caller,
}

/// The namespaces to create, besides the user namespace.
#[derive(Clone, Copy, Debug)]
pub struct Isolation {
    /// The caller's user inside.
    pub identity: Identity,
    /// A network namespace with only a loopback device, which is down.
    pub network: bool,
    /// A mount namespace; its mounts are not private yet ([`super::make_mounts_private`]).
    pub mounts: bool,
}

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The user namespace.
    User,
    /// The mapping of the user and group.
    Mapping,
    /// The network namespace.
    Network,
    /// The mount namespace.
    Mounts,
}

/// The user namespace that the system refuses. The process may have entered a part of it, and should end.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot make {step} ({errno}): {why}")]
pub struct EnterError {
    /// The step that failed.
    pub step: Step,
    /// The error of the system call.
    pub errno: Errno,
    /// The reason, as far as it is known.
    pub why: Why,
}

/// Settings of the system that concern user namespaces; `None` for a setting that it does not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// `/proc/sys/user/max_user_namespaces`.
    pub most_user_namespaces: Option<u64>,
    /// `/proc/sys/user/max_net_namespaces`.
    pub most_network_namespaces: Option<u64>,
    /// `/proc/sys/user/max_mnt_namespaces`.
    pub most_mount_namespaces: Option<u64>,
    /// `/proc/sys/kernel/unprivileged_userns_clone`, of Debian and Arch.
    pub unprivileged_clone: Option<u64>,
    /// `/proc/sys/kernel/apparmor_restrict_unprivileged_userns`, of Ubuntu.
    pub apparmor_restricts: Option<u64>,
    /// Number of threads of this process.
    pub threads: Option<u64>,
    /// The seccomp mode of this process; 2 is a filter, as in containers.
    pub seccomp: Option<u64>,
}

/// Why there is no user namespace; the text includes a remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The process has several threads.
    Threads(u64),
    /// The limit of a kind of namespaces is zero.
    LimitIsZero(&'static str),
    /// The limit of a kind of namespaces, or of their nesting, is reached.
    LimitIsReached(&'static str),
    /// Debian's switch is off.
    CloneIsOff,
    /// Ubuntu's AppArmor removes the rights inside.
    AppArmor,
    /// A filter of system calls forbids it, as in containers.
    Seccomp,
    /// The caller is in a chroot, or its namespace does not map its user.
    Chroot,
    /// The kernel was built without it.
    NotBuilt(Step),
    /// `/proc` is missing.
    NoProc,
    /// Another reason.
    Unknown,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "a user namespace",
            Self::Mapping => "the mapping of users into a user namespace",
            Self::Network => "a network namespace",
            Self::Mounts => "a mount namespace",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threads(n) => write!(
                f,
                "the process has {n} threads and may have one: enter before the first thread is started"
            ),
            Self::LimitIsZero(name) => {
                write!(f, "/proc/sys/{name} is 0: `sudo sysctl -w {name}=10000` allows some",)
            }
            Self::LimitIsReached(name) => write!(
                f,
                "there are as many as /proc/sys/{name} allows, or namespaces are nested 32 deep: raise it, \
                 or start from further outside"
            ),
            Self::CloneIsOff => f.write_str(
                "/proc/sys/kernel/unprivileged_userns_clone is 0: `sudo sysctl -w \
                 kernel.unprivileged_userns_clone=1` allows it",
            ),
            Self::AppArmor => f.write_str(
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns is 1: give the program an AppArmor \
                 profile with `userns,`, or `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
            ),
            Self::Seccomp => f.write_str(
                "a filter of system calls forbids it, as containers have: start the container with \
                 `--cap-add SYS_ADMIN`, or with `--security-opt seccomp=unconfined`",
            ),
            Self::Chroot => f.write_str(
                "the kernel forbids it in a chroot, and to users that the namespace outside does not know: \
                 start from outside of it",
            ),
            Self::NotBuilt(step) => write!(f, "the kernel was built without {step}: use another kernel"),
            Self::NoProc => f.write_str("/proc/self is not there: mount /proc"),
            Self::Unknown => f.write_str("no setting says why; start it as root"),
        }
    }
}

/// Moves the whole process into a new user namespace, and into the other namespaces of `isolation`. It must
/// have a single thread. Children and threads that it starts later are inside.
///
/// # Errors
/// [`EnterError`] with the setting that forbids it.
pub fn enter_user_namespace(isolation: Isolation) -> Result<(), EnterError> {
    let settings = Settings::read();
    let refused = |step| move |errno| EnterError { step, errno, why: why(step, errno, &settings) };
    // Inside, both are unknown until they are mapped.
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(refused(Step::User))?;
    let inside = |id: u32| if isolation.identity == Identity::Root { 0 } else { id };
    let files = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{} {user} 1", inside(user))),
        ("/proc/self/gid_map", format!("{} {group} 1", inside(group))),
    ];
    for (file, text) in files {
        fs::write(file, text).map_err(|error| refused(Step::Mapping)(errno_of(&error)))?;
    }
    if isolation.network {
        unshare(CloneFlags::CLONE_NEWNET).map_err(refused(Step::Network))?;
    }
    if isolation.mounts {
        unshare(CloneFlags::CLONE_NEWNS).map_err(refused(Step::Mounts))?;
    }
    Ok(())
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(0))
}

impl Settings {
    /// The settings of this system and process.
    #[must_use]
    pub fn read() -> Self {
        let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let line = |key: &str| {
            status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')?.trim().parse().ok())
        };
        Self {
            most_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            most_network_namespaces: number("/proc/sys/user/max_net_namespaces"),
            most_mount_namespaces: number("/proc/sys/user/max_mnt_namespaces"),
            unprivileged_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            threads: line("Threads"),
            seccomp: line("Seccomp"),
        }
    }
}

/// Why `step` ended with `errno` on a system with these `settings`.
#[must_use]
pub fn why(step: Step, errno: Errno, settings: &Settings) -> Why {
    let (limit, name) = match step {
        Step::User | Step::Mapping => (settings.most_user_namespaces, "user/max_user_namespaces"),
        Step::Network => (settings.most_network_namespaces, "user/max_net_namespaces"),
        Step::Mounts => (settings.most_mount_namespaces, "user/max_mnt_namespaces"),
    };
    match errno {
        // Kernels before 4.9 return EUSERS.
        Errno::ENOSPC | Errno::EUSERS if limit == Some(0) => Why::LimitIsZero(name),
        Errno::ENOSPC | Errno::EUSERS => Why::LimitIsReached(name),
        Errno::EPERM | Errno::EACCES => {
            if step == Step::User && settings.unprivileged_clone == Some(0) {
                Why::CloneIsOff
            } else if settings.apparmor_restricts.is_some_and(|value| value > 0) {
                Why::AppArmor
            } else if settings.seccomp == Some(2) {
                Why::Seccomp
            } else if step == Step::User {
                Why::Chroot
            } else {
                Why::Unknown
            }
        }
        Errno::EINVAL => match settings.threads {
            Some(threads) if step == Step::User && threads > 1 => Why::Threads(threads),
            _ => Why::NotBuilt(step),
        },
        Errno::ENOENT if step == Step::Mapping => Why::NoProc,
        Errno::ENOSYS => Why::Seccomp,
        _ => Why::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A system where every user may create namespaces.
    const FREE: Settings = Settings {
        most_user_namespaces: Some(96_365),
        most_network_namespaces: Some(96_365),
        most_mount_namespaces: Some(96_365),
        unprivileged_clone: None,
        apparmor_restricts: None,
        threads: Some(1),
        seccomp: Some(0),
    };

    #[test]
    fn a_limit_of_zero_is_distinguished_from_one_that_is_reached() {
        let zero = Settings { most_user_namespaces: Some(0), ..FREE };
        assert_eq!(why(Step::User, Errno::ENOSPC, &zero), Why::LimitIsZero("user/max_user_namespaces"));
        assert_eq!(why(Step::User, Errno::ENOSPC, &FREE), Why::LimitIsReached("user/max_user_namespaces"));
        let zero = Settings { most_network_namespaces: Some(0), ..FREE };
        assert_eq!(why(Step::Network, Errno::ENOSPC, &zero), Why::LimitIsZero("user/max_net_namespaces"));
        assert_eq!(why(Step::Mounts, Errno::ENOSPC, &zero), Why::LimitIsReached("user/max_mnt_namespaces"));
    }

    #[test]
    fn debians_switch_forbids_the_user_namespace_itself() {
        let debian = Settings { unprivileged_clone: Some(0), ..FREE };
        assert_eq!(why(Step::User, Errno::EPERM, &debian), Why::CloneIsOff);
        let debian = Settings { unprivileged_clone: Some(1), ..FREE };
        assert_eq!(why(Step::User, Errno::EPERM, &debian), Why::Chroot);
    }

    #[test]
    fn ubuntus_apparmor_forbids_what_comes_after_the_user_namespace() {
        let ubuntu = Settings { apparmor_restricts: Some(1), unprivileged_clone: Some(1), ..FREE };
        for step in [Step::User, Step::Mapping, Step::Network, Step::Mounts] {
            assert_eq!(why(step, Errno::EPERM, &ubuntu), Why::AppArmor);
            assert_eq!(why(step, Errno::EACCES, &ubuntu), Why::AppArmor);
        }
    }

    #[test]
    fn a_filter_of_system_calls_is_a_containers() {
        let container = Settings { seccomp: Some(2), ..FREE };
        assert_eq!(why(Step::User, Errno::EPERM, &container), Why::Seccomp);
        assert_eq!(why(Step::User, Errno::ENOSYS, &container), Why::Seccomp);
    }

    #[test]
    fn several_threads_are_distinguished_from_a_kernel_without_user_namespaces() {
        let threads = Settings { threads: Some(3), ..FREE };
        assert_eq!(why(Step::User, Errno::EINVAL, &threads), Why::Threads(3));
        assert_eq!(why(Step::User, Errno::EINVAL, &FREE), Why::NotBuilt(Step::User));
    }

    #[test]
    fn each_reason_names_its_setting_and_the_fix() {
        let error = EnterError {
            step: Step::User,
            errno: Errno::ENOSPC,
            why: Why::LimitIsZero("user/max_user_namespaces"),
        };
        assert_eq!(
            error.to_string(),
            "cannot make a user namespace (ENOSPC: No space left on device): \
             /proc/sys/user/max_user_namespaces is 0: `sudo sysctl -w user/max_user_namespaces=10000` \
             allows some"
        );
        assert!(Why::AppArmor.to_string().contains("apparmor_restrict_unprivileged_userns=0"));
    }

    #[test]
    fn this_process_has_threads_and_settings() {
        let settings = Settings::read();
        assert!(settings.threads.unwrap() >= 1 && settings.seccomp.is_some(), "{settings:?}");
    }

    #[test]
    fn a_process_with_several_threads_is_refused() {
        // A second thread lives until `stop` is dropped, so that no namespace can be entered.
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stopped.recv());
        let isolation = Isolation { identity: Identity::Root, network: false, mounts: false };
        let error = enter_user_namespace(isolation).unwrap_err();
        assert!(matches!(error.why, Why::Threads(2..) | Why::Seccomp | Why::CloneIsOff), "{error}");
        drop(stop);
        assert!(thread.join().unwrap().is_err());
    }
}
