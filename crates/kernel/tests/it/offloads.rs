//! Super-packets, and tags that the kernel keeps beside a frame, at the CSFQ core.
#![allow(clippy::disallowed_methods, reason = "what is tried here is the kernel, in real time")]

use std::os::fd::AsFd as _;
use std::time::Duration;

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_core::system::any::PolicyParams;
use apportion_core::system::{BufferParams, Catalog, DisciplineKind, DisciplineParams};
use apportion_core::units::{Bytes, Rate, Span};
use apportion_kernel::program::Core;
use apportion_kernel::settings::CoreSettings;
use apportion_linux::namespace::{Namespace, silence_ipv6};
use apportion_linux::netlink::{Netlink, VethEnd};
use apportion_linux::pool::Pool;
use apportion_linux::port::{Port, Received};
use apportion_live::{frame, wire_label};
use apportion_testing::skip;

use crate::common::{frame_v4, frame_v6, is_possible, run_super};

/// A core of `rate`.
fn settings(rate: Rate) -> CoreSettings {
    let mut selection = Catalog::default().select("csfq", None, None).unwrap();
    for (key, value) in [("role", "core"), ("target_delay", "0s"), ("limit", "64kB")] {
        selection.set(key, value).unwrap();
    }
    match DisciplineParams::from_args(&selection).unwrap().kind {
        DisciplineKind::Buffered(BufferParams { drop: PolicyParams::Csfq(params), .. }) => {
            CoreSettings::new(&params, rate).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

/// Writes a label into a frame.
fn labelled(mut frame: Vec<u8>, label: Label) -> Vec<u8> {
    let ip = frame::parse(&frame).unwrap().ip();
    assert!(wire_label::write(&mut frame, ip, LabelKind::Rate, label));
    frame
}

/// Returns the label of each segment that the kernel makes: it increments the IPv4 identification, and copies
/// the other fields.
fn labels(frame: &[u8], segments: u32) -> Vec<f64> {
    let ip = frame::parse(frame).unwrap().ip();
    let at = |i: u32| {
        let mut frame = frame.to_vec();
        if frame[14] >> 4 == 4 {
            let first = u16::from_be_bytes([frame[18], frame[19]]);
            frame[18..20].copy_from_slice(&first.wrapping_add(i as u16).to_be_bytes());
        }
        wire_label::read(&frame, ip).unwrap().1.value()
    };
    (0..segments).map(at).collect()
}

#[test]
fn no_segment_of_a_super_packet_has_more_than_the_share_or_a_guarantee() {
    if !is_possible() {
        return;
    }
    // Shares around 2^27, where the identification has all bits set and the next one none; and others.
    for (share, segments) in [
        (134_200_000.0, 44_u32),
        (134_217_728.0, 44),
        (134_300_000.0, 44),
        (140_000_000.0, 44),
        (2_000_000.0, 44),
        (2_000_000.0, 1),
        (134_200_000.0, 362),
    ] {
        for v6 in [false, true] {
            let mut core = Core::load_with(&settings(Rate::from_bit(share as u64 / 10)), true).unwrap();
            let of =
                |label| labelled(if v6 { frame_v6(0) } else { frame_v4(0x4000, 6, 0) }, Label::new(label));
            // A link that is congested by flows whose label is the share, which then is alpha.
            let mut now = 0_u64;
            let mut send = |core: &mut Core, frame: &[u8], segments: u32| {
                now += 100;
                let words = [now as u32, (now >> 32) as u32, u32::MAX];
                run_super(core.program().unwrap(), frame, words, segments)
            };
            for _ in 0..10_000 {
                if core.state().unwrap().alpha.is_some() {
                    break;
                }
                send(&mut core, &of(share), 1);
            }
            let alpha = core.state().unwrap().alpha.unwrap();
            assert!((alpha / share - 1.0).abs() < 1e-3, "{alpha}");
            let (verdict, out) = send(&mut core, &of(share * 3.0), segments);
            assert_eq!(verdict, 0);
            let found = labels(&out, segments);
            let [least, most] =
                [found.iter().copied().fold(f64::MAX, f64::min), found.iter().copied().fold(0.0, f64::max)];
            // The precision of a label: 13 bits.
            let precision = 1.0 / 8_192.0;
            assert!(most <= alpha * (1.0 + precision), "{most} of {alpha}, {segments} v6 {v6}");
            let missing = if v6 { 0.0 } else { f64::from(2 * (segments - 1)) / 4_096.0 };
            assert!(least >= alpha * (1.0 - precision - missing), "{least} of {alpha}, {segments} v6 {v6}");
            assert_eq!(core.counts().unwrap().relabelled, 1);
        }
    }
}

/// Two pairs of devices, whose inner ends hand frames over to each other.
fn bridge() -> Option<[Namespace; 3]> {
    let made = [Namespace::create(), Namespace::create(), Namespace::create()];
    if let Some(error) = made.iter().find_map(|made| made.as_ref().err()) {
        skip::because(error);
        return None;
    }
    let [near, middle, far] = made.map(Result::unwrap);
    let end = |name, namespace| VethEnd { name, mac: [2, 0, 0, 0, 0, 1], mtu: Bytes::new(1_500), namespace };
    let mut netlink = Netlink::open().unwrap();
    netlink.add_veth(&end("near", near.as_fd()), &end("left", middle.as_fd())).unwrap();
    netlink.add_veth(&end("right", middle.as_fd()), &end("far", far.as_fd())).unwrap();
    let up = |name: &str| {
        silence_ipv6(name).unwrap();
        let mut netlink = Netlink::open().unwrap();
        let device = netlink.index_of(name).unwrap();
        netlink.set_up(device).unwrap();
    };
    near.run(|| up("near")).unwrap();
    far.run(|| up("far")).unwrap();
    let join = || {
        up("left");
        up("right");
        let mut netlink = Netlink::open().unwrap();
        let [left, right] = ["left", "right"].map(|name| netlink.index_of(name).unwrap());
        netlink.wait_until_running("right", Span::from_secs(5)).unwrap();
        netlink.redirect(left, right).unwrap();
    };
    middle.run(join).unwrap();
    near.run(|| Netlink::open().unwrap().wait_until_running("near", Span::from_secs(5)).unwrap()).unwrap();
    Some([near, middle, far])
}

#[test]
fn a_tag_beside_the_frame_is_charged() {
    if !is_possible() {
        return;
    }
    let Some([near, middle, _far]) = bridge() else { return };
    let mut core = Core::load(&settings(Rate::from_mbit(100))).unwrap();
    middle.run(|| core.attach("right").unwrap()).unwrap();
    for tags in 0..=2 {
        let frame = labelled(frame_v4(0x4000, 17, tags), Label::new(1e6));
        let before = core.counts().unwrap();
        let send = || {
            let device = Netlink::open().unwrap().index_of("near").unwrap();
            let (mut port, mut pool) = (Port::open(device).unwrap(), Pool::new(8, 2_048));
            let (buffer, start) = (pool.take(0).unwrap(), 64);
            pool.bytes_mut(buffer)[start..start + frame.len()].copy_from_slice(&frame);
            let sent = Received { buffer, start: start as u8, length: frame.len() as u16 };
            assert_eq!(port.send(&mut pool, &[sent]).unwrap(), 1);
        };
        near.run(send).unwrap();
        let mut after = core.counts().unwrap();
        for _ in 0..200 {
            if after.packets > before.packets {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
            after = core.counts().unwrap();
        }
        // The kernel removes the outer tag when the frame arrives, and restores it when the frame leaves.
        assert_eq!(
            (after.packets - before.packets, after.bytes - before.bytes),
            (1, frame.len() as u64),
            "{tags} tags"
        );
    }
}
