//! What people combine, drawn at random: a discipline, with a policy of its own, isolation, weights, sizes of packets and rates. Whatever
//! a scenario accepts and a discipline calls its rule is what flows have.
//!
//! `APPORTION_MATRIX` is the seed; without it the cases are always the same. `APPORTION_CASES` multiplies their number, 60.

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
    /// Bit/s.
    rate: f64,
    flows: Vec<Drawn>,
}

/// A flow of a case.
#[derive(Debug)]
struct Drawn {
    weight: f64,
    /// Bytes.
    packet: u32,
    /// Its rate over what it is due; below 1 it is due what it sends.
    demand: f64,
    /// Its source.
    host: u32,
}

/// One of a list.
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
        // A default buffer is 64 full packets of Ethernet at least, which is no more than ten jumbo frames.
        let packets = [64, 200, 576, 1_500, 9_000];
        let packet = pick(random, if rate < 5e7 { &packets[..4] } else { &packets });
        let flows = (0..2 + random.below(7)).map(|at| Drawn {
            weight: if is_weighted { pick(random, &[1.0, 2.0, 4.0]) } else { 1.0 },
            packet: if is_mixed { pick(random, &[200, 576, 1_500]) } else { packet },
            demand: if at == 0 && is_thin { 0.5 } else { 1.3 + 2.0 * random.uniform() },
            host: random.below(3) as u32,
        });
        let flows = flows.collect();
        Self { kind, drop, isolate: random.chance(0.25), rate, flows }
    }

    /// What it does about shares.
    fn shares(&self) -> Shares {
        match self.drop.map(|drop| drop.traits.shares) {
            Some(Shares::Kept) | None => self.kind.traits.shares,
            Some(of_policy) => of_policy,
        }
    }

    fn policy_divides(&self) -> bool {
        self.drop.is_some_and(|drop| drop.traits.shares >= Shares::Approximate)
    }

    fn heeds_weights(&self) -> bool {
        let entries = [Some(self.kind), self.drop];
        entries.into_iter().flatten().any(|entry| entry.traits.heeds.contains(&Heeds::Weight))
    }

    /// Parts of the link by the rule of the discipline, where all want more; by packets round robin gives in proportion to sizes.
    fn parts(&self) -> Vec<f64> {
        let weigh = |flow: &Drawn| {
            let weight = if self.heeds_weights() || self.isolate { flow.weight } else { 1.0 };
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
        }
        text
    }

    /// In seconds: some 6,000 packets of the largest size and as many turns; the first third is not counted.
    fn stop(&self) -> f64 {
        let largest = self.flows.iter().map(|flow| flow.packet).max().unwrap_or(1_500).max(1_500);
        6_000.0 * f64::from(largest) * 8.0 / self.rate
    }

    /// Whether what it divides by is known: not by a control loop in less than some of its periods, nor in bytes by a round robin of
    /// packets among hosts.
    fn is_exact(&self) -> bool {
        let turn: f64 = self.flows.iter().map(|flow| f64::from(flow.packet) * 8.0 / self.rate).sum();
        let has_target = |entry: &Entry| entry.params.iter().any(|param| param.name == "target");
        let is_controlled = [Some(self.kind), self.drop].into_iter().flatten().any(has_target);
        // An AQM whose delay is shorter than a turn of all flows drops from flows within their shares.
        let is_suitable = !is_controlled || (turn < 0.005 && self.stop() > 2.0);
        self.shares() == Shares::Given && is_suitable && !(self.kind.name == "rr" && self.isolate)
    }

    /// What is wrong; none if it is refused.
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
        // What the thin flow leaves is divided like the rest.
        let parts = self.parts();
        let is_thin = self.flows[0].demand < 1.0;
        for (at, (drawn, part)) in self.flows.iter().zip(&parts).enumerate() {
            let got = throughput(&outcome, &format!("f{at}")) / self.rate;
            let least = part * drawn.demand.min(1.0);
            let bound = match self.shares() {
                Shares::Given if self.is_exact() => 0.95,
                // No flow is starved.
                Shares::Given | Shares::Approximate => 0.01,
                Shares::Kept | Shares::Ignored => 0.0,
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
