//! What the second generation of RAMP does that the paper's does not.

use super::*;

#[test]
fn a_flow_whose_window_never_fills_the_target_has_what_it_sends() {
    // 6000 B under way, of 16384 that the target is, next to greedy packets: all of the link but the greedy minimum.
    let sent = |pairs: &[&str]| {
        let mut link = Link::new(pairs, 1, alloc::vec![windowed(0, 1_500, 4), cbr(1, 1_400, &[(0, 20.0)])]);
        link.run(10_000);
        (link.sent[0] as f64 * 8e-7, link.mean_allocation(0, 5_000, 10_000))
    };
    let (mbit, allocated) = sent(&["preset=default"]);
    assert!(is_near(mbit, 9.5, 0.02) && is_near(allocated, 9.5, 0.02), "{mbit} of {allocated}");
    // By fill alone it is allocated what 6000 B in 20 ms are, and with the paper's target the floor.
    assert!(sent(&["preset=default", "feed_forward=false"]).1 < 2.5);
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
    // 40 packets of 1500 B at once take 48 ms on the wire, and one greedy packet in twenty goes between them. By an
    // average of 2.4 Mb/s they would take 200 ms.
    let left = |pairs: &[&str]| {
        let mut ramp = whole(pairs);
        let mut log = Log::default();
        ramp.set_class(FlowId(0), FlowClass::RealRate);
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
    // Two flows that want more than the link, with all of what is left before greedy packets.
    let mut sources: Vec<_> = (0..2).map(|flow| cbr(flow, 1_500, &[(0, 8.0)])).collect();
    sources.push(cbr(2, 1_400, &[(0, 20.0)]));
    let mut link = Link::new(&["preset=default"], 2, sources);
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
    // Scaled down, the call has its rate only by a queue that makes it want more.
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
    // Packet 0 stands before the link; of flow 1 there are 1, 4 and 7.
    assert!(ramp.set_class(FlowId(1), FlowClass::RealRate));
    assert_eq!(ramp.shares().map(|share| share.1.fill.get()).collect::<Vec<_>>(), [3_000]);
    ramp.enqueue(Time::ZERO, packet(9, 2, 1_000), &mut log);
    assert!(ramp.set_class(FlowId(1), FlowClass::Greedy));
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
            assert!(link.queue.inner_mut().set_target(flow, target));
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
    // What comes in is allocated, and a queue need not hold anything.
    assert!(waits(&["preset=default"]).iter().all(|ms| *ms < 5.0), "{:?}", waits(&["preset=default"]));
}

#[test]
fn a_target_holds_from_when_a_flow_becomes_real_rate_and_ends_when_it_is_withdrawn() {
    let mut link = Link::new(&[], 0, alloc::vec![cbr(0, 250, &[(0, 1.0)])]);
    let ramp = link.queue.inner_mut();
    ramp.set_target(FlowId(0), Some(FillTarget::Size(Bytes::new(4_096))));
    ramp.set_class(FlowId(0), FlowClass::RealRate);
    assert!(is_near(link.run(10_000).mean_fill(0, 5_000, 10_000), 4_096.0, 0.1));
    let mut link = Link::new(&[], 1, alloc::vec![cbr(0, 250, &[(0, 1.0)])]);
    link.queue.inner_mut().set_target(FlowId(0), Some(FillTarget::Size(Bytes::new(4_096))));
    link.queue.inner_mut().set_target(FlowId(0), None);
    assert!(is_near(link.run(10_000).mean_fill(0, 5_000, 10_000), 16_384.0, 0.1));
}
