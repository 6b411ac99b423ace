//! The discipline within a class behaves as alone, for the flows of its class.

use apportion_core::packet::{CustomerId, Ecn};
use apportion_core::param::Kind;
use apportion_core::random::Stream;
use apportion_core::system::catalog::Catalog;
use apportion_core::system::{LinkContext, LinkQueue};
use apportion_core::units::{Span, Time, Weight};
use apportion_core::{FlowId, FlowSetting, Queue};
use apportion_laws::Laws;

use crate::common::{Log, SimplePacket, Whole, packet, read, setup};

/// The disciplines that can stand in a class.
fn parts() -> impl Iterator<Item = &'static str> {
    let entry = Catalog::default().find("htb").expect("HTB");
    let kind = entry.param("discipline").expect("a discipline in each class").kind;
    let Kind::Discipline(place) = kind else { panic!("{kind:?}") };
    Catalog::inside(place).map(|entry| entry.name)
}

/// The discipline with these keys; flow i is in the leaf `leaf_of[i]`.
fn of_classes(keys: &str, link: &LinkContext<'_>, leaf_of: &[u32]) -> LinkQueue<SimplePacket> {
    let (kind, keys) = keys.split_once(' ').expect("a kind");
    let params = read(kind, &keys.split_whitespace().collect::<Vec<_>>()).expect("valid classes");
    let mut queue = params.build_simple(link);
    for (flow, leaf) in (0..).map(FlowId).zip(leaf_of) {
        assert!(queue.set_flow(flow, FlowSetting::Customer(CustomerId(leaf + 1))));
    }
    queue
}

fn weights(of: &[f64]) -> Vec<Weight> {
    of.iter().map(|&weight| Weight::new(weight).expect("a weight")).collect()
}

/// The packets sent, dropped and marked among random arrivals of four flows, in order.
fn transcript(queue: &mut LinkQueue<SimplePacket>, seed: u64) -> Vec<(u64, &'static str, u32)> {
    let (mut stream, mut log, mut out, mut now) =
        (Stream::new(seed, "arrivals"), Log::default(), vec![], Time::ZERO);
    for id in 0..600u32 {
        // The first four packets fix the order of flows.
        let flow = if id < 4 { id } else { stream.below(4) as u32 };
        let ecn = if stream.below(2) == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let arriving = SimplePacket { ecn, ..packet(id, flow, 60 + stream.below(1_400)) };
        queue.enqueue(now, arriving, &mut log);
        if stream.below(20) < 9 {
            out.extend(queue.dequeue(now, &mut log).map(|sent| (now.as_nanos(), "sent", sent.id)));
        }
        out.extend(log.dropped.drain(..).map(|(at, id, _)| (at.as_nanos(), "dropped", id)));
        out.extend(log.marked.drain(..).map(|(at, id)| (at.as_nanos(), "marked", id)));
        now += Span::from_micros(stream.below(2_000));
    }
    while let Some(sent) = queue.dequeue(now, &mut log) {
        out.push((now.as_nanos(), "sent", sent.id));
    }
    out
}

#[test]
fn in_the_only_class_each_does_what_it_does_alone() {
    let weights = weights(&[1.0, 2.0, 0.5, 1.0]);
    for name in parts().filter(|name| *name != "fifo") {
        for seed in 0..20 {
            let link = setup(&weights);
            let keys = format!("prio discipline={name} limit=30p class.a.prio=0");
            let mut within = of_classes(&keys, &link, &[0; 4]);
            let mut alone = read(name, &["limit=30p"])
                .expect("defaults")
                .build_simple(&LinkContext { name: "link.a", ..link });
            let [within, alone] = [&mut within, &mut alone].map(|queue| transcript(queue, seed));
            assert!(alone.iter().any(|event| event.1 == "dropped") || name == "cobalt", "{name}");
            assert_eq!(within, alone, "{name}, seed {seed}");
        }
    }
}

/// The packets of 1,000 bytes that each of four flows sends in a second over 8 Mb/s, while a flood of flow 0
/// and two packets of each of the others wait.
fn shares(queue: &mut LinkQueue<SimplePacket>) -> [u32; 4] {
    let (mut log, mut now, mut sent) = (Log::default(), Time::ZERO, [0; 4]);
    let mut waiting = [0u32; 4];
    for _ in 0..1_000 {
        for flow in 0..4 {
            while waiting[flow as usize] < if flow == 0 { 50 } else { 2 } {
                queue.enqueue(now, packet(flow, flow, 1_000), &mut log);
                waiting[flow as usize] += 1;
            }
        }
        log.dropped.drain(..).for_each(|(_, flow, _)| waiting[flow as usize] -= 1);
        if let Some(packet) = queue.dequeue(now, &mut log) {
            sent[packet.flow.index()] += 1;
            waiting[packet.flow.index()] -= 1;
        }
        now += Span::from_millis(1);
    }
    sent
}

#[test]
fn a_class_has_its_rate_and_its_flows_their_weights_whatever_one_of_them_sends() {
    let weights = weights(&[1.0, 2.0, 1.0, 1.0]);
    let tree = "limit=40p class.a.rate=6Mbit class.a.ceil=8Mbit class.b.rate=2Mbit class.b.ceil=8Mbit";
    let of = |discipline: &str| {
        shares(&mut of_classes(
            &format!("htb discipline={discipline} {tree}"),
            &setup(&weights),
            &[0, 0, 1, 1],
        ))
    };
    for name in ["drr", "stfq", "scfq", "wfq", "wf2q", "wf2q_plus", "fq_codel", "fq_pie"] {
        for (sent, expected) in of(name).into_iter().zip([250, 500, 125, 125]) {
            assert!(sent.abs_diff(expected) <= 15, "{name}: {:?}", of(name));
        }
    }
    // In a FIFO the flood gets what it sends.
    let fifo = of("fifo");
    assert!(fifo[0] > 700 && fifo[2] + fifo[3] > 240, "{fifo:?}");
}

#[test]
fn classes_keep_the_laws_whatever_divides_them() {
    for name in parts() {
        for (keys, laws) in [
            ("prio class.a.prio=1 class.b.prio=0 class.b.others=true", Laws::default()),
            (
                "htb class.a.rate=1Mbit class.a.ceil=3Mbit class.b.rate=500kbit class.b.others=true",
                Laws::default().holds_back(),
            ),
        ] {
            let keys = keys.replacen(' ', &format!(" discipline={name} limit=9p "), 1);
            laws.cases(64).check_changes(|_| Whole(of_classes(&keys, &setup(&[]), &[0, 1])));
        }
    }
}
