//! The flow settings that a discipline claims to heed against its behaviour: a heeded setting changes the
//! fate of packets, any other changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::label::Label;
use apportion_core::packet::{CustomerId, Customers, FillTarget};
use apportion_core::param::{Heeds, Kind, Role};
use apportion_core::random::Stream;
use apportion_core::system::isolate::ENTRY as ISOLATION;
use apportion_core::system::{Catalog, DisciplineParams, LinkContext};
use apportion_core::units::{Rate, Span, Time, Weight};
use apportion_core::{Colour, Ecn, FlowClass, FlowId, FlowSetting, HostPair, LabelKind, Packet as _, Queue};

use crate::common::{Log, SimplePacket, packet, read};

const FLOWS: u32 = 5;
/// The flow whose settings change.
const CHANGED: FlowId = FlowId(1);

/// One setting of each kind, different from the flow's previous one.
fn settings() -> [FlowSetting; 7] {
    [
        FlowSetting::Weight(Weight::new(0.2).unwrap()),
        FlowSetting::Guarantee(Rate::from_mbit(3), Span::from_millis(20)),
        FlowSetting::Rtt(Span::from_millis(200)),
        FlowSetting::Customer(CustomerId(1)),
        FlowSetting::Hosts(HostPair { source: 7, destination: 9 }),
        FlowSetting::Class(FlowClass::RealRate),
        FlowSetting::Target(Some(FillTarget::Delay(Span::from_millis(100)))),
    ]
}

/// Whether `setting` was heeded during random arrivals that overload a link of 10 Mb/s, and the resulting
/// fate of packets and allocations of real-rate flows.
fn transcript(params: &DisciplineParams, setting: Option<FlowSetting>, is_real_rate: bool) -> (bool, String) {
    let weights = vec![Weight::ONE; FLOWS as usize];
    let link = LinkContext {
        weights: &weights,
        smallest_weight: Weight::new(0.2),
        rtts: &[Span::from_millis(50); FLOWS as usize],
        customers: Customers { weights: &[Weight::ONE; 3], ..Customers::default() },
        ..LinkContext::new(Rate::from_mbit(10), 1, "link")
    };
    let mut queue = params.build_simple(&link);
    for flow in (0..FLOWS).filter(|_| is_real_rate) {
        queue.set_flow(FlowId(flow), FlowSetting::Class(FlowClass::RealRate));
    }
    let (mut stream, mut log, mut sent) = (Stream::new(1, "arrivals"), Log::default(), Vec::new());
    let (mut now, mut is_heeded) = (Time::ZERO, false);
    for id in 0..2_000 {
        if id == 500 {
            is_heeded = setting.is_some_and(|setting| queue.set_flow(CHANGED, setting));
        }
        let flow = stream.below(u64::from(FLOWS)) as u32;
        let mut arriving = packet(id, flow, 60 + stream.below(1_400));
        arriving.ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][flow as usize % 3];
        arriving.colour = if stream.below(2) == 0 { Colour::Green } else { Colour::Red };
        // A packet without labels comes from a host, others from a router.
        if stream.below(2) == 0 {
            for kind in LabelKind::ALL {
                arriving.set_label(kind, Label::new(3e6 * f64::from(1 + 4 * flow)));
            }
        }
        queue.enqueue(now, arriving, &mut log);
        // 760 B in 0.3 ms, then in 1.2 ms: twice the rate of the link, and half.
        now += Span::from_micros(stream.below(if id % 1_000 < 800 { 600 } else { 2_400 }));
        if stream.below(if id % 1_000 < 800 { 2 } else { 1 }) == 0 {
            sent.extend(queue.dequeue(now, &mut log).map(|packet: SimplePacket| (now, packet)));
        }
    }
    let mut shares = Vec::new();
    queue.shares(now, &mut log, &mut |flow, share| shares.push((flow, share)));
    (is_heeded, format!("{sent:?} {log:?} {shares:?}"))
}

/// Each discipline with each word of each of its parameters, as `kind` and keys.
fn variants() -> Vec<(&'static str, Vec<String>)> {
    let catalog = Catalog::default();
    let schedulers = || catalog.all().filter(|entry| entry.role == Role::Scheduler);
    let mut all = Vec::new();
    for entry in catalog.disciplines() {
        let (kind, base) = match entry.role {
            Role::Shaper => ("drr", vec![format!("shaper={}", entry.name), "rate=8Mbit".to_owned()]),
            _ if entry.traits.classes.is_some() => {
                let [a, b] = match entry.name {
                    "prio" => ["prio=0", "prio=1"],
                    "htb" => ["rate=4Mbit"; 2],
                    _ => ["rt_m2=4Mbit"; 2],
                };
                let keys = [format!("class.a.{a}"), format!("class.b.{b}"), "class.b.others=true".to_owned()];
                (entry.name, keys.to_vec())
            }
            _ => (entry.name, Vec::new()),
        };
        let with = |key: &str, word: &str| {
            let key = format!("{key}={word}");
            (kind, base.iter().cloned().chain([key]).collect::<Vec<_>>())
        };
        // Words of parameters may contradict each other, and are then left out.
        assert!(read(kind, &base.iter().map(String::as_str).collect::<Vec<_>>()).is_ok(), "{kind} {base:?}");
        all.push((kind, base.clone()));
        for param in entry.params {
            match param.kind {
                Kind::Choice(words) => all.extend(words.iter().map(|word| with(param.name, word))),
                Kind::Discipline(place) => {
                    all.extend(Catalog::inside(place).map(|inside| with(param.name, inside.name)));
                }
                Kind::Switch => all.extend(["true", "false"].map(|word| with(param.name, word))),
                _ => {}
            }
        }
        all.extend(["source", "destination", "both"].map(|word| with("isolate", word)));
        if entry.role == Role::Policy {
            all.extend(schedulers().map(|scheduler| (scheduler.name, vec![format!("drop={}", entry.name)])));
        }
    }
    all
}

#[test]
fn a_setting_that_is_heeded_changes_what_happens_and_another_nothing() {
    let mut wrong = String::new();
    let mut heeded = BTreeMap::<&str, BTreeSet<Heeds>>::new();
    for (kind, keys) in variants() {
        let mut keys: Vec<_> = keys.iter().map(String::as_str).collect();
        keys.push("limit=40p");
        if kind == "pvpie" {
            // By default PIE takes longer than this to drop what has no label.
            keys.extend(["tupdate=1ms", "alpha=50", "beta=50", "max_burst=0s"]);
        }
        if kind == "vdq_csaqm" {
            keys.extend(["target=1ms", "window=10ms"]);
        }
        let Ok(params) = read(kind, &keys) else { continue };
        let [greedy, real_rate] = [false, true].map(|is_real_rate| transcript(&params, None, is_real_rate).1);
        // The traits of a scheduler with a policy or a shaper belong to neither.
        let has = |start: &str| keys.iter().any(|key| key.starts_with(start));
        let shown = if has("isolate=") { "isolate" } else { kind };
        let shows_one = !has("drop=") && !has("shaper=");
        for setting in settings() {
            // A target belongs to a real-rate flow, and matters in an overload.
            let is_target = matches!(setting, FlowSetting::Target(_));
            let (is_heeded, changed) = transcript(&params, Some(setting), is_target);
            let before = if is_target { &real_rate } else { &greedy };
            if is_heeded && shows_one {
                heeded.entry(shown).or_default().insert(setting.kind());
            }
            if is_heeded != (*before != changed) || is_heeded != params.may_heed(setting.kind()) {
                wrong += &format!("{kind} {keys:?} {setting:?}: heeded {is_heeded}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    // The catalogue must agree.
    let catalog = Catalog::default();
    let said = catalog.disciplines().chain([&ISOLATION]);
    let said = said.map(|entry| (entry.name, entry.traits.heeds.iter().copied().collect::<BTreeSet<_>>()));
    assert_eq!(heeded, said.filter(|(_, heeds)| !heeds.is_empty()).collect());
}
