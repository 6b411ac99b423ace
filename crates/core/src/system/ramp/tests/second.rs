//! Extensions of RAMP beyond the paper.

use super::*;

#[test]
fn a_flow_whose_window_never_fills_the_target_has_what_it_sends() {
    // 6000 B in flight, below the target of 16384 B, next to greedy packets: all of the link but the greedy
    // minimum.
    let sent = |pairs: &[&str]| {
        let mut link = Link::new(pairs, 1, alloc::vec![windowed(0, 1_500, 4), cbr(1, 1_400, &[(0, 20.0)])]);
        link.run(10_000);
        (link.sent[0] as f64 * 8e-7, link.mean_allocation(0, 5_000, 10_000))
    };
    let (mbit, allocated) = sent(&["preset=default", "recognise=false"]);
    assert!(is_near(mbit, 9.5, 0.02) && is_near(allocated, 9.5, 0.02), "{mbit} of {allocated}");
    // By fill alone the allocation is 6000 B in 20 ms, and with the paper's target the floor.
    assert!(sent(&["preset=default", "recognise=false", "feed_forward=false"]).1 < 2.5);
    assert!(sent(&[]).0 < 0.25, "{:?}", sent(&[]));
}

#[test]
fn a_steady_flow_is_allocated_its_rate_and_has_no_queue() {
    for (size, mbit) in [(100, 0.3), (1_500, 1.2), (1_500, 7.0)] {
        let sources = alloc::vec![cbr(0, size, &[(0, mbit)]), cbr(1, 1_400, &[(0, 20.0)])];
        let mut link = Link::new(&["preset=default"], 1, sources);
        link.run(10_000);
        let (fill, mean) = (link.mean_fill(0, 5_000, 10_000), link.mean_allocation(0, 5_000, 10_000));
        assert!(is_near(mean, mbit, 0.02) && fill < size as f64, "{size} B, {mbit} Mb/s: {mean}, {fill} B");
        assert!(is_near(link.sent[0] as f64 * 8e-7, mbit, 0.01), "{}", link.sent[0]);
    }
}

#[test]
fn a_burst_leaves_ahead_of_greedy_packets() {
    // 40 packets of 1500 B at once take 48 ms on the wire, and one greedy packet in twenty is sent between
    // them. At an average of 2.4 Mb/s they would take 200 ms.
    let left = |pairs: &[&str]| {
        let mut ramp = whole(pairs);
        let mut log = Log::default();
        ramp.set_flow(FlowId(0), FlowSetting::Class(FlowClass::RealRate));
        let mut now = Time::ZERO;
        let mut left = 40;
        for id in 0..40 {
            ramp.enqueue(now, packet(id, 1, 1_500), &mut log);
        }
        for id in 0..40 {
            ramp.enqueue(now, packet(id, 0, 1_500), &mut log);
        }
        while left > 0 {
            let sent = ramp.dequeue(now, &mut log);
            now = now.max(ramp.next_wakeup().unwrap_or(now));
            if let Some(sent) = sent {
                left -= u64::from(sent.flow.0 == 0);
                now += Rate::from_mbit(10).time_for(sent.size);
            }
        }
        now.as_nanos() / MS
    };
    assert!((48..=54).contains(&left(&["preset=default"])), "{}", left(&["preset=default"]));
    let reserved = left(&["preset=default", "leftover=greedy"]);
    assert!(reserved > 90, "{reserved}");
}

#[test]
fn real_rate_flows_leave_the_greedy_minimum() {
    // Two flows that want more than the link, with precedence over greedy packets for all unreserved
    // capacity.
    let mut sources: Vec<_> = (0..2).map(|flow| cbr(flow, 1_500, &[(0, 8.0)])).collect();
    sources.push(cbr(2, 1_400, &[(0, 20.0)]));
    let mut link = Link::new(&["preset=default", "recognise=false"], 2, sources);
    link.run(10_000);
    let rates: Vec<_> = link.sent.iter().map(|bytes| *bytes as f64 * 8e-7).collect();
    assert!(is_near(rates[2], 0.5, 0.05) && is_near(rates[0], rates[1], 0.02), "{rates:?}");
}

#[test]
fn a_call_keeps_its_rate_in_an_overload_that_others_make() {
    // Two flows of 12 and 6 Mb/s, calls of 1 and 0.1 Mb/s: 9.5 - 1.1 Mb/s for the two, half each.
    let shares = |pairs: &[&str]| {
        let flows = [12.0, 6.0, 1.0, 0.1].into_iter().zip(0..);
        let mut link = Link::new(pairs, 4, flows.map(|(mbit, flow)| cbr(flow, 500, &[(0, mbit)])).collect());
        link.run(3_000);
        [0, 1, 2, 3]
            .map(|flow| (link.mean_allocation(flow, 1_000, 3_000), link.mean_fill(flow, 1_000, 3_000)))
    };
    let fair = shares(&["preset=default"]);
    assert!(is_near(fair[0].0, 4.2, 0.02) && is_near(fair[1].0, 4.2, 0.02), "{fair:?}");
    // At most the target, 20 ms at 1 Mb/s.
    assert!(fair[2].0 >= 0.97 && fair[2].1 < 2_600.0 && fair[3].1 < 1_000.0, "{fair:?}");
    // With a common factor, the call gets its rate only through a queue that raises its requirement.
    let scaled = shares(&["preset=default", "overload=scale"]);
    assert!(scaled[2].1 > 5_000.0, "{scaled:?}");
}

#[test]
fn a_greedy_flow_that_becomes_real_rate_takes_its_packets_along_from_a_discipline() {
    let mut ramp = whole(&["preset=default", "greedy=drr", "interface_queue=1p"]);
    let mut log = Log::default();
    for id in 0..9 {
        ramp.enqueue(Time::ZERO, packet(id, id % 3, 1_000), &mut log);
    }
    // Packet 0 is in the interface queue; flow 1 has 1, 4 and 7.
    assert!(ramp.set_flow(FlowId(1), FlowSetting::Class(FlowClass::RealRate)));
    assert_eq!(ramp.shares().map(|share| share.1.fill.get()).collect::<Vec<_>>(), [3_000]);
    ramp.enqueue(Time::ZERO, packet(9, 2, 1_000), &mut log);
    assert!(ramp.set_flow(FlowId(1), FlowSetting::Class(FlowClass::Greedy)));
    ramp.enqueue(Time::ZERO, packet(10, 1, 1_000), &mut log);
    assert_eq!(ramp.backlog().packets.get(), 11);
    let sent: Vec<_> = core::iter::from_fn(|| ramp.dequeue(Time::ZERO, &mut log)).collect();
    for flow in 0..3 {
        let order: Vec<_> = sent.iter().filter(|sent| sent.flow.0 == flow).map(|sent| sent.id).collect();
        assert!(order.is_sorted(), "{order:?}");
    }
    assert_eq!((sent.len(), ramp.backlog()), (11, Backlog::EMPTY));
}

#[test]
fn each_queue_holds_the_target_of_its_flow() {
    let targets =
        [Some(FillTarget::Size(Bytes::new(4_096))), Some(FillTarget::Delay(Span::from_millis(80))), None];
    let waits = |pairs: &[&str]| {
        let mut link = Link::new(pairs, 3, (0..3).map(|flow| cbr(flow, 250, &[(0, 1.0)])).collect());
        for (flow, target) in (0..).map(FlowId).zip(targets) {
            assert!(link.queue.inner_mut().set_flow(flow, FlowSetting::Target(target)));
        }
        link.run(20_000);
        // At 1 Mb/s, in ms.
        [0, 1, 2].map(|flow| link.mean_fill(flow, 10_000, 20_000) * 8e-3)
    };
    for pairs in [&[][..], &["gains=designed"], &["units=fraction"]] {
        // Three packets of 2 ms more or less.
        let (waits, due) = (waits(pairs), [32.8, 80.0, 131.0]);
        let is_held = waits.iter().zip(due).all(|(wait, due)| (wait - due).abs() < 6.0);
        assert!(is_held, "{pairs:?}: {waits:?}");
    }
    // The arrival rate is allocated, and no queue is needed.
    assert!(waits(&["preset=default"]).iter().all(|ms| *ms < 5.0), "{:?}", waits(&["preset=default"]));
}

#[test]
fn a_target_holds_from_when_a_flow_becomes_real_rate_and_ends_when_it_is_withdrawn() {
    let mut link = Link::new(&[], 0, alloc::vec![cbr(0, 250, &[(0, 1.0)])]);
    let ramp = link.queue.inner_mut();
    ramp.set_flow(FlowId(0), FlowSetting::Target(Some(FillTarget::Size(Bytes::new(4_096)))));
    ramp.set_flow(FlowId(0), FlowSetting::Class(FlowClass::RealRate));
    assert!(is_near(link.run(10_000).mean_fill(0, 5_000, 10_000), 4_096.0, 0.1));
    let mut link = Link::new(&[], 1, alloc::vec![cbr(0, 250, &[(0, 1.0)])]);
    link.queue
        .inner_mut()
        .set_flow(FlowId(0), FlowSetting::Target(Some(FillTarget::Size(Bytes::new(4_096)))));
    link.queue.inner_mut().set_flow(FlowId(0), FlowSetting::Target(None));
    assert!(is_near(link.run(10_000).mean_fill(0, 5_000, 10_000), 16_384.0, 0.1));
}

#[test]
fn calls_that_fit_the_link_make_no_overload_by_their_floors() {
    // Sixty calls of 0.1 Mb/s and a film of 3 are 9 of the 9.5 Mb/s; sixty floors of 2 % would be 12.
    let calls = (0..60).map(|flow| cbr(flow, 400, &[(u64::from(flow), 0.1)]));
    let sources = calls.chain([cbr(60, 1_300, &[(0, 3.0)]), cbr(61, 1_400, &[(0, 20.0)])]).collect();
    let mut link = Link::new(&["preset=default"], 61, sources);
    link.run(6_000);
    assert_eq!(link.log.overloads, []);
    let needs = link.queue.inner().shares().map(|share| share.1.requirement.as_mbit_f64()).sum();
    assert!(is_near(needs, 9.0, 0.05), "{needs}");
    assert!(is_near(link.mean_allocation(60, 2_000, 6_000), 3.0, 0.02));
}

#[test]
fn floors_are_paid_from_what_is_left() {
    // No flow sends: the floor of 2 %. Four flows that want 9.2 of 9.5 Mb/s leave 0.3 for five floors of 0.2.
    let mut link =
        Link::new(&["preset=default"], 5, (0..5).map(|flow| cbr(flow, 1_000, &[(900, 2.3)])).collect());
    link.sources[4] = cbr(4, 1_000, &[(0, 0.01)]);
    link.run(3_000);
    let at = |ms: usize| link.shares[ms / 10].iter().map(|share| share.0).collect::<Vec<_>>();
    assert_eq!(at(800), [0.2; 5]);
    let wanted: f64 = link.queue.inner().shares().map(|share| share.1.requirement.as_mbit_f64()).sum();
    assert!(is_near(at(3_000)[4], (9.5 - wanted) / 5.0, 0.01) && wanted > 9.0, "{:?} {wanted}", at(3_000));
    assert!(at(2_900).iter().sum::<f64>() <= 9.51, "{:?}", at(2_900));
}

#[test]
fn in_an_overload_a_flow_that_begins_does_not_wait_for_its_average() {
    // A call of 0.1 Mb/s begins next to two films that want 16 Mb/s; its first packets find an average of
    // zero.
    let films = (0..2).map(|flow| cbr(flow, 1_000, &[(0, 8.0)]));
    let mut link = Link::new(&["preset=default"], 3, films.chain([cbr(2, 200, &[(3_000, 0.1)])]).collect());
    link.run(4_000);
    // Three packets of 16 ms.
    let most = link.shares[300..].iter().map(|row| row[2].1).fold(0.0, f64::max);
    assert!(most <= 600.0, "{most} B wait");
}

#[test]
fn in_an_overload_a_small_window_is_no_bound() {
    // Four packets of 1000 B in flight next to two films that want more than is available: a third of it, if
    // they wait no longer than the films' level allows. Without precedence for sparse flows.
    let films = (0..2).map(|flow| cbr(flow, 1_000, &[(0, 8.0)]));
    let pairs = ["preset=default", "leftover=greedy"];
    let mut link = Link::new(&pairs, 3, films.chain([windowed(2, 1_000, 4)]).collect());
    link.run(8_000);
    let allocated = link.mean_allocation(2, 4_000, 8_000);
    assert!(allocated > 3.0, "{allocated}");
}

#[test]
fn nothing_is_late_that_the_link_alone_made_wait() {
    // Packets of 1514 B take 121 ms on a link of 0.1 Mb/s; a call sends one each 30 ms.
    let mut ramp = whole(&["preset=default", "greedy=drr"]);
    let rate = Rate::from_kbit(100);
    ramp.set_link_rate(rate);
    let mut log = Log::default();
    ramp.set_flow(FlowId(0), FlowSetting::Class(FlowClass::RealRate));
    let mut free = Time::ZERO;
    for ms in 0..20_000 {
        let now = Time::from_millis(ms);
        if ms % 30 == 0 {
            ramp.enqueue(now, packet(0, 0, 60), &mut log);
        }
        if ms % 60 == 0 {
            ramp.enqueue(now, packet(1, 1, 1_514), &mut log);
        }
        if now >= free
            && let Some(sent) = ramp.dequeue(now, &mut log)
        {
            free = now + rate.time_for(sent.size);
        }
    }
    assert!(log.dropped.iter().all(|drop| drop.1 == 1), "{:?}", log.dropped.len());
}

#[test]
fn what_waited_too_long_is_dropped_and_the_rest_comes_in_time() {
    // A film of 7 Mb/s and two calls next to one of 9: 4.7 Mb/s for either film, so that their queues grow.
    let waits = |pairs: &[&str], target: Option<FillTarget>| {
        let flows = [7.0, 9.0, 0.05, 0.05].into_iter().zip(0..);
        let mut link = Link::new(pairs, 4, flows.map(|(mbit, flow)| cbr(flow, 700, &[(0, mbit)])).collect());
        link.queue.inner_mut().set_flow(FlowId(0), FlowSetting::Target(target));
        link.run(8_000);
        let is_early = |drop: &(Time, u32, DropReason)| drop.2 == DropReason::Early;
        assert!(pairs[0] != "preset=default" || link.log.dropped.iter().all(is_early));
        let drops = link.log.dropped.len();
        // A queue holds the arrivals of the longest wait: in ms.
        let of = |flow, mbit: f64| link.mean_fill(flow, 3_000, 8_000) * 8e-3 / mbit;
        ([of(0, 7.0), of(1, 9.0)], drops)
    };
    let ([film, other], drops) = waits(&["preset=default"], None);
    assert!(
        is_near(film, 200.0, 0.05) && is_near(other, 200.0, 0.05) && drops > 1_000,
        "{film} {other} {drops}"
    );
    let ([film, _], _) = waits(&["preset=default", "patience=70ms"], None);
    assert!(is_near(film, 70.0, 0.1), "{film}");
    // A flow that asks for a longer queue gets it, and up to twice as much.
    let ([film, other], _) =
        waits(&["preset=default", "patience=70ms"], Some(FillTarget::Delay(Span::from_millis(150))));
    assert!(is_near(film, 300.0, 0.05) && is_near(other, 70.0, 0.1), "{film} {other}");
    let ([film, _], _) =
        waits(&["preset=default", "patience=70ms"], Some(FillTarget::Size(Bytes::new(60_000))));
    assert!(is_near(film, 137.0, 0.05), "{film}");
    // In the paper the queue grows to its limit: 1000 packets are 800 ms.
    assert!(waits(&["limit=1000p"], None).0[0] > 780.0);
}

#[test]
fn the_last_packet_of_a_queue_is_never_dropped_for_its_age() {
    // 60 kb/s for each of two flows: a packet of 1500 B takes 200 ms, and so does the other flow's.
    let mut ramp = whole(&["preset=default", "patience=1ms"]);
    ramp.set_link_rate(Rate::from_kbit(60));
    let mut log = Log::default();
    for id in 0..2 {
        ramp.set_flow(FlowId(id), FlowSetting::Class(FlowClass::RealRate));
        ramp.enqueue(Time::ZERO, packet(id, id, 1_500), &mut log);
    }
    let later = Time::from_secs(2);
    let sent: Vec<_> = core::iter::from_fn(|| ramp.dequeue(later, &mut log)).map(|sent| sent.id).collect();
    assert_eq!((sent.len(), log.dropped.len()), (2, 0));
}

#[test]
fn flows_that_are_silent_come_to_rest_and_wake_with_a_packet() {
    // Three hundred flows send for half a second each; one continues.
    let brief = (0..300).map(|flow| cbr(flow, 200, &[(0, 0.02), (500, 0.0), (9_000, 0.02)]));
    let mut link = Link::new(&["preset=default"], 301, brief.chain([cbr(300, 500, &[(0, 0.7)])]).collect());
    link.run(8_000);
    assert_eq!(link.queue.inner().watched.iter().copied().collect::<Vec<_>>(), [300]);
    let allocated = |link: &Link| link.shares.last().map(|row| row[7].2);
    let before = link.shares[600][7].2;
    assert_eq!(Some(before), allocated(&link), "at rest it is allocated nothing");
    let ramp = link.queue.inner_mut();
    ramp.enqueue(Time::from_secs(8), packet(0, 7, 200), &mut link.log);
    assert_eq!(ramp.watched.len(), 2);
    // Its packet left at once, on saved credit.
    assert!(ramp.flows[7].fill.is_empty() || ramp.in_interface.packets.get() > 0);
    assert_eq!(ramp.flows[7].granted, Rate::from_kbit(200));
    ramp.advance(Time::from_millis(8_010), &mut link.log);
    let counted = ramp.shares().find(|share| share.0 == FlowId(7)).map(|share| share.1.allocated.get());
    // 2 % of 10 Mb/s from then on.
    assert!(counted.is_some_and(|bytes| bytes.abs_diff(before as u64 + 250) <= 1), "{counted:?} {before}");
}

#[test]
fn a_flow_at_rest_hears_that_an_overload_is_over() {
    let sources =
        alloc::vec![cbr(0, 1_000, &[(0, 8.0), (2_000, 0.0)]), cbr(1, 1_000, &[(0, 8.0), (9_000, 1.0)])];
    let mut link = Link::new(&["preset=default"], 2, sources);
    link.run(15_000);
    let over: Vec<_> = link.log.overloads.iter().filter(|it| it.1.is_over).map(|it| it.1.flow.0).collect();
    assert_eq!(over, [0, 1]);
    assert_eq!(link.queue.inner().watched.len(), 1);
}

#[test]
fn a_parameter_that_another_leaves_without_effect_is_refused() {
    let read = |pairs: &[&str]| {
        let mut selection = Selection::new("ramp", None, None).unwrap();
        for (key, value) in pairs.iter().filter_map(|pair| pair.split_once('=')) {
            selection.set(key, value).unwrap();
        }
        RampParams::from_args(&selection.kind_args()).map_err(|error| alloc::format!("{error}"))
    };
    for (pairs, key) in [
        (&["target=64KiB"][..], "target"),
        (&["p=0.5"], "p"),
        (&["i=0.1"], "i"),
        (&["d=0.1"], "d"),
        (&["units=bytes"], "units"),
        (&["anti_windup=false"], "anti_windup"),
        (&["gains=printed", "i=0.1"], "i"),
        (&["preset=paper", "gains=designed", "p=0.5"], "p"),
        (&["preset=paper", "target_delay=30ms", "target=64KiB"], "target"),
    ] {
        let error = read(pairs).unwrap_err();
        assert!(
            error.starts_with(&alloc::format!("`{key}`: ")) && error.contains("write"),
            "{pairs:?}: {error}"
        );
    }
    for pairs in [
        // The settings of the canonical text.
        &["target=16KiB", "p=0.35", "i=0.005", "d=0.01", "units=percent", "anti_windup=true"][..],
        &["gains=printed", "p=0.5", "d=0.1", "units=bytes"],
        &["gains=printed", "units=fraction", "target=64KiB"],
        &["gains=printed", "feed_forward=false", "i=0.1", "anti_windup=false"],
        &["preset=paper", "target=64KiB", "i=0.1", "units=bytes", "anti_windup=false"],
    ] {
        assert!(read(pairs).is_ok(), "{pairs:?}: {:?}", read(pairs));
    }
}
