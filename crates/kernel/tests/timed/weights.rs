//! Weighted flows by HTB, on a pair of devices in this machine's kernel.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use apportion_core::units::{Bytes, Rate, Span, Weight};
use apportion_kernel::htb::MAJOR;
use apportion_kernel::program::{FlowBy, FlowClasses, FlowKey};
use apportion_kernel::weights::Tree;
use apportion_linux::namespace::{Namespace, silence_ipv6};
use apportion_linux::netlink::{Netlink, NetlinkError, VethEnd};
use apportion_testing::skip;
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBufForce, SndBuf};

use crate::common::{alone, is_possible};

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SINK: u16 = 9_000;
/// The port of flow 0.
const FIRST: u16 = 20_000;

/// Two namespaces with a device each, or none if they cannot be created here.
fn pair() -> Option<(Namespace, Namespace)> {
    let (near, far) = match (Namespace::create(), Namespace::create()) {
        (Ok(near), Ok(far)) => (near, far),
        (Err(error), _) | (_, Err(error)) => {
            skip::because(error);
            return None;
        }
    };
    let end = |name, namespace| VethEnd { name, mac: [2, 0, 0, 0, 0, 1], mtu: Bytes::new(1_500), namespace };
    Netlink::open().unwrap().add_veth(&end("near", near.as_fd()), &end("far", far.as_fd())).unwrap();
    for (namespace, name, address) in [(&near, "near", NEAR), (&far, "far", FAR)] {
        let set_up = || {
            let mut netlink = Netlink::open().unwrap();
            silence_ipv6(name).unwrap();
            let index = netlink.index_of(name).unwrap();
            netlink.set_no_arp(index).unwrap();
            netlink.set_up(index).unwrap();
            netlink.add_address(index, IpAddr::V4(address), 24).unwrap();
        };
        namespace.run(set_up).unwrap();
    }
    let wait = || Netlink::open().unwrap().wait_until_running("near", Span::from_secs(5)).unwrap();
    near.run(wait).unwrap();
    Some((near, far))
}

/// Sets up the tree on `near`, with a class for each flow. The classifier stays attached while the returned
/// value is held.
fn set_up(near: &Namespace, rate: Rate, weights: &[Weight], classify: bool) -> Option<FlowClasses> {
    let begin = Instant::now();
    let install = || {
        let mut netlink = Netlink::open().unwrap();
        let device = netlink.index_of("near").unwrap();
        let tree = Tree::new(rate, weights).unwrap();
        match tree.install(&mut netlink, device) {
            Err(error) if error.to_string().contains("ENOENT") => {
                skip::because(error);
                return None;
            }
            done => done.unwrap(),
        }
        let mut classes = FlowClasses::load(FlowBy::Five).unwrap();
        for flow in 0..weights.len() {
            let port = FIRST + flow as u16;
            let key = FlowKey { addresses: [NEAR.into(), FAR.into()], ports: [port, SINK], protocol: 17 };
            classes.set(&key, tree.class(flow).unwrap()).unwrap();
        }
        if classify {
            classes.attach("near").unwrap();
        }
        Some(classes)
    };
    let classes = near.run(install).unwrap()?;
    println!("{} classes were set up in {:.2} s", weights.len() + 2, begin.elapsed().as_secs_f64());
    Some(classes)
}

/// Sends on all flows at the rate that their queues accept, and counts the bytes of each that arrive during
/// `time`, after `warm_up`.
fn measured(
    near: &Namespace,
    far: &Namespace,
    flows: usize,
    size: usize,
    warm_up: u64,
    time: u64,
) -> Vec<u64> {
    let ends = Arc::new(AtomicBool::new(false));
    let counted: Arc<Vec<AtomicU64>> = Arc::new((0..flows).map(|_| AtomicU64::new(0)).collect());
    let sink = far.run(|| UdpSocket::bind((FAR, SINK)).unwrap()).unwrap();
    setsockopt(&sink, RcvBufForce, &(8 << 20)).unwrap();
    sink.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let open = || -> Vec<UdpSocket> {
        let socket = |flow: usize| {
            let socket = UdpSocket::bind((NEAR, FIRST + flow as u16)).unwrap();
            socket.connect((FAR, SINK)).unwrap();
            socket.set_nonblocking(true).unwrap();
            // A few packets: the leaf never runs empty, and the queue behind it never fills.
            setsockopt(&socket, SndBuf, &(16 * 1_024)).unwrap();
            socket
        };
        (0..flows).map(socket).collect()
    };
    let sockets = near.run(open).unwrap();
    let receiver = {
        let (ends, counted) = (Arc::clone(&ends), Arc::clone(&counted));
        std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            while !ends.load(Ordering::Relaxed) {
                if let Ok((length, from)) = sink.recv_from(&mut buffer)
                    && let Some(count) = counted.get(usize::from(from.port() - FIRST))
                {
                    count.fetch_add(length as u64, Ordering::Relaxed);
                }
            }
        })
    };
    let sender = {
        let ends = Arc::clone(&ends);
        std::thread::spawn(move || {
            let data = vec![7; size];
            while !ends.load(Ordering::Relaxed) {
                let mut sent = 0;
                for socket in &sockets {
                    match socket.send(&data) {
                        Ok(_) => sent += 1,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                        // The queue of the leaf is full, or the device is gone at the end.
                        Err(_) => (),
                    }
                }
                if sent == 0 {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        })
    };
    let read = || counted.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
    std::thread::sleep(Duration::from_secs(warm_up));
    let before = read();
    std::thread::sleep(Duration::from_secs(time));
    let after = read();
    ends.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    receiver.join().unwrap();
    after.iter().zip(before).map(|(after, before)| after - before).collect()
}

/// Weights 1, 2 and 4 in turn.
fn weights(flows: usize) -> Vec<Weight> {
    [1.0, 2.0, 4.0].iter().cycle().take(flows).map(|weight| Weight::new(*weight).unwrap()).collect()
}

/// Returns the maximum deviation of a flow from its part of the total, and the root mean square.
fn deviation(bytes: &[u64], weights: &[Weight]) -> (f64, f64) {
    let all: u64 = bytes.iter().sum();
    let total: f64 = weights.iter().map(|weight| weight.get()).sum();
    let off =
        bytes.iter().zip(weights).map(|(own, weight)| *own as f64 / all as f64 * total / weight.get() - 1.0);
    let off: Vec<f64> = off.collect();
    let most = off.iter().fold(0.0_f64, |most, off| most.max(off.abs()));
    (most, (off.iter().map(|off| off * off).sum::<f64>() / off.len() as f64).sqrt())
}

#[test]
fn sixty_four_flows_have_their_weights_within_2_percent() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    let Some((near, far)) = pair() else { return };
    let weights = weights(64);
    let Some(_classes) = set_up(&near, Rate::from_mbit(40), &weights, true) else { return };
    let bytes = measured(&near, &far, 64, 1_000, 1, 8);
    let (most, mean) = deviation(&bytes, &weights);
    let rate = bytes.iter().sum::<u64>() as f64 * 8.0 / 8e6;
    println!("64 flows, {rate:.1} Mb/s: at most {:.2} %, root mean square {:.2} %", 1e2 * most, 1e2 * mean);
    assert!(most < 0.02, "{most}");
    assert!((30.0..40.0).contains(&rate), "{rate}");
}

#[test]
fn what_idle_flows_leave_is_divided_by_weights_too() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    let Some((near, far)) = pair() else { return };
    let weights = weights(64);
    let Some(_classes) = set_up(&near, Rate::from_mbit(40), &weights, true) else { return };
    // Half of the link is assured to the active flows; they borrow the other half, by quanta.
    let bytes = measured(&near, &far, 32, 1_000, 1, 8);
    let (most, mean) = deviation(&bytes, &weights[..32]);
    let rate = bytes.iter().sum::<u64>() as f64 * 8.0 / 8e6;
    println!(
        "32 of 64 flows, {rate:.1} Mb/s: at most {:.2} %, root mean square {:.2} %",
        1e2 * most,
        1e2 * mean
    );
    assert!(most < 0.02, "{most}");
    assert!((34.0..40.0).contains(&rate), "{rate}");
}

#[test]
fn without_the_classifier_flows_do_not_have_their_weights() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    let Some((near, far)) = pair() else { return };
    let weights = weights(64);
    let Some(_classes) = set_up(&near, Rate::from_mbit(40), &weights, false) else { return };
    let (most, _) = deviation(&measured(&near, &far, 64, 1_000, 1, 2), &weights);
    assert!(most > 0.2, "{most}");
}

/// Run by `cargo test -p apportion-kernel --features bpf --test timed weights:: -- --ignored --show-output`.
#[test]
#[ignore = "it takes 40 s, and its figures depend on the machine"]
fn a_thousand_flows_have_their_weights_within_3_percent() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    let Some((near, far)) = pair() else { return };
    let weights = weights(1_024);
    let Some(_classes) = set_up(&near, Rate::from_mbit(100), &weights, true) else { return };
    let bytes = measured(&near, &far, 1_024, 400, 8, 30);
    let (most, mean) = deviation(&bytes, &weights);
    let rate = bytes.iter().sum::<u64>() as f64 * 8.0 / 30e6;
    println!("1024 flows, {rate:.1} Mb/s: at most {:.2} %, root mean square {:.2} %", 1e2 * most, 1e2 * mean);
    let packets = |weight: usize| {
        let own = bytes.iter().skip(weight).step_by(3).map(|bytes| bytes / 400);
        (own.clone().min(), own.max())
    };
    println!("packets of the flows, least and most by weight: {:?}", [0, 1, 2].map(packets));
    assert!(most < 0.03, "{most}");
}

#[test]
fn a_second_tree_is_refused_and_the_queue_can_be_taken_away() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    let Some((near, _far)) = pair() else { return };
    let weights = weights(3);
    let Some(_classes) = set_up(&near, Rate::from_mbit(1), &weights, false) else { return };
    let twice = || {
        let mut netlink = Netlink::open().unwrap();
        let device = netlink.index_of("near").unwrap();
        let tree = Tree::new(Rate::from_mbit(1), &weights).unwrap();
        let error = tree.install(&mut netlink, device).unwrap_err();
        assert!(error.to_string().contains("make HTB the queue of device"), "{error}");
        assert!(netlink.delete_queue(device, MAJOR).unwrap());
        assert!(!netlink.delete_queue(device, MAJOR).unwrap());
        tree.install(&mut netlink, device).unwrap();
        let gone = netlink.add_htb(device + 1_000, 1, 1).unwrap_err();
        assert!(matches!(gone, NetlinkError::Refused { errno: Errno::ENODEV, .. }), "{gone}");
    };
    near.run(twice).unwrap();
}
