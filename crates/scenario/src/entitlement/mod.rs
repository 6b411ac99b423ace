//! Entitlements of the flows of a scenario over time: by weights and guarantees, or by agreements, customers
//! or tickets if there are any.
//!
//! A flow is due a rate at each time, which depends on the other flows with a demand then: the weighted
//! max-min allocation with guarantees ([`max_min`](apportion_core::fairness::max_min())), or that of
//! customers or tickets. It is constant between two events, which are flows whose demand begins or ends, and
//! changes of link rates, tickets, weights, guarantees and rates of sources. The amount due between two times
//! is the integral.
//!
//! Equations. At time t, let A(t) be the flows with a demand, C_l(t) the rate of link l, and d_f(t) the
//! demand of f, infinite for greedy sources and files. x(t) = maxmin(C(t), {(path_f, w_f(t), g_f(t), d_f(t))
//! : f in A(t)}), where guarantees on a link whose sum exceeds its rate are reduced in proportion, first on
//! the link that can keep the least part of them
//! ([`fit_guarantees`](apportion_core::fairness::fit_guarantees)). Flow f is due the integral of x_f(t) dt.
//! For a recorded link, C_l(t) is the mean of its opportunities in windows of equal length, which are as long
//! as the default buffer takes at the mean rate, or a little longer: 100 ms, and the time of 96 kB below
//! 7.7 Mb/s. A queue smooths faster variation. If a queue charges packets more than their size (CAKE's
//! framing), the charged bytes are divided, so that a flow of small packets is due less. A queue that paces
//! each flow (FQ's `maxrate`) bounds entitlements. Rates are rounded down to a millionth of a bit per second,
//! times are whole nanoseconds, so integrals are exact integers ([`Amount`]), additive, and exceed the
//! capacity of a link at most by the rounding of the allocation.
//!
//! | module | holds |
//! |---|---|
//! | `population` | present demands, by classes of equal flows; the links that can limit them |
//! | `piece` | the allocation while nothing changes |
//! | `due` | its integral over time |
//! | `demand` | demands of sources |
//!
//! Cost: with k events, m classes of flows with a demand at a time and p links on their paths that can limit
//! them, O(k (log(flows) + (m p + links) log(m + links))) and O(k m) memory, whatever the number of flows.
//! Flows are of a class if path (without links that cannot limit it), weight, guarantee, tickets, customer
//! and demand are equal, so 10,000 transfers between ten pairs of hosts are ten classes. The sum of (m p +
//! links) over all pieces is at most [`WORK_MAX`].

mod demand;
mod due;
mod piece;
mod population;

use std::borrow::Cow;

use apportion_core::limit::LinkLimit;
use apportion_core::mark::MarkerParams;
use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, Rate, Span, Time, Weight};

pub use due::{Amount, Due};

use crate::model::{Cbr, Change, Flow, Link, LinkId, OnOff, Poisson, Scenario, Setting, Source, Start};
pub(crate) use demand::mean_demand;
use due::Steps;
pub(crate) use population::ends;
use population::{Class, Population, limiting_links};

/// Maximum of the sum, over the pieces of a scenario, of links on paths of classes, for which entitlements
/// are computed. Chosen: at most some seconds and 200 MB.
pub const WORK_MAX: usize = 5_000_000;
/// Maximum of this sum for the windows of recorded links, which are made longer to stay within it. Chosen: a
/// fifth of the overall maximum.
const WINDOW_WORK_MAX: usize = WORK_MAX / 5;

/// The work of a division by agreements, in divisions by weights. Chosen: some hundred rounds from each start.
const ROUNDS: usize = 100;

/// The demand of a flow at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// The flow has no data to send.
    Nothing,
    /// As much as possible: for this number of connections that each count as a flow, which is one except for
    /// short flows.
    Everything(u32),
    /// The mean demand of its source, or as much as possible if that is infinite.
    Mean,
    /// On-off sources: this many of its connections are on.
    Bursts(u32),
    /// The rate of its sources' writes, all connections together.
    Rate(Rate),
}

/// The start of another demand of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The time from which it holds.
    pub at: Time,
    pub wants: Wants,
}

impl Scenario {
    /// Entitlements of the flows over the measured part of the run, in the order of flows: means of rates
    /// over time. With agreements, or a queue `rcs`, they are the congestion shares of who pays whom, whatever
    /// tickets and customers there are. Else rates are by tickets if flows have tickets, else weighted max-min with guarantees. If flows
    /// have customers, rates are weighted max-min of customers and then of their flows, with guarantees of
    /// flows as floors of both.
    ///
    /// If links that can limit flows divide among hosts, no customers are declared, and all weights are equal
    /// or differ within some host, flows are entitled to the max-min of hosts, of their peers with `both`,
    /// and then of their flows by their weights. Weights that differ only between hosts mean that hosts
    /// should not have equal shares.
    ///
    /// `None` if entitlements are undefined, that is if:
    /// - flows with tickets share a network with flows without;
    /// - connections of short flows have tickets each;
    /// - a flow adjusts its tickets to hold a rate;
    /// - a flow crosses links that divide among hosts in different ways;
    /// - flows between the same two hosts cross different links that divide by `both`;
    /// - customers or hosts are limited at several links and the division does not converge;
    /// - by agreements several divisions are in equilibrium;
    /// - a queue has its own classes;
    /// - flows cross groups of links, on which [each run](Scenario::hashed) distributes them;
    /// - queues charge packets of several sizes and the division does not converge;
    /// - the computation would take more than [`WORK_MAX`].
    ///
    /// Tickets on acknowledgements flow from the sinks backwards over the path of the data, as receiver-based
    /// tickets assume; sinks that issue tickets then decide instead of the source.
    ///
    /// It is a property of the scenario, not of a run: see [`expected_activity`](Self::expected_activity).
    /// Headers that TCP adds to application-limited sources, and acknowledgements, do not count.
    #[must_use]
    pub fn entitlements(&self) -> Option<Vec<Rate>> {
        self.entitlements_between(self.measure_from, self.stop)
    }

    /// Like [`entitlements`](Self::entitlements), between two times; flows that are absent in between get
    /// zero.
    #[must_use]
    pub fn entitlements_between(&self, from: Time, to: Time) -> Option<Vec<Rate>> {
        let due = self.due(&self.expected_activity(), from, to)?;
        Some((0..self.flows.len()).map(|flow| due.amount(flow, from, to).over(to.since(from))).collect())
    }

    /// Demands of flows over time, if the scenario defines them. Random starts count at the middle of their
    /// interval, finite files as greedy. All other sources have their mean rate, and replays end with their
    /// last packet.
    #[must_use]
    pub fn expected_activity(&self) -> Vec<Vec<Phase>> {
        self.flows.iter().map(|flow| expected(flow, self.stop)).collect()
    }

    /// Entitlements of flows between two times with these demands, by flow, ascending in time; zero before
    /// the first phase. `None` as for [`entitlements`](Self::entitlements).
    #[must_use]
    pub fn due(&self, activity: &[Vec<Phase>], from: Time, to: Time) -> Option<Due> {
        let holds_rate = |flow: &Flow| matches!(flow.mark.as_deref(), Some(MarkerParams::Tickets(mark)) if mark.hold.is_some());
        if self.has_classes() || self.divides() || self.flows.iter().any(holds_rate) {
            return None;
        }
        let timed = self.as_recorded(from, to);
        let carried = timed.as_carried();
        let mut walk = Walk::new(&carried, from, to);
        let mut events = events(&carried, activity);
        events.sort_by_key(|event| event.at);
        let later = events.partition_point(|event| event.at <= from);
        for event in &events[..later] {
            walk.apply(event);
        }
        walk.divide(from)?;
        for together in events[later..].chunk_by(|a, b| a.at == b.at).take_while(|events| events[0].at < to) {
            let mut moved = false;
            for event in together {
                moved |= walk.apply(event);
            }
            if moved {
                walk.divide(together[0].at)?;
            }
        }
        Some(walk.finish())
    }
}

/// The packet size that determines the capacity of a link that aggregates. Chosen: that of most data.
const FULL_PACKET: Bytes = Bytes::new(1_500);

impl Scenario {
    /// The scenario with the opportunities of recorded links in each window as their rates, so that the
    /// integral of a rate is that of its opportunities. The measured part begins with a window.
    fn as_recorded(&self, from: Time, to: Time) -> Cow<'_, Self> {
        if self.links.iter().all(|link| link.trace.is_none()) {
            return Cow::Borrowed(self);
        }
        let measured = self.measure_from.clamp(from, to);
        let crossed: Vec<LinkId> = self.flows.iter().flat_map(|flow| flow.path.iter().copied()).collect();
        let most = WINDOW_WORK_MAX / (self.links.len() + crossed.len()).max(1);
        let shortest = to.since(from).div(most.max(1) as u64);
        let mut recorded = self.clone();
        for (id, link) in (0..).map(LinkId).zip(&self.links) {
            let Some(trace) = link.trace.as_ref().filter(|_| crossed.contains(&id)) else { continue };
            let length = buffer_time(link.rate).max(shortest);
            for [from, to] in windows(from, measured, length).chain(windows(measured, to, length)) {
                let to = Setting::LinkRate(id, trace.mean_between(from, to));
                recorded.changes.push(Change { at: from, to });
            }
        }
        Cow::Owned(recorded)
    }

    /// The scenario with the rates at which packets can leave, given links that aggregate and queues that
    /// shape.
    fn as_carried(&self) -> Cow<'_, Self> {
        let unlimited = Rate::from_bit(u64::MAX);
        let limits = |queue: &DisciplineParams| queue.capacity(unlimited) < unlimited;
        let is_limited = |link: &Link| link.aggregate.is_some() || limits(&link.queue);
        let becomes_limited =
            |change: &Change| matches!(&change.to, Setting::LinkQueue(_, queue) if limits(queue));
        if !self.links.iter().any(is_limited) && !self.changes.iter().any(becomes_limited) {
            return Cow::Borrowed(self);
        }
        let mut carried = self.clone();
        for link in &mut carried.links {
            link.rate = capacity(link, link.rate);
        }
        // The state of links at the time of each change.
        let mut links = self.links.clone();
        let mut changes = self.changes.clone();
        changes.sort_by_key(|change| change.at);
        carried.changes.clear();
        for change in changes {
            let id = match &change.to {
                Setting::LinkRate(id, rate) => {
                    links[id.index()].rate = *rate;
                    *id
                }
                Setting::LinkQueue(id, queue) => {
                    links[id.index()].queue = queue.as_ref().clone();
                    carried.changes.push(change.clone());
                    *id
                }
                _ => {
                    carried.changes.push(change);
                    continue;
                }
            };
            let link = &links[id.index()];
            carried.changes.push(Change { to: Setting::LinkRate(id, capacity(link, link.rate)), ..change });
        }
        Cow::Owned(carried)
    }
}

/// Time that a queue of the default size takes to empty at `rate`.
fn buffer_time(rate: Rate) -> Span {
    LinkLimit::new(None, rate).get().bytes().map_or(Span::ZERO, |bytes| rate.time_for(bytes))
}

/// As many windows of equal length as fit with at least `shortest`: their starts and ends.
fn windows(from: Time, to: Time, shortest: Span) -> impl Iterator<Item = [Time; 2]> {
    let whole = to.since(from);
    let count = (whole.as_nanos() / shortest.as_nanos().max(1)).max(u64::from(whole > Span::ZERO));
    let at = move |k: u64| if k < count { from + whole.div(count) * k } else { to };
    (0..count).map(move |k| [at(k), at(k + 1)])
}

/// The rate at which packets leave a link with a transmitter of `rate`, as its queue charges them.
fn capacity(link: &Link, rate: Rate) -> Rate {
    let sent = match &link.aggregate {
        Some(aggregate) if rate > Rate::ZERO => aggregate.capacity(FULL_PACKET, rate),
        _ => rate,
    };
    link.queue.capacity(sent)
}

/// The demand of a flow over time, without a run.
fn expected(flow: &Flow, end: Time) -> Vec<Phase> {
    let start = match flow.start {
        Start::At(at) => at,
        Start::Between(earliest, latest) => earliest + latest.since(earliest).div(2),
    };
    Phase::between(start, flow.stop.unwrap_or(end), &flow.source)
}

impl Phase {
    /// A demand of the mean rate, or of everything, from `start` until `stop` or the end of a replay.
    #[must_use]
    pub fn between(start: Time, stop: Time, source: &Source) -> Vec<Self> {
        let stop = demand::length(source).map_or(stop, |length: Span| stop.min(start + length));
        if start >= stop {
            return Vec::new();
        }
        vec![Self { at: start, wants: Wants::Mean }, Self { at: stop, wants: Wants::Nothing }]
    }
}

/// An event.
struct Event<'a> {
    at: Time,
    what: What<'a>,
}

enum What<'a> {
    Change(&'a Setting),
    Wants(usize, Wants),
}

fn events<'a>(scenario: &'a Scenario, activity: &[Vec<Phase>]) -> Vec<Event<'a>> {
    let changes =
        scenario.changes.iter().map(|change| Event { at: change.at, what: What::Change(&change.to) });
    let phases = activity.iter().take(scenario.flows.len()).enumerate().flat_map(|(flow, phases)| {
        phases.iter().map(move |phase| Event { at: phase.at, what: What::Wants(flow, phase.wants) })
    });
    changes.chain(phases).collect()
}

/// The state of a scenario at a time, on a walk through its events.
struct Walk {
    then: Scenario,
    links: Vec<usize>,
    weights: Vec<Weight>,
    population: Population,
    due: Due,
    work: usize,
}

impl Walk {
    fn new(scenario: &Scenario, from: Time, to: Time) -> Self {
        // The value of tickets depends on all links that they cross.
        let tickets = scenario.flows.iter().any(|flow| flow.tickets.or(flow.ack_tickets).is_some());
        let links: Vec<usize> =
            if tickets { (0..scenario.links.len()).collect() } else { limiting_links(scenario) };
        let mut place = vec![None; scenario.links.len()];
        for (at, &link) in links.iter().enumerate() {
            place[link] = Some(at);
        }
        let stays = vec![Vec::new(); scenario.flows.len()];
        Self {
            population: Population::new(scenario, &place),
            weights: scenario.customer_weights(),
            then: Scenario { changes: Vec::new(), ..scenario.clone() },
            links,
            due: Due { from, to, steps: Vec::new(), stays, pieces: 0 },
            work: 0,
        }
    }

    /// Applies an event. Returns whether it can change entitlements.
    fn apply(&mut self, event: &Event<'_>) -> bool {
        let (flow, (moved, ended)) = match event.what {
            What::Wants(flow, wants) => (flow, self.population.want(&self.then, flow, wants, event.at)),
            What::Change(setting) => match self.then.apply(setting) {
                Touched::Nothing => return false,
                Touched::Links => return true,
                Touched::Flow(flow) => (flow, self.population.reconsider(&self.then, flow, event.at)),
            },
        };
        self.due.stays[flow].extend(ended);
        moved
    }

    /// Computes the rates from `now` on.
    fn divide(&mut self, now: Time) -> Option<()> {
        let (numbers, classes): (Vec<usize>, Vec<(&Class, u32)>) =
            self.population.active().map(|(number, class, members)| (number, (class, members))).unzip();
        // Congestion shares take many rounds.
        let rounds = if self.then.has_agreements() { ROUNDS } else { 1 };
        self.work += rounds * self.links.len()
            + rounds * classes.iter().map(|(class, _)| class.links.len()).sum::<usize>();
        if self.work > WORK_MAX {
            return None;
        }
        let shares = piece::shares(&self.then, &self.links, &self.weights, &classes)?;
        self.due.steps.resize_with(self.population.classes.len(), Steps::default);
        for (number, share) in numbers.into_iter().zip(shares) {
            self.due.steps[number].push(now, share);
        }
        self.due.pieces += 1;
        Some(())
    }

    fn finish(mut self) -> Due {
        let to = self.due.to;
        for (flow, stays) in self.due.stays.iter_mut().enumerate() {
            stays.extend(self.population.leave(flow, to));
        }
        // Flows that came afterwards have classes without rates.
        self.due.steps.resize_with(self.population.classes.len(), Steps::default);
        self.due
    }
}

/// The part of a change that affects entitlements.
enum Touched {
    Nothing,
    Links,
    Flow(usize),
}

impl Scenario {
    /// Applies a change that affects entitlements.
    fn apply(&mut self, setting: &Setting) -> Touched {
        match *setting {
            Setting::LinkRate(id, rate) => self.links[id.index()].rate = rate,
            Setting::LinkTickets(id, tickets) => self.links[id.index()].tickets = Some(tickets),
            Setting::LinkAckTickets(id, tickets) => self.links[id.index()].ack_tickets = Some(tickets),
            Setting::LinkQueue(id, ref queue) => self.links[id.index()].queue = queue.as_ref().clone(),
            Setting::LinkDelay(..) | Setting::LinkLoss(..) | Setting::FlowClass(..) => {
                return Touched::Nothing;
            }
            Setting::FlowTickets(at, tickets) => return self.touch(at, |flow| flow.tickets = Some(tickets)),
            Setting::FlowAckTickets(at, tickets) => {
                return self.touch(at, |flow| flow.ack_tickets = Some(tickets));
            }
            Setting::FlowWeight(at, weight) => return self.touch(at, |flow| flow.weight = weight),
            Setting::FlowGuarantee(at, guarantee) => {
                return self.touch(at, |flow| flow.guarantee = guarantee);
            }
            Setting::FlowRate(at, to) => {
                return self.touch(at, |flow| {
                    if let Source::Cbr(Cbr { rate, .. })
                    | Source::Poisson(Poisson { rate, .. })
                    | Source::OnOff(OnOff { rate, .. }) = &mut flow.source
                    {
                        *rate = to;
                    }
                });
            }
        }
        Touched::Links
    }

    fn touch(&mut self, at: usize, change: impl FnOnce(&mut Flow)) -> Touched {
        change(&mut self.flows[at]);
        Touched::Flow(at)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn mbps(text: &str, from: u64, to: u64) -> Option<Vec<f64>> {
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let shares =
            suite.points[0].scenario.entitlements_between(Time::from_secs(from), Time::from_secs(to));
        shares.map(|shares| shares.into_iter().map(Rate::as_mbit_f64).collect())
    }

    #[test]
    fn shares_follow_changes_and_arrivals() {
        let text = r#"
            seed = 1
            stop = "30s"
            link.x = { from = "a", to = "b", rate = "6Mbit", delay = "1ms" }
            flow.early = { from = "a", to = "b", tcp = "rfc" }
            flow.late = { from = "a", to = "b", tcp = "rfc", weight = 2, start = "10s" }
            change = [{ at = "20s", set = "link.x.rate", to = "3Mbit" }, { at = "20s", set = "link.x.delay", to = "2ms" }]
        "#;
        assert_eq!(mbps(text, 0, 10), Some(vec![6.0, 0.0]));
        assert_eq!(mbps(text, 10, 20), Some(vec![2.0, 4.0]));
        assert_eq!(mbps(text, 20, 30), Some(vec![1.0, 2.0]));
        // Half of the 3 Mb/s is guaranteed to the late flow; the rest is divided 1 : 2.
        let guaranteed = format!(
            "{}{{ at = \"20s\", set = \"flow.late.guarantee\", to = \"1.5Mbit\" }},]",
            text.trim_end().trim_end_matches(']').to_owned() + ", "
        );
        assert_eq!(mbps(&guaranteed, 20, 30), Some(vec![0.5, 2.5]));
        // Half of the time each: 6 and 2, 0 and 4; then 2 and 1, 4 and 2.
        assert_eq!(mbps(text, 5, 15), Some(vec![4.0, 2.0]));
        assert_eq!(mbps(text, 15, 25), Some(vec![1.5, 3.0]));
        assert_eq!(mbps(text, 0, 30), Some(vec![3.0, 2.0]));
    }

    #[test]
    fn what_isolates_hosts_divides_among_them_first() {
        let text = |queue: &str, more: &str| {
            format!(
                r#"
            seed = 1
            stop = "30s"
            topology = {{ kind = "dumbbell", pairs = 3, access = {{ rate = "1Gbit", delay = "1ms" }}, bottleneck = {{ rate = "12Mbit", delay = "1ms", queue = {queue} }} }}
            flow.one = {{ from = "l1", to = "r1" }}
            flow.two = {{ from = "l2", to = "r1", count = 3 }}
            flow.far = {{ from = "l2", to = "r3" }}
            {more}"#
            )
        };
        let by = |end: &str| mbps(&text(&format!("{{ kind = \"drr\", isolate = \"{end}\" }}"), ""), 0, 30);
        assert_eq!(mbps(&text("\"drr\"", ""), 0, 30), Some(vec![2.4; 5]));
        // In the order far, one, two.
        assert_eq!(by("source"), Some(vec![1.5, 6.0, 1.5, 1.5, 1.5]));
        assert_eq!(by("destination"), Some(vec![6.0, 1.5, 1.5, 1.5, 1.5]));
        // r1 has two peers, l1 one and l2 two: `one` belongs to r1, all others to l2, which divides among r1
        // and r3.
        assert_eq!(by("both"), Some(vec![3.0, 6.0, 1.0, 1.0, 1.0]));
        // A peer's flow that wants 0.6 leaves the rest to the others of that peer.
        let thin = "[flow.thin]\nfrom = \"l2\"\nto = \"r1\"\n[flow.thin.source]\nkind = \"cbr\"\nrate = \"0.6Mbit\"\npacket = \"1000B\"";
        let thin = mbps(&text("{ kind = \"drr\", isolate = \"both\" }", thin), 0, 30);
        assert_eq!(thin, Some(vec![3.0, 6.0, 0.6, 0.8, 0.8, 0.8]));
        // The rest of a host's share goes to the others.
        let slow = "[flow.one.source]\nkind = \"cbr\"\nrate = \"2Mbit\"\npacket = \"1000B\"";
        let slow = text("{ kind = \"drr\", isolate = \"source\" }", slow)
            .replace("flow.one = { from = \"l1\", to = \"r1\" }", "")
            + "\n[flow.one]\nfrom = \"l1\"\nto = \"r1\"";
        assert_eq!(mbps(&slow, 0, 30), Some(vec![2.5, 2.0, 2.5, 2.5, 2.5]));
        // Hosts have equal shares, and weights divide the share of a host.
        let weights = text("{ kind = \"drr\", isolate = \"source\" }", "")
            .replace("flow.far = {", "flow.far = { weight = 2,");
        assert_eq!(mbps(&weights, 0, 30), Some(vec![2.4, 6.0, 1.2, 1.2, 1.2]));
        // If they differ only between hosts they ask for another division.
        let weights = text("{ kind = \"drr\", isolate = \"source\" }", "")
            .replace("flow.one = {", "flow.one = { weight = 2,");
        assert_eq!(mbps(&weights, 0, 30), Some(vec![2.0, 4.0, 2.0, 2.0, 2.0]));
        // The division changes with the queue.
        let change = "change = [{ at = \"20s\", set = \"link.bottleneck.queue\", to = \"drr\" }]";
        let changed = text("{ kind = \"drr\", isolate = \"source\" }", change);
        assert_eq!(mbps(&changed, 0, 20), by("source"));
        assert_eq!(mbps(&changed, 20, 30), Some(vec![2.4; 5]));
    }

    #[test]
    fn of_a_recorded_link_the_opportunities_in_the_time_are_due() {
        // Four opportunities in the first 40 ms and one more at 1 s, which is the period.
        let read = |_: &Path| Ok(b"10\n20\n30\n40\n1000\n".to_vec());
        let text = r#"
            seed = 1
            stop = "2500ms"
            link.x = { from = "a", to = "b", rate = { trace = "x" }, delay = "1ms" }
            flow.early = { from = "a", to = "b", tcp = "rfc" }
            flow.late = { from = "a", to = "b", tcp = "rfc", start = "25ms" }
        "#;
        let due = |text: &str, from: u64, to: u64| {
            let suite = crate::load(text, Path::new("x.toml"), &[], &read).unwrap();
            let (from, to) = (Time::from_millis(from), Time::from_millis(to));
            let shares = suite.points[0].scenario.entitlements_between(from, to).unwrap();
            let opportunities =
                |rate: Rate| rate.as_bit() as f64 * to.since(from).as_secs_f64() / (8.0 * 1_504.0);
            shares.into_iter().map(|rate| (1e3 * opportunities(rate)).round() / 1e3).collect::<Vec<_>>()
        };
        let alone = text.replace("\"25ms\"", "\"3s\"");
        // The whole file, a part of it, a part without opportunities, and two and a half times.
        for (from, to, opportunities) in
            [(0, 1_000, 5.0), (0, 50, 4.0), (15, 30, 2.0), (40, 999, 0.0), (0, 2_500, 14.0)]
        {
            assert_eq!(due(&alone, from, to), [opportunities, 0.0], "{from} to {to} ms");
        }
        // The late flow has a share in half of the four: opportunities count as a constant rate over the time
        // of a buffer.
        assert_eq!(due(text, 0, 50), [3.0, 1.0]);
        // A change of something else, and a shaper from then on.
        let changed = format!(
            "{text}change = [{{ at = \"35ms\", set = \"flow.early.weight\", to = 3 }}, \
             {{ at = \"1s\", set = \"link.x.queue\", to = {{ kind = \"fifo\", shaper = \"token_bucket\", rate = \"1bit\" }} }}]"
        );
        assert_eq!(due(&changed, 0, 50), [3.3, 0.7]);
        assert_eq!(due(&changed, 1_000, 2_500), [0.0, 0.0]);
    }

    #[test]
    fn what_leaves_a_shaper_or_cake_is_divided() {
        let text = |queue: &str| {
            format!(
                r#"
            seed = 1
            stop = "30s"
            link.x = {{ from = "a", to = "b", rate = "6Mbit", delay = "1ms", queue = {queue} }}
            flow.x = {{ from = "a", to = "b", count = 2 }}
            change = [
                {{ at = "10s", set = "link.x.rate", to = "2Mbit" }},
                {{ at = "20s", set = "link.x.queue", to = "fifo" }},
            ]"#
            )
        };
        let shaped = text(r#"{ kind = "fifo", shaper = "token_bucket", rate = "4Mbit" }"#);
        assert_eq!(mbps(&shaped, 0, 10), Some(vec![2.0, 2.0]));
        assert_eq!(mbps(&shaped, 10, 20), Some(vec![1.0, 1.0]));
        // 1,500 of 1,600 bytes are packets.
        let cake = text(r#"{ kind = "cake", bandwidth = "4Mbit", overhead = "100B" }"#);
        assert_eq!(mbps(&cake, 0, 10), Some(vec![1.875, 1.875]));
        assert_eq!(mbps(&cake, 20, 30), Some(vec![1.0, 1.0]));
        let widened =
            cake.replace("set = \"link.x.rate\", to = \"2Mbit\"", "set = \"link.x.queue\", to = \"drr\"");
        assert_eq!(mbps(&widened, 10, 20), Some(vec![3.0, 3.0]));
    }
}
