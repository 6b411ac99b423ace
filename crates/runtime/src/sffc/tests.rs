//! The Manager among honest, absent and lying neighbours.

use std::collections::BTreeMap;

use super::*;

/// A port by which no flow of the tests leaves.
pub(super) const UP: Port = Port(0);
/// The port by which flows leave.
pub(super) const DOWN: Port = Port(1);

/// The router around a Manager: its flows by port, and the reports that it got.
#[derive(Default)]
pub(super) struct Around {
    pub carried: BTreeMap<u32, Port>,
    pub reports: Vec<(Port, FlowReport)>,
}

impl Around {
    fn carrying(flows: impl IntoIterator<Item = u32>) -> Self {
        Self { carried: flows.into_iter().map(|flow| (flow, DOWN)).collect(), reports: Vec::new() }
    }

    /// Flows of the reports, in order.
    pub fn flows(&self) -> Vec<u32> {
        self.reports.iter().map(|(_, report)| report.flow.0).collect()
    }
}

pub(super) fn key(flow: u32) -> FlowKey {
    FlowKey::from_bytes(&flow.to_be_bytes()).unwrap()
}

impl Forwarding for Around {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        self.carried.contains_key(&flow.0).then(|| key(flow.0))
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        let flow = u32::from_be_bytes(key.as_bytes().try_into().ok()?);
        self.carried.contains_key(&flow).then_some(FlowId(flow))
    }
    fn carries(&self, port: Port, flow: FlowId) -> bool {
        self.carried.get(&flow.0) == Some(&port)
    }
    fn on_report(&mut self, port: Port, report: FlowReport) {
        self.reports.push((port, report));
    }
}

/// A router: its Manager and the context.
pub(super) struct Node {
    pub manager: Manager,
    pub around: Around,
}

pub(super) fn node(id: u128, key: Option<&[u8]>, flows: impl IntoIterator<Item = u32>) -> Node {
    node_with(id, key, flows, |_| ())
}

pub(super) fn node_with(
    id: u128,
    key: Option<&[u8]>,
    flows: impl IntoIterator<Item = u32>,
    change: impl FnOnce(&mut ManagerParams),
) -> Node {
    let mut params = ManagerParams::default();
    change(&mut params);
    let manager = Manager::new(RouterId(id), &params, key, Stream::new(id as u64, "sffc"));
    Node { manager, around: Around::carrying(flows) }
}

/// Half of 1000 B left in 50 ms.
pub(super) fn report_of(flow: u32) -> FlowReport {
    let (arrived, departed) = (Bytes::new(1_000), Bytes::new(500));
    FlowReport { flow: FlowId(flow), arrived, departed, interval: Span::from_millis(50) }
}

impl Node {
    pub fn report(&mut self, now: Time, flows: impl IntoIterator<Item = u32>) {
        let reports: Vec<_> = flows.into_iter().map(report_of).collect();
        self.manager.report(now, &reports, &self.around);
    }

    pub fn receive(&mut self, now: Time, port: Port, bytes: &[u8]) -> Handled {
        self.manager.receive(now, port, bytes, &mut self.around)
    }

    pub fn on_timer(&mut self, now: Time) {
        self.manager.on_timer(now, &self.around);
    }

    pub fn sent(&mut self) -> Vec<Transmit> {
        core::iter::from_fn(|| self.manager.transmit()).collect()
    }

    /// The destinations and messages that wait to be sent.
    pub fn said(&mut self) -> Vec<(Destination, Message)> {
        let key = self.manager.key.clone();
        let read = |out: Transmit| (out.to, Message::decode(&out.bytes, key.as_ref()).unwrap());
        self.sent().into_iter().map(read).collect()
    }

    pub fn count(&self, name: &str) -> f64 {
        let mut found = None;
        self.manager.statistics(&mut |shown, value| {
            if shown == name {
                found = Some(value);
            }
        });
        // Counts of zero are not reported.
        found.unwrap_or_default()
    }
}

/// Carries messages between an upstream router and the one behind its port `DOWN`, without delay, until both
/// are silent.
pub(super) fn exchange(now: Time, upstream: &mut Node, downstream: &mut Node) {
    for _ in 0..10 {
        for out in downstream.sent() {
            upstream.receive(now, DOWN, &out.bytes);
        }
        for out in upstream.sent() {
            downstream.receive(now, UP, &out.bytes);
        }
    }
}

pub(super) fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

// ---------------------------------------------------------------------------------------------
// Discovery

#[test]
fn a_neighbour_is_found_by_broadcast_and_receives_the_report_that_waited() {
    let (mut up, mut down) = (node(1, None, [7]), node(2, None, [7]));
    down.report(ms(0), [7]);
    assert_eq!(down.manager.next_timer(), Some(ms(100)));
    exchange(ms(0), &mut up, &mut down);
    assert_eq!(up.around.reports, [(DOWN, report_of(7))]);
    // The second report goes there at once.
    down.report(ms(50), [7]);
    let said = down.said();
    assert!(matches!(&said[..], [(Destination::Router(RouterId(1)), Message::Report(_))]), "{said:?}");
    assert_eq!(down.manager.next_timer(), None);
}

#[test]
fn a_router_whose_flow_comes_from_the_side_of_the_query_does_not_answer() {
    // The downstream router queries all neighbours; the upstream one sends the flow elsewhere.
    let (mut other, mut down) = (node(3, None, [7]), node(2, None, [7]));
    down.report(ms(0), [7]);
    for out in down.sent() {
        assert_eq!(other.receive(ms(0), UP, &out.bytes), Handled::Taken);
    }
    assert_eq!(other.sent(), []);
}

#[test]
fn flows_that_start_together_share_a_query_and_an_answer() {
    // A flow takes 6 bytes of the 1146: 191 fit, so 400 flows need three queries.
    let (mut up, mut down) = (node(1, None, 0..400), node(2, None, 0..400));
    down.report(ms(0), 0..400);
    exchange(ms(0), &mut up, &mut down);
    assert_eq!((down.count("queries_sent"), up.count("answers_sent")), (3.0, 3.0));
    // A state takes 22: 52 a report, separately for each answer (52 + 52 + 52 + 35, twice, and 18).
    assert_eq!(down.count("reports_sent"), 9.0);
    assert_eq!(up.around.flows(), (0..400).collect::<Vec<_>>());
    // Later reports are split only by size, and by cookie, which is the same: 400 / 52 = 7.7.
    down.report(ms(50), 0..400);
    exchange(ms(50), &mut up, &mut down);
    assert_eq!((down.count("reports_sent"), up.count("heard")), (17.0, 800.0));
}

#[test]
fn a_query_towards_the_source_passes_routers_that_do_not_carry_the_flow() {
    let mut down = node(2, None, [7]);
    // One router does not know the flow, one sends it another way.
    let (mut stranger, mut elsewhere) = (node(3, None, []), node(4, None, [7]));
    elsewhere.around.carried.insert(7, Port(9));
    let mut up = node(1, None, [7]);
    down.report(ms(0), [7]);
    assert_eq!(down.sent().len(), 1, "the broadcast, which no router receives");
    down.on_timer(ms(100));
    let out = down.manager.transmit().unwrap();
    assert_eq!(out.to, Destination::TowardsSource(FlowId(7)));
    assert_eq!(stranger.receive(ms(100), DOWN, &out.bytes), Handled::Pass);
    assert_eq!(elsewhere.receive(ms(100), DOWN, &out.bytes), Handled::Pass);
    assert_eq!(up.receive(ms(100), DOWN, &out.bytes), Handled::Taken);
    exchange(ms(100), &mut up, &mut down);
    assert_eq!((stranger.sent(), elsewhere.sent()), (Vec::new(), Vec::new()));
    // The report of time 0 is old by now; the next one is sent at once.
    assert!(up.around.flows().is_empty());
    down.report(ms(150), [7]);
    exchange(ms(150), &mut up, &mut down);
    assert_eq!(up.around.flows(), [7]);
}

#[test]
fn a_search_without_answer_ends_and_starts_again_only_after_a_pause() {
    let mut down = node(2, None, [7]);
    down.report(ms(0), [7]);
    let mut asked = Vec::new();
    let mut now = ms(0);
    loop {
        asked.extend(down.sent().into_iter().map(|out| (now, out.to)));
        let Some(next) = down.manager.next_timer() else { break };
        now = next;
        down.on_timer(now);
    }
    // 100 ms each for the neighbours and the first query towards the source, then 200 and 400.
    let source = Destination::TowardsSource(FlowId(7));
    let expected =
        [(ms(0), Destination::Neighbours), (ms(100), source), (ms(200), source), (ms(400), source)];
    assert_eq!(asked, expected);
    // The search ended at 800 ms and pauses for 6 s, reports or not.
    assert_eq!(now, ms(6_800));
    let mut down = node(2, None, [7]);
    for at in (0..=7_000).step_by(50) {
        down.on_timer(ms(at));
        down.report(ms(at), [7]);
    }
    let broadcasts = down.said().iter().filter(|(to, _)| *to == Destination::Neighbours).count();
    assert_eq!((broadcasts, down.count("searches_without_answer")), (2, 1.0));
}

#[test]
fn a_late_answer_counts() {
    // The first query towards the source is answered after the second was sent.
    let (mut up, mut down) = (node(1, None, [7]), node(2, None, [7]));
    down.report(ms(0), [7]);
    down.on_timer(ms(100));
    let first = down.sent().pop().unwrap();
    down.on_timer(ms(200));
    up.receive(ms(210), DOWN, &first.bytes);
    down.receive(ms(220), UP, &up.sent()[0].bytes);
    assert_eq!(down.manager.next_timer(), None);
    assert_eq!(down.count("refused_unasked"), 0.0);
}

#[test]
fn cookies_change_without_a_report_being_lost_and_a_silent_router_is_asked_for_again() {
    // Two flows whose queries never coincide, reported every 50 ms for 20 s.
    let (mut up, mut down) = (node(1, None, 0..2), node(2, None, 0..2));
    let mut cookies = Vec::new();
    for at in (0..20_000).step_by(50) {
        let flows = if at == 0 { 0..1 } else { 0..2 };
        down.on_timer(ms(at));
        down.report(ms(at), flows);
        for out in down.sent() {
            if let Ok(Message::Report(report)) = Message::decode(&out.bytes, None) {
                cookies.push(report.proof.cookie);
            }
            up.receive(ms(at), DOWN, &out.bytes);
        }
        exchange(ms(at), &mut up, &mut down);
    }
    cookies.sort_unstable();
    cookies.dedup();
    // Changed at the first query that is 2 s or more after the last change.
    assert!((8..=11).contains(&cookies.len()), "{}", cookies.len());
    assert_eq!((up.count("heard"), up.count("refused_cookie")), (799.0, 0.0));
    // The neighbour is replaced: it is queried again within a second, and the new one is found by broadcast.
    let mut new = node(5, None, 0..2);
    for at in (20_000..22_000).step_by(50) {
        down.on_timer(ms(at));
        down.report(ms(at), 0..2);
        for out in down.sent() {
            if out.to == Destination::Neighbours || out.to == Destination::Router(RouterId(5)) {
                new.receive(ms(at), DOWN, &out.bytes);
            }
        }
        for out in new.sent() {
            down.receive(ms(at), UP, &out.bytes);
        }
    }
    assert!(new.count("heard") > 30.0, "{}", new.count("heard"));
}

#[test]
fn a_router_that_starts_anew_is_found_again() {
    let (mut up, mut down) = (node(1, None, [7]), node(2, None, [7]));
    let run = |up: &mut Node, down: &mut Node, from: u64, to: u64| {
        for at in (from..to).step_by(50) {
            down.on_timer(ms(at));
            down.report(ms(at), [7]);
            exchange(ms(at), up, down);
        }
    };
    run(&mut up, &mut down, 0, 500);
    // Upstream: the reporting router queries again after half a renewal, 1 s.
    let mut up = node(1, None, [7]);
    run(&mut up, &mut down, 500, 1_500);
    assert!(up.count("heard") > 8.0, "{}", up.count("heard"));
    // Downstream: its numbers start again, and the old ones are forgotten with the claim, after 6 s.
    let before = up.count("heard");
    let mut down = node(2, None, [7]);
    run(&mut up, &mut down, 1_500, 9_000);
    assert!(up.count("heard") > before + 20.0, "{}", up.count("heard"));
}

#[test]
fn a_number_that_means_another_flow_now_is_another_flow() {
    /// Flow 0 under another name.
    struct Renamed(Around);
    impl Forwarding for Renamed {
        fn key(&self, _: FlowId) -> Option<FlowKey> {
            Some(key(99))
        }
        fn flow(&self, name: &FlowKey) -> Option<FlowId> {
            (*name == key(99)).then_some(FlowId(0))
        }
        fn carries(&self, port: Port, flow: FlowId) -> bool {
            self.0.carries(port, flow)
        }
        fn on_report(&mut self, port: Port, report: FlowReport) {
            self.0.on_report(port, report);
        }
    }
    let (mut up, mut down) = (node(1, None, [0]), node(2, None, [0]));
    down.report(ms(0), [0]);
    exchange(ms(0), &mut up, &mut down);
    // Downstream: the known state is that of the other flow.
    down.manager.report(ms(50), &[report_of(0)], &Renamed(Around::carrying([0])));
    let said = down.said();
    assert!(matches!(&said[..], [(Destination::Neighbours, Message::Query(_))]), "{said:?}");
    // Upstream: another router may be the next hop of the new flow.
    let Message::Query(mut query) = said[0].1.clone() else { panic!() };
    query.router = RouterId(3);
    let bytes = Message::Query(query).encode(None).unwrap();
    up.manager.receive(ms(50), DOWN, &bytes, &mut Renamed(Around::carrying([0])));
    assert_eq!(up.sent().len(), 1);
}

// ---------------------------------------------------------------------------------------------
// Rules

/// Reports flow 7 every 50 ms in these milliseconds.
fn report_from(down: &mut Node, from: u64, to: u64, mut between: impl FnMut(Time, &mut Node)) {
    for now in (from..to).step_by(50).map(ms) {
        down.report(now, [7]);
        down.on_timer(now);
        between(now, down);
    }
}

#[test]
fn a_flow_gets_a_rule_until_its_upstream_router_answers() {
    let mut down = node(2, None, [7]);
    report_from(&mut down, 0, 3_000, |_, down| drop(down.sent()));
    let rules: Vec<_> = down.manager.rules(ms(3_000)).collect();
    // 10,000 B/s depart.
    assert_eq!(
        rules.iter().map(|rule| (rule.key, rule.rate.as_bit())).collect::<Vec<_>>(),
        [(key(7), 84_000)]
    );
    let mut up = node(1, None, [7]);
    report_from(&mut down, 3_000, 12_000, |now, down| exchange(now, &mut up, down));
    assert!(!up.around.reports.is_empty());
    assert_eq!(down.manager.rules(ms(12_000)).count(), 0);
}

#[test]
fn a_flow_whose_upstream_router_answers_gets_no_rule() {
    let (mut up, mut down) = (node(1, None, [7]), node(2, None, [7]));
    report_from(&mut down, 0, 20_000, |now, down| exchange(now, &mut up, down));
    assert_eq!(down.manager.rules(ms(20_000)).count(), 0);
}

#[test]
fn a_rule_outlasts_searches_and_ends_after_the_last_report() {
    let mut down = node(2, None, [7]);
    report_from(&mut down, 0, 30_000, |now, down| {
        drop(down.sent());
        assert!(now < ms(2_000) || down.manager.rules(now).count() == 1, "{now:?}");
    });
    assert_eq!(down.manager.rules(ms(39_900)).count(), 1);
    assert_eq!(down.manager.rules(ms(40_000)).count(), 0);
}
