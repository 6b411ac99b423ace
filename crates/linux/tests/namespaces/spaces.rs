//! Namespaces are entered, left, nested, and removed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

use apportion_linux::namespace::{
    Identity, Isolation, Namespace, Step, Why, bind_over, enter_user_namespace, make_mounts_private,
    set_sysctl, sysctl,
};
use apportion_linux::netlink::{Netlink, NetlinkError, VethEnd};
use nix::errno::Errno;
use nix::sys::stat::fstat;
use nix::unistd::{getegid, geteuid};

use crate::common::{MAC, MTU, part, pause};
use apportion_testing::processes::{enter, enter_as};

/// The kernel's number of a namespace.
fn number(namespace: &Namespace) -> u64 {
    fstat(namespace).unwrap().st_ino
}

fn here() -> u64 {
    number(&Namespace::current().unwrap())
}

pub fn a_panic_leaves_the_thread_at_home() {
    enter();
    let (home, there) = (here(), Namespace::create().unwrap());
    assert_ne!(home, number(&there));
    assert_eq!(there.run(here).unwrap(), number(&there));
    assert_eq!(here(), home);
    let panicked = catch_unwind(AssertUnwindSafe(|| there.run(|| panic!("on purpose"))));
    assert!(panicked.is_err());
    assert_eq!(here(), home);
}

pub fn a_thread_is_spawned_inside() {
    enter();
    let (home, there) = (here(), Namespace::create().unwrap());
    let thread =
        there.spawn("inside", || (here(), std::thread::current().name().unwrap().to_owned())).unwrap();
    assert_eq!(thread.join().unwrap(), (number(&there), "inside".to_owned()));
    assert_eq!(here(), home);
}

pub fn settings_belong_to_one_namespace() {
    enter();
    let there = Namespace::create().unwrap();
    let read = || sysctl("net/ipv4/ip_forward").unwrap();
    // New namespaces have the setting of the machine, which programs for containers turn on.
    set_sysctl("net/ipv4/ip_forward", "0").unwrap();
    there.run(|| set_sysctl("net/ipv4/ip_forward", "0").unwrap()).unwrap();
    assert_eq!((read(), there.run(read).unwrap()), ("0".into(), "0".into()));
    there.run(|| set_sysctl("net/ipv4/ip_forward", "1").unwrap()).unwrap();
    assert_eq!((read(), there.run(read).unwrap()), ("0".into(), "1".into()));
    let error = set_sysctl("net/ipv4/no_such_setting", "1").unwrap_err().to_string();
    assert!(error.contains("write `1` to /proc/sys/net/ipv4/no_such_setting"), "{error}");
}

pub fn user_namespaces_nest() {
    for _ in 0..3 {
        enter();
        assert!(geteuid().is_root());
    }
    // No thread may exist before: only a process with one may enter.
    let there = Namespace::create().unwrap();
    let is_up = || {
        let mut netlink = Netlink::open().unwrap();
        let index = netlink.index_of("lo").unwrap();
        netlink.set_up(index).unwrap();
        netlink.device("lo").unwrap().is_up
    };
    assert!(there.run(is_up).unwrap());
    assert!(!Netlink::open().unwrap().device("lo").unwrap().is_up);
}

pub fn a_limit_of_zero_is_named() {
    enter();
    // The limits of this user namespace, not the system's.
    fs::write("/proc/sys/user/max_net_namespaces", "0").unwrap();
    let isolation = Isolation { identity: Identity::Root, network: true, mounts: false };
    let error = enter_user_namespace(isolation).unwrap_err();
    assert_eq!((error.step, error.why), (Step::Network, Why::LimitIsZero("user/max_net_namespaces")));
    fs::write("/proc/sys/user/max_user_namespaces", "0").unwrap();
    let error = enter_user_namespace(isolation).unwrap_err();
    assert_eq!((error.step, error.why), (Step::User, Why::LimitIsZero("user/max_user_namespaces")));
}

pub fn a_caller_keeps_their_user() {
    let before = (geteuid(), getegid());
    enter_as(Identity::Caller);
    assert_eq!((geteuid(), getegid()), before);
    // The rights last until a program is executed.
    Namespace::create().unwrap();
}

pub fn a_file_lies_over_another() {
    enter();
    make_mounts_private().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (directory.path().join("one"), directory.path().join("other"));
    fs::write(&one, "one").unwrap();
    let error = bind_over(&one, &other).unwrap_err().to_string();
    assert!(error.contains("ENOENT") && error.contains("both must exist"), "{error}");
    fs::write(&other, "other").unwrap();
    bind_over(&one, &other).unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "one");
    nix::mount::umount(&other).unwrap();
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
}

/// The other process of the next test: a pair between its parent's namespace and a new one.
pub fn hold_a_pair() {
    let (home, new) = (Namespace::current().unwrap(), Namespace::create().unwrap());
    let end = |name, namespace| VethEnd { name, mac: MAC, mtu: MTU, namespace };
    Netlink::open().unwrap().add_veth(&end("left-behind", home.as_fd()), &end("e", new.as_fd())).unwrap();
    println!("ready");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

pub fn nothing_is_left_of_a_process_that_was_killed() {
    enter();
    let mut child = part("hold_a_pair");
    let mut line = String::new();
    BufReader::new(child.stdout()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let mut netlink = Netlink::open().unwrap();
    netlink.device("left-behind").unwrap();
    child.kill();
    // The kernel removes a namespace asynchronously: within 10 s here.
    for _ in 0..500 {
        match netlink.device("left-behind") {
            Ok(_) => pause(20),
            Err(NetlinkError::Refused { errno: Errno::ENODEV, .. }) => return,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the device is still there");
}
