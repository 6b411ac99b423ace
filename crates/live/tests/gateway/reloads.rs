//! Reloads under load: they lose no packet and change no order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apportion_live::gateway::Gateway;

use crate::common::{Wire, config, enter, host, judge_by_time, open, pause, start, udp};

/// Number of reloads in a test, one each 20 ms: 2 s here; 1,000 take 20 s.
fn reloads() -> u64 {
    std::env::var("APPORTION_RELOADS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// The configuration of reload number `n`: other rates, rules, and queues. `rate` in Mb/s.
fn text(n: u64, rate: u64) -> String {
    let queue = [
        "{ kind = \"fifo\", limit = \"20000p\" }",
        "{ kind = \"drr\", limit = \"20000p\" }",
        "{ kind = \"fq_codel\", limit = \"20000p\", target = \"20s\", interval = \"100s\" }",
    ][n as usize % 3];
    format!(
        "inside = \"near\"\noutside = \"far\"\ndown.rate = \"100Mbit\"\n[up]\nrate = \"{}Mbit\"\nqueue = {queue}\n\
         delay = \"{}ms\"\n[[rule]]\nname = \"a{}\"\nfrom_port = {}\nweight = {}\n",
        rate + n % 2,
        n % 4,
        n % 5,
        1_000 + n % 4,
        1 + n % 3,
    )
}

fn reload(gateway: &mut Gateway, n: u64, rate: u64) {
    let new = config(&text(n, rate));
    let difference = gateway.config().difference(&new).unwrap();
    assert!(n == 0 || !difference.changes.is_empty());
    gateway.apply(new, &difference).unwrap();
}

/// Sends `count` numbered packets of each of four flows, at most `pace` packets a millisecond, while a
/// gateway of `rate` Mb/s reloads: all of them must arrive, and those of each flow in order.
fn all_arrive(count: u64, pace: u64, rate: u64) {
    enter();
    // A socket whose reader waits for a core loses packets.
    judge_by_time();
    let (near, far) = (host("near", 11), host("far", 12));
    let mut n = 0;
    let done = Arc::new(AtomicU64::new(0));
    let applied = Arc::clone(&done);
    let running = start(open(&text(0, rate)), move |gateway| {
        if n < reloads() {
            n += 1;
            reload(gateway, n, rate);
            applied.store(n, Ordering::Relaxed);
        }
    });
    // Opened before any packet is sent.
    let [mut wire, mut sink] = [&near, &far].map(|host| host.namespace.run(Wire::open).unwrap());
    let sender = near.namespace.spawn("sender", move || {
        for number in 0..count {
            for flow in 0..4 {
                wire.send(&udp((1_000 + flow, 9), &[&number.to_be_bytes()[..], &[0; 192]].concat()));
            }
            if number % pace == pace - 1 {
                pause(4);
            }
        }
    });
    let receiver = far.namespace.spawn("receiver", move || {
        let mut next = [0_u64; 4];
        while next != [count; 4] {
            let Some(frame) = sink.next(5_000) else { break };
            let port = usize::from(u16::from_be_bytes([frame[34], frame[35]]));
            let number = u64::from_be_bytes(*frame[42..].first_chunk().unwrap());
            assert_eq!(number, next[port - 1_000], "of flow {port}");
            next[port - 1_000] += 1;
        }
        next
    });
    sender.unwrap().join().unwrap();
    let next = receiver.unwrap().join().unwrap();
    for _ in 0..3_000 {
        if done.load(Ordering::Relaxed) == reloads() {
            break;
        }
        pause(10);
    }
    let text = crate::common::metrics(&mut running.stop());
    assert_eq!(next, [count; 4], "{text}");
    assert_eq!(done.load(Ordering::Relaxed), reloads());
}

pub fn no_packet_is_lost_or_overtaken_by_a_reload() {
    // 4 packets of 242 B about every 4 ms: 2 Mb/s of 20.
    all_arrive(6 * reloads(), 1, 20);
}

pub fn what_waits_survives_reloads() {
    // 8 packets about every 4 ms, 3.9 Mb/s, into 2: half of them wait, eight for each reload at the end, for
    // which queues have room.
    all_arrive(4 * reloads(), 2, 2);
}
