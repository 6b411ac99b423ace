//! Random combinations: a discipline, with a policy of its own, isolation, weights, guarantees, ECN, sizes of
//! packets and rates. If a scenario accepts a combination, flows get the shares of the discipline's rule, and
//! settings that no queue heeds are reported.
//!
//! `APPORTION_MATRIX` is the seed; without it the cases are always the same. `APPORTION_CASES` multiplies
//! their number, 60.

use std::env;
use std::fmt::Write as _;
use std::path::Path;

use apportion_core::param::{Entry, Heeds, Role, Shares};
use apportion_core::random::Stream;
use apportion_core::system::Catalog;
use apportion_testing::properties::cases;

use crate::common::{link, run_with, throughput};

/// A combination.
#[derive(Debug)]
struct Case {
    kind: &'static Entry,
    drop: Option<&'static Entry>,
    isolate: bool,
    /// The rate of the link, in bit/s.
    rate: f64,
    /// The limit of the buffer, in kB; none: the default.
    limit: Option<u32>,
    /// Whether all packets are ECN-capable and the AQM may mark.
    ecn: bool,
    /// The guarantee of flow `f1` beyond its part; the flow sends more.
    guarantee: Option<f64>,
    flows: Vec<Drawn>,
}

/// A flow of a case.
#[derive(Debug)]
struct Drawn {
    weight: f64,
    /// The packet size, in bytes.
    packet: u32,
    /// The rate of the flow over its due; a flow below 1 is due its rate.
    demand: f64,
    /// The source host of the flow.
    host: u32,
}

/// Picks an element of a list at random.
fn pick<T: Copy>(random: &mut Stream, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

impl Case {
    fn draw(random: &mut Stream) -> Self {
        let all: Vec<_> = Catalog::default().disciplines().collect();
        let of = |role| all.iter().copied().filter(|entry| entry.role == role).collect::<Vec<_>>();
        let kind = if random.chance(0.6) {
            pick(random, &of(Role::Scheduler))
        } else {
            pick(random, &of(Role::System))
        };
        let drop =
            (kind.role == Role::Scheduler && random.chance(0.8)).then(|| pick(random, &of(Role::Policy)));
        let (is_weighted, is_mixed, is_thin) = (random.chance(0.4), random.chance(0.5), random.chance(0.5));
        let rate = (1e5 * libm::pow(10.0, 5.0 * random.uniform())).round();
        let packet = pick(random, &[64, 200, 576, 1_500, 9_000]);
        // A default buffer holds at least 64 full Ethernet packets, which is at most ten jumbo frames; on
        // fast links it is 100 ms, and would not fill within the run.
        let limit = (rate > 1e8 || packet == 9_000 && rate < 5e7).then_some(200 * packet.max(1_500) / 1_000);
        let flows = (0..2 + random.below(7)).map(|at| Drawn {
            weight: if is_weighted { pick(random, &[1.0, 2.0, 4.0]) } else { 1.0 },
            packet: if is_mixed { pick(random, &[200, 576, 1_500]) } else { packet },
            demand: if at == 0 && is_thin { 0.5 } else { 1.3 + 2.0 * random.uniform() },
            host: random.below(3) as u32,
        });
        let flows = flows.collect();
        let (isolate, ecn) = (random.chance(0.25), random.chance(0.25));
        let guarantee = random.chance(0.2).then(|| 1.2 + random.uniform() / 2.0);
        let mut case = Self { kind, drop, isolate, rate, limit, ecn, guarantee, flows };
        if let Some(over) = guarantee {
            case.flows[1].demand = over * 1.3;
        }
        case
    }

    /// The entries of the combination.
    fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        [Some(self.kind), self.drop].into_iter().flatten()
    }

    fn heeds(&self, kind: Heeds) -> bool {
        self.entries().any(|entry| entry.traits.heeds.contains(&kind))
    }

    fn takes(&self, param: &str) -> bool {
        // A scheduler without a policy uses the default policy, longest queue drop.
        let is_default = param == "limit" && self.kind.role == Role::Scheduler;
        is_default || self.entries().any(|entry| entry.params.iter().any(|has| has.name == param))
    }

    /// How the combination treats shares.
    fn shares(&self) -> Shares {
        match self.drop.map(|drop| drop.traits.shares) {
            Some(Shares::Kept) | None => self.kind.traits.shares,
            Some(of_policy) => of_policy,
        }
    }

    fn policy_divides(&self) -> bool {
        self.drop.is_some_and(|drop| drop.traits.shares >= Shares::Approximate)
    }

    /// Returns the parts of the link by the rule of the discipline, if all flows send more; round robin by
    /// packets gives parts in proportion to packet sizes.
    fn parts(&self) -> Vec<f64> {
        let weigh = |flow: &Drawn| {
            let weight = if self.heeds(Heeds::Weight) || self.isolate { flow.weight } else { 1.0 };
            let by_packets = self.kind.name == "rr" && !self.isolate && !self.policy_divides();
            weight * if by_packets { f64::from(flow.packet) } else { 1.0 }
        };
        let host = |flow: &Drawn| if self.isolate { flow.host } else { 0 };
        let sum =
            |of: &Drawn| -> f64 { self.flows.iter().filter(|flow| host(flow) == host(of)).map(weigh).sum() };
        let mut hosts: Vec<u32> = self.flows.iter().map(host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        self.flows.iter().map(|flow| weigh(flow) / sum(flow) / hosts.len() as f64).collect()
    }

    fn text(&self) -> String {
        let mut queue = format!("kind = \"{}\"", self.kind.name);
        if let Some(drop) = self.drop {
            write!(queue, ", drop = \"{}\"", drop.name).unwrap();
        }
        if self.isolate {
            queue += ", isolate = \"source\"";
        }
        if let Some(limit) = self.limit.filter(|_| self.takes("limit")) {
            write!(queue, ", limit = \"{limit}kB\"").unwrap();
        }
        if self.ecn && self.takes("ecn") {
            queue += ", ecn = true";
        }
        let stop = self.stop();
        let mut text = format!(
            "seed = 1\nstop = \"{stop:.9}s\"\nmeasure_from = \"{:.9}s\"\n[link.neck]\nfrom = \"r\"\nto = \"d\"\n\
             rate = \"{}bit\"\ndelay = \"1us\"\nqueue = {{ {queue} }}\nwatch = true\n",
            stop / 3.0,
            self.rate
        );
        for host in 0..3 {
            write!(
                text,
                "[link.in{host}]\nfrom = \"h{host}\"\nto = \"r\"\nrate = \"400Gbit\"\ndelay = \"1us\"\n"
            )
            .unwrap();
        }
        for (at, (flow, part)) in self.flows.iter().zip(self.parts()).enumerate() {
            let rate = (flow.demand * part * self.rate).max(1.0).round();
            write!(
                text,
                "[flow.f{at}]\nfrom = \"h{}\"\nto = \"d\"\nweight = {}\n\
                 source = {{ kind = \"cbr\", rate = \"{rate}bit\", packet = \"{}B\", jitter = \"20%\" }}\n",
                flow.host, flow.weight, flow.packet
            )
            .unwrap();
            if self.ecn {
                text += "ecn = \"ect0\"\n";
            }
            if let Some(over) = self.guarantee.filter(|_| at == 1) {
                writeln!(text, "guarantee = \"{}bit\"", (over * part * self.rate).round()).unwrap();
            }
        }
        text
    }

    /// Returns the duration in seconds: about 6,000 packets of the largest size and as many turns; the first
    /// third is not measured.
    fn stop(&self) -> f64 {
        let largest = self.flows.iter().map(|flow| flow.packet).max().unwrap_or(1_500).max(1_500);
        6_000.0 * f64::from(largest) * 8.0 / self.rate
    }

    /// Whether control loops and estimators have enough time.
    fn is_long(&self) -> bool {
        self.stop() > 4.0
    }

    fn has_labels(&self) -> bool {
        self.entries().any(|entry| entry.traits.writes.is_some())
    }

    /// Whether the exact division is known: it is not for a control loop in less than a few of its periods,
    /// nor in bytes for a round robin of packets among hosts.
    fn is_exact(&self) -> bool {
        // With isolation, the flows of a host share its part of the link.
        let hosts = if self.isolate { 3.0 } else { 1.0 };
        let turn: f64 = self.flows.iter().map(|flow| f64::from(flow.packet) * 8.0 / self.rate * hosts).sum();
        let is_controlled = self.takes("target");
        // An AQM whose target is shorter than a turn of all flows drops packets of flows within their shares.
        let is_suitable = !is_controlled || (turn < 0.005 && self.is_long());
        self.shares() == Shares::Given && is_suitable && !(self.kind.name == "rr" && self.isolate)
    }

    /// Returns the errors; none if the combination is refused.
    fn judge(&self) -> Option<Vec<String>> {
        let text = self.text();
        let suite =
            apportion_scenario::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).ok()?;
        let scenario = &suite.points[0].scenario;
        let outcome = run_with(scenario, 1);
        let mut wrong = Vec::new();
        let neck = link(&outcome, "neck");
        let wanted: f64 = self.flows.iter().zip(self.parts()).map(|(flow, part)| flow.demand * part).sum();
        if self.is_exact() && neck.utilisation < 0.95 * wanted.min(1.0) {
            wrong.push(format!("utilisation {}", neck.utilisation));
        }
        let warnings = scenario.warnings();
        let is_named =
            |key: &str| warnings.iter().any(|warning| warning.starts_with(&format!("`{key}` of flow")));
        for (key, kind, is_set) in [
            ("weight", Heeds::Weight, self.flows.iter().any(|flow| flow.weight != self.flows[0].weight)),
            ("guarantee", Heeds::Guarantee, self.guarantee.is_some()),
        ] {
            let is_heeded = self.heeds(kind) || (kind == Heeds::Weight && self.isolate);
            if is_set && !is_heeded && !is_named(key) {
                wrong.push(format!("nothing heeds `{key}`, and nothing says so"));
            }
        }
        let parts = self.parts();
        let kept = self.guarantee.filter(|_| !is_named("guarantee"));
        if let Some(over) = kept {
            let (got, promised) = (throughput(&outcome, "f1") / self.rate, over * parts[1]);
            // Rates of flows are estimated over 100 ms.
            let is_estimated = promised * self.rate * 0.1 > f64::from(self.flows[1].packet) * 8.0;
            if self.is_long() && is_estimated && got < 0.95 * promised {
                wrong.push(format!("f1 has {got:.4} of the link, {promised:.4} are guaranteed"));
            }
        }
        // The rest of the thin flow's share is divided too.
        let is_thin = self.flows[0].demand < 1.0;
        for (at, (drawn, part)) in self.flows.iter().zip(&parts).enumerate() {
            let got = throughput(&outcome, &format!("f{at}")) / self.rate;
            let least = part * drawn.demand.min(1.0);
            let bound = match self.shares() {
                Shares::Given if self.is_exact() && kept.is_none() => 0.95,
                // No flow is starved. Rates in labels are estimated over 100 ms.
                Shares::Given | Shares::Approximate if self.stop() > 1.0 || !self.has_labels() => {
                    0.01 * (1.0 - kept.map_or(0.0, |over| over * parts[1]))
                }
                _ => 0.0,
            };
            if got < bound * least {
                wrong.push(format!("f{at} has {got:.4} of the link, {least:.4} are due"));
            }
            if bound > 0.9 && !is_thin && got > 1.05 * part {
                wrong.push(format!("f{at} has {got:.4} of the link, {part:.4} are due"));
            }
        }
        Some(wrong)
    }
}

#[test]
fn what_is_combined_does_what_its_rule_says() {
    let seed = env::var("APPORTION_MATRIX").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let cases = cases(60).cases;
    let (mut random, mut judged, mut failed) = (Stream::new(seed, "matrix"), 0, Vec::new());
    for _ in 0..cases {
        let case = Case::draw(&mut random);
        let Some(wrong) = case.judge() else { continue };
        judged += 1;
        if !wrong.is_empty() {
            failed.push(format!("{}\n{}\n", case.text(), wrong.join("\n")));
        }
    }
    assert!(judged > cases / 3, "{judged} of {cases} were accepted");
    assert!(failed.is_empty(), "{} of {judged} with seed {seed}:\n{}", failed.len(), failed.join("\n"));
}

/// TCP flows and one that sends less than its share through an AQM, in a FIFO or in a scheduler that divides
/// among flows.
#[derive(Debug)]
struct Delay {
    /// The words of the queue: a scheduler, or isolated hosts.
    queue: String,
    drop: &'static str,
    rate: f64,
    rtt_ms: f64,
    flows: u32,
    ecn: bool,
}

impl Delay {
    fn draw(random: &mut Stream) -> Self {
        let kind = pick(random, &["drr", "rr", "stfq", "scfq", "wfq", "wf2q", "wf2q_plus"]);
        let isolate = if kind != "rr" && random.chance(0.3) { ", isolate = \"source\"" } else { "" };
        let flows = 2 + random.below(6) as u32;
        // A turn of all flows takes less than the target of the AQM.
        let least = 12_000.0 * f64::from(flows + 1) / 0.005;
        Self {
            queue: format!("kind = \"{kind}\"{isolate}"),
            drop: pick(random, &["codel", "pie", "cobalt"]),
            rate: (least * libm::pow(10.0, random.uniform())).round(),
            rtt_ms: 4.0 * libm::pow(15.0, random.uniform()),
            flows,
            ecn: random.chance(0.3),
        }
    }

    fn text(&self, queue: &str) -> String {
        let (rate, flows, drop) = (self.rate, self.flows, self.drop);
        let [tcp, marks] = if self.ecn { ["tcp = { ecn = true }\n", ", ecn = true"] } else { [""; 2] };
        format!(
            "seed = 1\nstop = \"20s\"\nmeasure_from = \"5s\"\n[topology]\nkind = \"dumbbell\"\npairs = {}\n\
             access = {{ rate = \"100Gbit\", delay = \"100us\" }}\n\
             bottleneck = {{ rate = \"{rate}bit\", delay = \"{:.3}ms\", queue = {{ {queue}, drop = \"{drop}\"{marks} }} }}\n\
             [flow.bulk]\ncount = {flows}\nfrom = \"l{{i}}\"\nto = \"r{{i}}\"\n{tcp}\
             [flow.thin]\nfrom = \"l{}\"\nto = \"r{}\"\n\
             source = {{ kind = \"cbr\", rate = \"{}bit\", packet = \"1500B\" }}\n",
            flows + 1,
            self.rtt_ms / 2.0,
            flows + 1,
            flows + 1,
            (rate / f64::from(2 * (flows + 1))).round(),
        )
    }

    /// Returns the error, if there is one.
    fn judge(&self) -> Option<String> {
        let [alone, behind] = ["kind = \"fifo\"", &self.queue].map(|queue| {
            let text = self.text(queue);
            let read = |path: &Path| std::fs::read(path);
            let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &read).unwrap();
            let outcome = run_with(&suite.points[0].scenario, 1);
            let p95 = link(&outcome, "bottleneck").queue_delay.quantile(0.95).unwrap();
            (p95, throughput(&outcome, "thin") * f64::from(2 * (self.flows + 1)) / self.rate)
        });
        let is_right = behind.0 < alone.0 * 2 && behind.1 > 0.95;
        (!is_right).then(|| format!("{}\nFIFO {alone:?}, behind {behind:?}", self.text(&self.queue)))
    }
}

#[test]
fn delay_behind_a_scheduler_is_at_most_twice_the_aqm_s() {
    let seed = env::var("APPORTION_MATRIX").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let cases = cases(6).cases;
    let mut random = Stream::new(seed, "delay");
    let failed: Vec<_> = (0..cases).filter_map(|_| Delay::draw(&mut random).judge()).collect();
    assert!(failed.is_empty(), "{} of {cases} with seed {seed}:\n{}", failed.len(), failed.join("\n"));
}
