//! Changes and drops while packets wait: "limit trimming" of `fq.json` (34c55367), `fq_codel.json` (a7bee4e7)
//! and `pie.json` (ab93e0dd), and `infra/qdiscs.json` (0d5c27ec).

use apportion_core::{Ecn, Queue};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, none};

pub fn cases() -> Vec<Case> {
    let deleted =
        "a queue is replaced as a whole; its packets move into the new one, and no class is deleted";
    vec![
        agrees("fq 9479, limit trimming", || trimmed("fq")),
        agrees("fq_codel 0436, limit trimming", || trimmed("fq_codel")),
        agrees("pie 6158, limit trimming", || trimmed("pie")),
        none("infra ca5e, class deleted with a packet", deleted),
        none("infra e4b7, class of the root deleted with a packet", deleted),
        none("infra 33a9, backlog beside an ingress", deleted),
        none("infra a4b9, length of a class that was deleted", deleted),
        agrees("infra c024, token bucket over queues of one packet", bucket_over_one),
        agrees("infra a4bb, fq_codel under HTB", || {
            last_packet_dropped("htb discipline=fq_codel limit=1p class.a.rate=1kbit class.a.others=true");
        }),
        none("infra a4be, fq_codel under QFQ", "there is no QFQ"),
        none("infra a4bf, fq_codel under HFSC", "the queues of H-FSC's classes are FIFOs"),
        agrees("infra a4c0, fq_codel under DRR", || last_packet_dropped("drr drop=codel limit=1p")),
    ]
}

/// Ten packets wait as `limit` falls from 10 to 1. The link then has a new queue, into which the packets of
/// the old one move; nine do not fit, are reported, and no longer count.
fn trimmed(kind: &str) {
    let [mut old, mut new] = [10, 1].map(|limit| Bench::new(&format!("{kind} limit={limit}p")));
    old.burst(ms(0.0), 10, 54, Ecn::NotEct);
    assert_eq!((old.held(), old.held_bytes(), old.drops()), (10, 540, 0));
    while let Some(packet) = old.queue.drain(ms(1.0)) {
        new.queue.enqueue(ms(1.0), packet, &mut new.log);
    }
    assert_eq!((old.held(), old.held_bytes()), (0, 0));
    assert_eq!((new.held(), new.held_bytes(), new.drops()), (1, 54, 9));
    assert!(new.queue.dequeue(ms(1.0), &mut new.log).is_some());
    assert!(new.queue.dequeue(ms(1.0), &mut new.log).is_none());
    assert_eq!((new.held(), new.held_bytes()), (0, 0));
}

/// A token bucket that is far too slow, over two priorities that hold one packet each: what they drop no
/// longer counts, and what waits leaves in the end.
fn bucket_over_one() {
    let classes = "class.low.prio=1 class.high.prio=0";
    let table = format!("prio limit=1p {classes} shaper=token_bucket rate=100bit burst=2000B");
    let mut bench = Bench::new(&table).with_classes(2);
    for i in 0..4 {
        bench.arrive(ms(f64::from(i)), i % 2, 1_442, Ecn::NotEct);
        bench.depart(ms(f64::from(i)));
    }
    bench.arrive(ms(4.0), 0, 1_442, Ecn::NotEct);
    assert!(bench.drops() > 0);
    bench.empty(ms(4.0));
    assert_eq!((bench.held(), bench.held_bytes()), (0, 0));
}

/// A child that drops whatever exceeds one packet: its parent serves it while it holds one, and never
/// afterwards.
fn last_packet_dropped(table: &str) {
    let mut bench = Bench::new(table);
    let mut now = ms(0.0);
    for round in 0..20 {
        bench.burst(now, 5, 98, Ecn::NotEct);
        assert!(bench.held() <= 1, "{}", bench.held());
        now = bench.empty(now);
        assert_eq!((bench.held(), bench.held_bytes()), (0, 0), "in round {round}");
    }
    assert_eq!((bench.drops(), bench.sent.len()), (80, 20));
}
