//! A run or a gateway at one time, as the screen shows it, with rates in bytes per second and times in seconds.

use std::collections::BTreeMap;

use super::answer::{
    Counts, Course, GatewayAnswer, GatewayFlow, LinkState, Name, Page, RunAnswer, RunFlow, sum,
};
use super::format::{clip, count, duration};

/// A number, if it is known: finite and not negative.
pub type Known = Option<f64>;

/// Maximum of characters of a title: the state behind it must be seen. Chosen: less than half of a line.
const MAX_TITLE: usize = 30;

/// A run or a gateway at one time.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub is_gateway: bool,
    /// Name and state in words, the most important first.
    pub said: Vec<String>,
    /// Time between two requests of the page.
    pub interval: f64,
    /// Watched links of a run, directions of a gateway.
    pub links: Vec<Link>,
    /// The link of the flows; none of a gateway, whose flows are of both directions.
    pub link: Option<String>,
    pub flows: Vec<Flow>,
    /// All flows, listed or not.
    pub flow_count: f64,
    pub customers: Vec<Customer>,
    uptime: Known,
}

#[derive(Clone, Debug, Default)]
pub struct Link {
    pub name: String,
    pub sent: Known,
    pub capacity: Known,
    pub backlog: Known,
    /// Sojourn times: the mean, or the median and the 95th percentile.
    pub mean: Known,
    pub median: Known,
    pub high: Known,
    /// Packets since the start.
    pub drops: Known,
    pub lost: Known,
    pub marks: Known,
    pub flows: Known,
}

impl Link {
    /// Fraction of the capacity that is used.
    pub fn used(&self) -> Known {
        part(self.sent, self.capacity)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Flow {
    pub name: String,
    /// Of a gateway: the direction and the rule.
    pub direction: String,
    pub rule: String,
    /// In the last interval of a run, or second of a gateway.
    pub rate: Known,
    /// In the measured part of a run.
    pub mean: Known,
    /// Of the measured part of a run if it has begun, else as of `rate`.
    pub entitled: Known,
    /// Throughput over entitlement.
    pub share: Known,
    /// Fraction of what all flows of the link get.
    pub of_link: Known,
    pub weight: Known,
}

#[derive(Clone, Debug, Default)]
pub struct Customer {
    pub name: String,
    /// Down and up.
    pub sides: [Side; 2],
    /// Packets of both directions since the start.
    pub drops: Known,
    pub marks: Known,
}

/// A direction of a customer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Side {
    pub rate: Known,
    pub entitled: Known,
    pub plan: Known,
    /// Bytes since the start.
    sent: Known,
}

impl Side {
    /// The rate over the entitlement, or over that of the plan without one.
    pub fn share(&self) -> Known {
        part(self.rate, self.entitled.or(self.plan))
    }
}

impl From<Page> for Seen {
    fn from(page: Page) -> Self {
        match page {
            Page::Run(answer) => of_run(answer),
            Page::Gateway(answer) => of_gateway(answer),
        }
    }
}

impl Seen {
    /// Fills in the rates of customers that are not among the largest, by what they sent since `before`.
    pub fn fill_rates(&mut self, before: &Self) {
        let Some(seconds) = self.uptime.zip(before.uptime).map(|(now, then)| now - then) else { return };
        if seconds <= 0.0 {
            return;
        }
        let before: BTreeMap<&str, &Customer> = before.customers.iter().map(|it| (&*it.name, it)).collect();
        for customer in &mut self.customers {
            let Some(then) = before.get(&*customer.name) else { continue };
            for (side, then) in customer.sides.iter_mut().zip(then.sides) {
                let more = side.sent.zip(then.sent).map(|(sent, then)| sent - then);
                side.rate = side.rate.or(more.filter(|more| *more >= 0.0).map(|more| more / seconds));
            }
        }
    }
}

/// A part of a whole; none without a whole.
fn part(part: Known, whole: Known) -> Known {
    whole.filter(|whole| *whole > 0.0).and_then(|whole| Some(part? / whole))
}

fn of_run(answer: RunAnswer) -> Seen {
    let is_running = answer.state.0 == "running";
    let said = run_in_words(&answer);
    let course = answer.course.unwrap_or_default();
    let links = course.link_states.into_iter().map(of_link).collect();
    let link = course.link.unwrap_or_default();
    Seen {
        said,
        // As the page asks.
        interval: if is_running { 0.4 } else { 1.0 },
        links,
        flow_count: link.flow_count.0.unwrap_or(0.0).max(link.flows.len() as f64),
        flows: link.flows.into_iter().map(of_run_flow).collect(),
        link: Some(link.name.0).filter(|name| !name.is_empty()),
        ..Seen::default()
    }
}

fn run_in_words(answer: &RunAnswer) -> Vec<String> {
    let RunAnswer { title, state, replications: [done, all], course } = answer;
    let state = match (&*state.0, course) {
        ("waiting", _) | ("running", None) => "the run has not begun",
        ("running", _) => "running",
        ("ended", _) => "the run has ended",
        _ => "the run was cut short",
    };
    let mut said = vec![format!("run \"{}\": {state}", clip(&title.0, MAX_TITLE))];
    if let (Some(done), Some(all @ 2.0..)) = (done.0, all.0) {
        said.push(format!("{} of {} replications done", count(done), count(all)));
    }
    if let Some(Course { point, seed, at_seconds, stop_seconds, links_left_out, .. }) = course {
        let point = if point.0.is_empty() { String::new() } else { format!("{}, ", point.0) };
        let [at, stop] = [at_seconds, stop_seconds].map(|time| duration(time.0.unwrap_or(0.0)));
        said.extend([format!("{at} of {stop}"), format!("{point}seed {}", seed.0)]);
        if let Some(left @ 1.0..) = links_left_out.0 {
            said.push(format!("{} more links are not shown", count(left)));
        }
    }
    said
}

fn of_link(state: LinkState) -> Link {
    Link {
        name: state.name.0,
        sent: state.bytes_per_second.0,
        capacity: state.rate_bytes_per_second.0,
        backlog: state.backlog_packets.0,
        mean: state.delay_seconds.0,
        drops: state.dropped_packets.sum(),
        lost: state.lost_packets.0,
        marks: state.marked_packets.0,
        flows: state.flow_count.0,
        ..Link::default()
    }
}

fn of_run_flow(flow: RunFlow) -> Flow {
    let rate = flow.bytes_per_second.0;
    let measured = flow
        .measured_entitlement_bytes_per_second
        .0
        .map(|entitled| (flow.measured_bytes_per_second.0, entitled));
    let now = || Some((rate, flow.entitlement_bytes_per_second.0?));
    let (got, entitled) = measured.or_else(now).map_or((None, None), |(got, entitled)| (got, Some(entitled)));
    Flow {
        name: flow.flow.0,
        rate,
        mean: flow.measured_bytes_per_second.0,
        entitled,
        share: part(got, entitled),
        of_link: if measured.is_some() { flow.measured_share.0 } else { flow.share.0 },
        ..Flow::default()
    }
}

/// The directions in the order of the table.
const DIRECTIONS: [&str; 2] = ["down", "up"];

fn of_gateway(mut answer: GatewayAnswer) -> Seen {
    let mut seen = Seen {
        is_gateway: true,
        said: gateway_in_words(&answer),
        interval: 1.0,
        uptime: answer.uptime.0,
        ..Seen::default()
    };
    let mut customers: BTreeMap<Name, Customer> = BTreeMap::new();
    for (side, name) in DIRECTIONS.into_iter().enumerate() {
        let own = answer.directions.remove(name).unwrap_or_default();
        let traffic = answer.traffic.remove(name).unwrap_or_default();
        let all = |of: fn(&Counts) -> Known| Some(sum(own.rules.values().map(of)));
        seen.links.push(Link {
            name: name.to_owned(),
            sent: traffic.sent_bytes_per_second.0,
            capacity: own.rate_bytes_per_second.0,
            backlog: own.backlog_packets.0,
            median: traffic.sojourn_seconds.median.0,
            high: traffic.sojourn_seconds.high.0,
            drops: all(|of| of.dropped_packets.sum()),
            marks: all(|of| of.marked_packets.0),
            flows: traffic.active_flows.0,
            ..Link::default()
        });
        seen.flow_count += traffic.active_flows.0.unwrap_or(0.0);
        seen.flows.extend(traffic.flows.into_iter().map(|flow| of_gateway_flow(flow, name)));
        for (name, counts) in own.customers {
            let customer = customers.entry(name).or_default();
            customer.sides[side].sent = counts.sent_bytes.0;
            let add = |sum: &mut Known, more: Known| *sum = Some(sum.unwrap_or(0.0) + more.unwrap_or(0.0));
            add(&mut customer.drops, counts.dropped_packets.sum());
            add(&mut customer.marks, counts.marked_packets.0);
        }
        for listed in traffic.customers {
            let own = &mut customers.entry(listed.customer).or_default().sides[side];
            own.rate = listed.bytes_per_second.0;
            own.entitled = listed.entitlement_bytes_per_second.0;
            own.plan = listed.plan_bytes_per_second.0;
        }
    }
    seen.flow_count = seen.flow_count.max(seen.flows.len() as f64);
    // Flows of no customer form one without a name.
    let named = |(Name(name), customer)| {
        let name = if name.is_empty() { "(none)".to_owned() } else { name };
        Customer { name, ..customer }
    };
    seen.customers = customers.into_iter().map(named).collect();
    seen
}

fn gateway_in_words(answer: &GatewayAnswer) -> Vec<String> {
    let obstacles = answer.obstacles.iter().map(|obstacle| &*obstacle.0).collect::<Vec<_>>().join("; ");
    let state =
        if obstacles.is_empty() { "frames pass".to_owned() } else { format!("no frames pass: {obstacles}") };
    let up = duration(answer.uptime.0.unwrap_or(0.0));
    vec![format!("gateway \"{}\": {state}", clip(&answer.title.0, MAX_TITLE)), format!("up {up}")]
}

fn of_gateway_flow(flow: GatewayFlow, direction: &str) -> Flow {
    let (rate, entitled) = (flow.bytes_per_second.0, flow.entitlement_bytes_per_second.0);
    Flow {
        name: flow.flow.0,
        direction: direction.to_owned(),
        rule: flow.rule.0,
        rate,
        entitled,
        share: part(rate, entitled),
        weight: flow.weight.0,
        ..Flow::default()
    }
}
