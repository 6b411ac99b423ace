//! Tests of attacks by a lying neighbour.

use super::message::{FlowState, Proof, Report};
use super::tests::{DOWN, Node, UP, exchange, key, ms, node, node_with, report_of};
use super::*;

/// An upstream router, its honest next hop of flow 7, and a report of that next hop that was not delivered
/// yet.
fn acquainted(secret: Option<&[u8]>) -> (Node, Node, Report) {
    let (mut up, mut down) = (node(1, secret, [7, 8]), node(2, secret, [7, 8]));
    down.report(ms(0), [7]);
    exchange(ms(0), &mut up, &mut down);
    up.around.reports.clear();
    down.report(ms(50), [7]);
    let Some((_, Message::Report(report))) = down.said().pop() else { panic!("it reports") };
    (up, down, report)
}

impl Node {
    /// Receives a report with this content. Returns whether any part of it was accepted.
    fn accepts(&mut self, now: Time, port: Port, report: &Report) -> bool {
        let before = self.around.reports.len();
        let secret = self.manager.key.clone();
        let bytes = Message::Report(report.clone()).encode(secret.as_ref()).unwrap();
        self.receive(now, port, &bytes);
        self.around.reports.len() > before
    }

    /// Receives a query without a proof. Returns whether it was answered.
    fn answers(&mut self, now: Time, router: u128, flow: u32) -> bool {
        self.answer(now, router, flow).is_some()
    }

    fn answer(&mut self, now: Time, router: u128, flow: u32) -> Option<Answer> {
        let (router, scope, flows) = (RouterId(router), Scope::Neighbours, vec![key(flow)]);
        let query = Query { router, nonce: 1, scope, proof: None, flows };
        self.receive(now, DOWN, &Message::Query(query).encode(None).unwrap());
        match self.said().pop()? {
            (_, Message::Answer(answer)) => Some(answer),
            _ => None,
        }
    }
}

#[test]
fn a_forged_report_changes_nothing() {
    let (mut up, mut down, genuine) = acquainted(None);
    let mut forged = genuine.clone();
    forged.router = RouterId(3);
    assert!(!up.accepts(ms(50), DOWN, &forged), "from a stranger");
    assert_eq!(up.count("refused_stranger"), 1.0);
    assert!(!up.accepts(ms(50), UP, &genuine), "from another side");
    assert_eq!(up.count("refused_stranger"), 2.0);
    let mut forged = genuine.clone();
    forged.proof.cookie ^= 1;
    assert!(!up.accepts(ms(50), DOWN, &forged), "without the cookie");
    assert_eq!(up.count("refused_cookie"), 1.0);
    // The next hop of one flow is not that of another.
    let mut forged = genuine.clone();
    forged.flows[0].key = key(8);
    assert!(!up.accepts(ms(50), DOWN, &forged));
    assert_eq!(up.count("refused_not_next_hop"), 1.0);
    // The report names an unknown flow.
    forged.flows[0].key = key(99);
    forged.proof.sequence += 1;
    assert!(!up.accepts(ms(50), DOWN, &forged));
    assert_eq!(up.count("refused_not_carried"), 1.0);
    // The real router, whose numbers go on, is not hindered.
    down.report(ms(100), [7]);
    down.report(ms(150), [7]);
    exchange(ms(150), &mut up, &mut down);
    assert_eq!(up.around.flows(), [7]);
}

#[test]
fn a_next_hop_does_not_report_the_flow_of_another() {
    // Router 3 is the next hop of flow 8 and has a cookie of its own.
    let (mut up, _, mut report) = acquainted(None);
    let answer = up.answer(ms(50), 3, 8).unwrap();
    report.router = RouterId(3);
    report.proof = Proof { cookie: answer.cookie, sequence: 1 };
    assert!(!up.accepts(ms(50), DOWN, &report), "flow 7");
    assert_eq!(up.count("refused_not_next_hop"), 1.0);
    report.flows[0].key = key(8);
    report.proof.sequence += 1;
    assert!(up.accepts(ms(50), DOWN, &report));
}

#[test]
fn a_query_in_the_name_of_the_next_hop_does_not_change_its_cookie() {
    let (mut up, _, report) = acquainted(None);
    // The cookie is due for a change from 2 s on; two changes would make it worthless.
    for at in (2_000..5_900).step_by(10) {
        assert!(up.answers(ms(at), 2, 7));
    }
    assert!(up.accepts(ms(5_900), DOWN, &report));
}

#[test]
fn a_flow_that_leaves_by_another_port_now_is_not_reported_by_the_old_next_hop() {
    let (mut up, _, genuine) = acquainted(None);
    up.around.carried.insert(7, Port(5));
    assert!(!up.accepts(ms(50), DOWN, &genuine));
    assert_eq!(up.count("refused_not_carried"), 1.0);
}

#[test]
fn a_replayed_report_changes_nothing() {
    for secret in [None, Some(&b"shared"[..])] {
        let (mut up, mut down, genuine) = acquainted(secret);
        assert!(up.accepts(ms(50), DOWN, &genuine));
        // Late enough not to count as too soon.
        assert!(!up.accepts(ms(500), DOWN, &genuine));
        assert_eq!(up.count("refused_replayed"), 1.0);
        // After two changes of the cookie, 2 s apart, the cookie is invalid too.
        for at in (500..6_000).step_by(50) {
            down.on_timer(ms(at));
            down.report(ms(at), [7]);
            exchange(ms(at), &mut up, &mut down);
        }
        let mut replayed = genuine.clone();
        replayed.proof.sequence = u64::MAX;
        assert!(!up.accepts(ms(6_000), DOWN, &replayed));
        assert_eq!((up.count("refused_cookie"), up.count("refused_replayed")), (1.0, 1.0));
    }
}

#[test]
fn a_replayed_query_changes_no_cookie_and_costs_its_sender_nothing() {
    let (mut up, mut down, _) = acquainted(Some(b"shared"));
    let mut again = None;
    for at in (100..4_000).step_by(50) {
        down.on_timer(ms(at));
        down.report(ms(at), [7]);
        let out = down.sent();
        for out in &out {
            let read = Message::decode(&out.bytes, up.manager.key.as_ref());
            if matches!(read, Ok(Message::Query(_))) {
                again = Some(out.bytes.clone());
            }
            up.receive(ms(at), DOWN, &out.bytes);
            for _ in 0..20 {
                up.receive(ms(at), DOWN, &out.bytes);
            }
            if let Some(old) = &again {
                (0..20).for_each(|_| _ = up.receive(ms(at), DOWN, old));
            }
        }
        for out in up.sent() {
            down.receive(ms(at), UP, &out.bytes);
        }
    }
    // 78 intervals and the first; each message was replayed 20 times, and so was the last query with each.
    assert_eq!(up.count("heard"), 79.0);
    assert!(up.count("refused_replayed") > 2_000.0);
}

#[test]
fn a_truncated_or_changed_report_changes_nothing() {
    let (mut up, _, genuine) = acquainted(Some(b"shared"));
    let secret = up.manager.key.clone();
    let bytes = Message::Report(genuine.clone()).encode(secret.as_ref()).unwrap();
    for cut in 0..bytes.len() {
        up.receive(ms(50), DOWN, &bytes[..cut]);
    }
    assert_eq!(up.count("refused_truncated"), bytes.len() as f64);
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        up.receive(ms(50), DOWN, &flipped);
    }
    // Without the key, or with another.
    up.receive(ms(50), DOWN, &Message::Report(genuine.clone()).encode(None).unwrap());
    let other = Key::new(b"other");
    up.receive(ms(50), DOWN, &Message::Report(genuine.clone()).encode(Some(&other)).unwrap());
    assert!(up.around.flows().is_empty());
    assert!(up.accepts(ms(50), DOWN, &genuine), "and the real one still counts");
}

#[test]
fn an_inflated_report_changes_nothing() {
    let (mut up, _, mut report) = acquainted(None);
    let absurd = [(1_000, 1_001), (0, 0), (0, 1), ((1 << 50) + 1, 0), (u64::MAX, u64::MAX)];
    for (arrived, departed) in absurd {
        report.flows[0].arrived = Bytes::new(arrived);
        report.flows[0].departed = Bytes::new(departed);
        assert!(!up.accepts(ms(50), DOWN, &report), "{departed} of {arrived} departed");
        report.proof.sequence += 1;
    }
    assert_eq!(up.count("refused_inflated"), 5.0);
    report.flows[0] = FlowState { key: key(7), arrived: Bytes::new(1 << 50), departed: Bytes::ZERO };
    let limit = ManagerParams::default().longest_interval;
    for interval in [Span::ZERO, limit + Span::from_nanos(1), Span::MAX] {
        report.interval = interval;
        assert!(!up.accepts(ms(50), DOWN, &report), "in {interval}");
        report.proof.sequence += 1;
    }
    assert_eq!(up.count("refused_interval"), 3.0);
    report.interval = limit;
    assert!(up.accepts(ms(50), DOWN, &report), "the limits themselves may be");
    // An honest router sends no such report.
    let mut down = node(2, None, [7]);
    let wrong = FlowReport { departed: Bytes::new(1_001), ..report_of(7) };
    let never = FlowReport { interval: Span::ZERO, ..report_of(7) };
    down.manager.report(ms(0), &[wrong, never], &down.around);
    assert_eq!(down.sent(), []);
}

#[test]
fn reports_of_a_flow_are_bounded_in_rate() {
    // Every 5 ms for a second, and twice in each message: one every 25 ms counts.
    let (mut up, _, mut report) = acquainted(None);
    report.flows.push(report.flows[0]);
    for at in (100..1_100).step_by(5) {
        report.proof.sequence += 1;
        up.accepts(ms(at), DOWN, &report);
    }
    assert_eq!(up.around.reports.len(), 40);
    assert_eq!(up.count("refused_too_soon"), 400.0 - 40.0);
}

#[test]
fn messages_of_a_router_are_bounded_in_rate_and_only_its_own_count() {
    let (mut up, _, mut report) = acquainted(None);
    let mut forged = report.clone();
    forged.proof.cookie ^= 1;
    // Ten thousand in its name, without the cookie, use none of its allowance.
    (0..10_000).for_each(|_| assert!(!up.accepts(ms(50), DOWN, &forged)));
    assert!(up.accepts(ms(50), DOWN, &report));
    // 100 of 10,000 at one instant are accepted, including the two above and before; then one a ms.
    let send = |up: &mut Node, now, report: &mut Report| {
        report.proof.sequence += 1;
        up.accepts(now, DOWN, report);
    };
    (0..10_000).for_each(|_| send(&mut up, ms(50), &mut report));
    assert_eq!(up.count("refused_rate"), 10_000.0 - 99.0);
    (0..10_000).for_each(|_| send(&mut up, ms(60), &mut report));
    assert_eq!(up.count("refused_rate"), 20_000.0 - 99.0 - 10.0);
}

#[test]
fn a_flood_of_queries_moves_no_next_hop() {
    let (mut up, mut down, _) = acquainted(None);
    let mut answered = 0;
    for at in (100..10_000).step_by(50) {
        // 1000 strangers query the flow every 50 ms, in the name of the next hop too; the honest router goes
        // on.
        for stranger in 0..1_000 {
            answered += u32::from(up.answers(ms(at), 1_000 + stranger + u128::from(at), 7));
        }
        (0..10).for_each(|_| _ = up.answers(ms(at), 2, 7));
        down.on_timer(ms(at));
        down.report(ms(at), [7]);
        exchange(ms(at), &mut up, &mut down);
    }
    assert_eq!(answered, 0, "the flow has a next hop");
    // 198 intervals; none is lost.
    assert_eq!(up.around.reports.len(), 198);
    assert!(up.count("refused_query_rate") > 0.0 && up.count("refused_claimed") > 0.0);
}

#[test]
fn a_next_hop_that_fell_silent_makes_room() {
    let (mut up, _, _) = acquainted(None);
    // The last report of the next hop came at 0.
    assert!(!up.answers(ms(5_999), 3, 7));
    assert!(up.answers(ms(6_000), 3, 7));
    // A repeated query extends nothing: an old query, replayed again and again, holds a flow for only 6 s.
    for at in (6_000..12_000).step_by(50) {
        assert!(up.answers(ms(at), 3, 7) && !up.answers(ms(at), 4, 7), "{at}");
    }
    assert!(up.answers(ms(12_000), 4, 7));
}

#[test]
fn tables_are_bounded_and_what_lives_in_them_stays() {
    let mut up = node_with(1, None, 0..100, |params| {
        params.flows = 20;
        params.neighbours = 10;
        params.burst = 1_000;
    });
    let mut down = node(2, None, [0]);
    down.report(ms(0), [0]);
    exchange(ms(0), &mut up, &mut down);
    // Nine more routers, then ten more flows of one of them.
    let answered: Vec<_> =
        (1..100).filter(|flow| up.answers(ms(1), 100 + u128::from(*flow), *flow)).collect();
    assert_eq!(answered, (1..10).collect::<Vec<_>>());
    let answered: Vec<_> = (10..100).filter(|flow| up.answers(ms(1), 101, *flow)).collect();
    assert_eq!(answered, (10..20).collect::<Vec<_>>());
    assert_eq!(up.count("refused_full"), 90.0 + 80.0);
    down.report(ms(50), [0]);
    exchange(ms(50), &mut up, &mut down);
    assert_eq!(up.around.flows(), [0, 0]);
    // The table of the reporting router is bounded as well, and loses the oldest.
    let mut down = node_with(2, None, 0..100, |params| params.flows = 20);
    for flow in 0..100 {
        down.report(ms(u64::from(flow)), [flow]);
    }
    assert_eq!((down.manager.upstream.len(), down.manager.agenda.len()), (20, 20));
    let kept: Vec<_> = (0..100).filter(|flow| down.manager.upstream.get(FlowId(*flow)).is_some()).collect();
    assert_eq!(kept, (80..100).collect::<Vec<_>>());
    // Everything is forgotten in time.
    down.report(ms(10_000), []);
    assert_eq!((down.manager.upstream.len(), down.manager.agenda.len()), (0, 0));
}

#[test]
fn what_waits_to_be_sent_is_bounded() {
    let mut down = node_with(2, None, 0..100, |params| params.outbox = 10);
    down.report(ms(0), 0..100);
    down.on_timer(ms(100));
    // One broadcast before, a hundred queries towards sources.
    assert_eq!((down.sent().len(), down.count("unsent_outbox_full")), (10, 91.0));
}

#[test]
fn an_unsolicited_answer_changes_nothing() {
    let mut down = node(2, None, [7]);
    down.report(ms(0), [7]);
    let Some((_, Message::Query(query))) = down.said().pop() else { panic!("it asks") };
    let answer = |router, nonce, flow| {
        let answer = Answer { router: RouterId(router), nonce, cookie: 9, flows: vec![key(flow)] };
        Message::Answer(answer).encode(None).unwrap()
    };
    down.receive(ms(1), UP, &answer(3, query.nonce ^ 1, 7));
    down.receive(ms(1), UP, &answer(3, query.nonce, 8));
    assert_eq!((down.count("refused_unasked"), down.sent()), (2.0, Vec::new()));
    down.receive(ms(1), UP, &answer(1, query.nonce, 7));
    // The first answer counts; one of another router comes too late.
    down.receive(ms(1), UP, &answer(3, query.nonce, 7));
    assert_eq!(down.count("refused_unasked"), 3.0);
    let said = down.said();
    assert!(matches!(&said[..], [(Destination::Router(RouterId(1)), Message::Report(_))]), "{said:?}");
    // Only the known router answers a query to it.
    down.report(ms(1_001), [7]);
    let again = down.said().into_iter().find_map(|(_, message)| match message {
        Message::Query(query) => Some(query.nonce),
        _ => None,
    });
    down.receive(ms(1_002), UP, &answer(3, again.unwrap(), 7));
    assert_eq!(down.count("refused_unasked"), 4.0);
}

#[test]
fn a_message_in_this_routers_own_name_is_refused() {
    let mut up = node(1, None, [7]);
    assert!(!up.answers(ms(0), 1, 7));
    assert_eq!(up.count("refused_own"), 1.0);
}

#[test]
fn cookies_and_nonces_differ_and_differ_between_routers() {
    let draws = |seed| {
        let mut secret = Secret::new(Stream::new(seed, "sffc"));
        (0..100).map(|_| secret.draw()).collect::<Vec<_>>()
    };
    let mut all = [draws(1), draws(2)].concat();
    assert_eq!(all[..100], draws(1), "a run repeats");
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 200);
}

#[test]
fn two_routers_that_share_a_key_agree_and_others_do_not() {
    let (mut up, _, genuine) = acquainted(Some(b"shared"));
    assert!(up.accepts(ms(50), DOWN, &genuine));
    for (one, other) in [(None, Some(&b"shared"[..])), (Some(&b"shared"[..]), None)] {
        let (mut up, mut down) = (node(1, one, [7]), node(2, other, [7]));
        down.report(ms(0), [7]);
        exchange(ms(0), &mut up, &mut down);
        assert!(up.around.flows().is_empty());
    }
}

#[test]
fn a_report_shows_the_proof_of_its_answer() {
    let (_, _, report) = acquainted(None);
    assert_eq!(report.proof, Proof { cookie: report.proof.cookie, sequence: 2 });
    assert_eq!((report.router, report.interval), (RouterId(2), Span::from_millis(50)));
}
