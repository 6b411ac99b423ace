//! RIO, RED with IN and OUT: packets within their profile are judged by the queue of IN packets, all others
//! by the whole queue, each kind with its own ramp.
//!
//! Clark, Fang, "Explicit allocation of best-effort packet delivery service", IEEE/ACM ToN 6(4), 1998. The
//! coupled form: OUT packets pay for the IN packets before them. The default thresholds are those that later
//! literature cites for the paper.
//!
//! Readings, where the paper leaves room:
//! - IN is [`Colour::Green`]. Yellow, red and unmarked packets are OUT: RIO has two kinds.
//! - Arrivals of IN packets update the average of IN packets; every arrival updates the average of all
//!   packets.
//! - Each kind has its own ramp, count and first arrival (`drop_curve.rs`). IN packets are safe while at most
//!   one IN packet waits, OUT packets while at most one packet of either kind waits.
//! - Idle time belongs to the link and lowers both averages (`average.rs`).
//! - `stale_out` is for comparison only: arrivals of OUT packets change no average, so an overload of OUT
//!   packets alone goes unnoticed. No other implementation is known to do so. In particular ns-2.35 updates
//!   the average of all packets at arrivals of OUT packets too, as here, and spaces drops uniformly:
//!   `wait = false`. With that, this module agrees with it if most packets are OUT. If most are IN it does
//!   not (mean queue here 23 packets, there 44), for an unknown reason. The reason is not that p_b / (1 -
//!   count p_b) becomes negative once count p_b is above 1, so that nothing is dropped: this changed the mean
//!   queue by 5 % at most (Poisson load of 1.01 and 1.05 of the link, a quarter of the link to all of it IN,
//!   5 seeds).
//!
//! Cost: O(1) per packet, no state per flow. Parameters: [`ENTRY`].

use super::average::AverageQueue;
use super::detection::{GENTLE, MEAN_PKTSIZE, W_Q, WAIT, check_average};
use super::drop_curve::{DropCurve, DropSpacing, check_thresholds};
use super::{Admission, BufferPolicy};
use crate::limit::{BufferSize, Limit, LinkLimit, Threshold};
use crate::packet::{Colour, Packet};
use crate::param::{Entry, GoesBy, LIMIT, Param, ParamError, Role, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, MeanPackets, Packets, Rate, Ratio, Time};

/// RIO in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "rio",
    role: Role::Policy,
    summary: "RED with IN and OUT: drops packets out of profile earlier than those within.",
    reference: "Clark, Fang 1998",
    cost: "O(1) per packet, no state per flow",
    params: RioParams::PARAMS,
    traits: Traits {
        goes_by: Some(GoesBy::Colours),
        limits: "Behind a fair scheduler a flood fills the buffer: use `lqd`, `pfd`, `codel` or `pie` there.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Rio`].
    pub struct RioParams {
        limit: Option<BufferSize> = LIMIT.in_paper("140p"),
        /// Average of IN packets below which they are not dropped early.
        in_min_th: MeanPackets = Param::of("40p", "1998 paper").symbol("min_in"),
        /// Average of IN packets from which they are all dropped.
        in_max_th: MeanPackets = Param::of("70p", "1998 paper").symbol("max_in"),
        /// Probability at `in_max_th`.
        in_max_p: Ratio = Param::of("0.02", "1998 paper").symbol("P_max_in"),
        /// Average below which OUT packets are not dropped early.
        out_min_th: MeanPackets = Param::of("10p", "1998 paper").symbol("min_out"),
        /// Average from which OUT packets are all dropped.
        out_max_th: MeanPackets = Param::of("30p", "1998 paper").symbol("max_out"),
        /// Probability at `out_max_th`.
        out_max_p: Ratio = Param::of("0.2", "1998 paper").symbol("P_max_out"),
        w_q: Ratio = W_Q,
        gentle: bool = GENTLE,
        wait: bool = WAIT,
        mean_pktsize: Bytes = MEAN_PKTSIZE,
        /// Leave the averages alone when OUT packets arrive; for comparison.
        stale_out: bool = Param::of("false", "chosen: as the paper"),
    }
    check: |params: &Self, _| params.check()
}

impl RioParams {
    fn check(&self) -> Result<(), ParamError> {
        for [(min_name, min_th), (max_name, max_th)] in [
            [("in_min_th", self.in_min_th), ("in_max_th", self.in_max_th)],
            [("out_min_th", self.out_min_th), ("out_max_th", self.out_max_th)],
        ] {
            let (min_th, max_th) = (Threshold::Packets(min_th), Threshold::Packets(max_th));
            check_thresholds((min_name, min_th), (max_name, max_th), self.limit)?;
        }
        check_average(self.w_q, self.mean_pktsize)
    }
}

/// RIO's state.
#[derive(Clone, Debug)]
pub struct Rio {
    params: RioParams,
    limit: LinkLimit,
    /// IN packets in the queue.
    q_in: u64,
    avg_in: AverageQueue,
    avg_total: AverageQueue,
    spacing_in: DropSpacing,
    spacing_out: DropSpacing,
    random: Stream,
}

impl Rio {
    /// RIO for a link of `link_rate`, with averages of 0.
    #[must_use]
    pub fn new(params: &RioParams, link_rate: Rate, random: Stream) -> Self {
        let average = AverageQueue::new(params.w_q, params.mean_pktsize, link_rate);
        let spacing = |min_th: MeanPackets, max_th: MeanPackets, max_p| {
            let (min_th, max_th) = (min_th.get(), max_th.get());
            DropSpacing::new(DropCurve { min_th, max_th, max_p, gentle: params.gentle }, params.wait)
        };
        Self {
            q_in: 0,
            avg_in: average.clone(),
            avg_total: average,
            spacing_in: spacing(params.in_min_th, params.in_max_th, params.in_max_p),
            spacing_out: spacing(params.out_min_th, params.out_max_th, params.out_max_p),
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            random,
        }
    }

    fn update_averages(&mut self, now: Time, is_in: bool, queued: Packets) {
        if !is_in && self.params.stale_out {
            return;
        }
        self.avg_total.update(now, queued.get() as f64);
        // An OUT packet ends the idle time for both averages.
        self.avg_in.resume(now);
        if is_in {
            self.avg_in.sample(self.q_in as f64);
        }
    }
}

fn is_in<P: Packet>(packet: &P) -> bool {
    packet.colour() == Colour::Green
}

impl<P: Packet> BufferPolicy<P> for Rio {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let is_in = is_in(packet);
        self.update_averages(now, is_in, backlog.packets);
        let (spacing, avg, queued) = if is_in {
            (&mut self.spacing_in, self.avg_in.get(), Packets::new(self.q_in))
        } else {
            (&mut self.spacing_out, self.avg_total.get(), backlog.packets)
        };
        let early = spacing.early(avg, queued, 1.0, &mut self.random);
        let reason =
            if self.limit.get().admits(packet, backlog) { early } else { Some(DropReason::Overflow) };
        if let Some(reason) = reason {
            spacing.dropped();
            return Admission::Drop(reason);
        }
        self.q_in += u64::from(is_in);
        Admission::Accept
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let Some(queued) = scheduler.pop(now) else {
            self.avg_in.idle(now);
            self.avg_total.idle(now);
            return None;
        };
        self.q_in -= u64::from(is_in(&queued.packet));
        Some(queued)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("avg_in", self.avg_in.get());
        show("avg_total", self.avg_total.get());
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.avg_in.set_link_rate(rate);
        self.avg_total.set_link_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};

    fn defaults() -> RioParams {
        RioParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap()
    }

    fn rio(params: &RioParams) -> Rio {
        Rio::new(params, Rate::from_mbit(4), Stream::new(1, "rio"))
    }

    fn coloured(colour: Colour) -> SimplePacket {
        SimplePacket { colour, ..packet(0, 0, 500) }
    }

    /// The admission of a packet that finds `queued` packets.
    fn admit(rio: &mut Rio, colour: Colour, queued: u64) -> Admission {
        let backlog = Backlog { packets: Packets::new(queued), bytes: Bytes::new(500 * queued) };
        rio.admit(Time::ZERO, &mut coloured(colour), backlog)
    }

    fn averages(rio: &Rio) -> [f64; 2] {
        [rio.avg_in.get(), rio.avg_total.get()]
    }

    #[test]
    fn in_packets_move_both_averages_and_the_others_that_of_all() {
        let mut rio = rio(&RioParams { w_q: Ratio::clamped(0.5), ..defaults() });
        // 0.5·0 for no IN packets, 0.5·4 for four packets; the packet joins.
        admit(&mut rio, Colour::Green, 4);
        assert_eq!(averages(&rio), [0.0, 2.0]);
        // OUT: 0.5·2 + 0.5·6 = 4.
        for (colour, total) in [(Colour::Yellow, 4.0), (Colour::Red, 5.0), (Colour::Unmarked, 5.5)] {
            admit(&mut rio, colour, 6);
            assert_eq!(averages(&rio), [0.0, total]);
        }
        // IN: 0.5·0 + 0.5·1 packet within profile; all: 0.5·5.5 + 0.5·6.5.
        admit(&mut rio, Colour::Green, 6);
        assert_eq!(averages(&rio), [0.5, 5.75]);
    }

    #[test]
    fn stale_averages_do_not_see_packets_out_of_profile() {
        for (stale_out, verdict) in [(true, Admission::Accept), (false, Admission::Drop(DropReason::Forced))]
        {
            let mut rio = rio(&RioParams { w_q: Ratio::ONE, stale_out, ..defaults() });
            assert_eq!(admit(&mut rio, Colour::Red, 90), verdict, "stale_out {stale_out}");
        }
    }

    #[test]
    fn out_packets_pay_for_the_in_packets_before_them_and_not_the_other_way_round() {
        // 35 packets within profile wait: above the 30 of OUT, below the 40 of IN.
        let mut queue = Buffer::new(Fifo::new(), rio(&RioParams { w_q: Ratio::ONE, ..defaults() }));
        let mut log = Log::default();
        for _ in 0..35 {
            queue.enqueue(Time::ZERO, coloured(Colour::Green), &mut log);
        }
        queue.enqueue(Time::ZERO, coloured(Colour::Red), &mut log);
        assert_eq!(log.dropped, [(Time::ZERO, 0, DropReason::Forced)]);
        // 29 packets out of profile and 1 within: IN packets count only IN packets.
        let mut rio = rio(&RioParams { w_q: Ratio::ONE, ..defaults() });
        rio.q_in = 1;
        assert_eq!(admit(&mut rio, Colour::Green, 139), Admission::Accept);
        assert_eq!(averages(&rio), [1.0, 139.0]);
    }

    #[test]
    fn packets_that_leave_are_no_longer_counted_and_idle_time_lowers_both_averages() {
        let mut queue = Buffer::new(Fifo::new(), rio(&RioParams { w_q: Ratio::clamped(0.5), ..defaults() }));
        let mut log = Log::default();
        for colour in [Colour::Green, Colour::Red, Colour::Green, Colour::Green] {
            queue.enqueue(Time::ZERO, coloured(colour), &mut log);
        }
        // IN saw 0, 1, 2: 0, 0.5, 1.25. All saw 0, 1, 2, 3: 0, 0.5, 1.25, 2.125.
        assert_eq!(averages(queue.policy()), [1.25, 2.125]);
        assert_eq!(queue.policy().q_in, 3);
        while queue.dequeue(Time::ZERO, &mut log).is_some() {}
        assert_eq!(queue.policy().q_in, 0);
        // 1 ms is the time of m = 1 packet of 500 B at 4 Mbit/s. The OUT packet ends the idle time for both
        // averages: the IN packet after 1 s more adds its sample but no decay.
        let ms = Time::from_millis;
        queue.enqueue(ms(1), coloured(Colour::Red), &mut log);
        assert_eq!(averages(queue.policy()), [1.25 * 0.5, 2.125 * 0.25]);
        queue.enqueue(ms(1_001), coloured(Colour::Green), &mut log);
        assert_eq!(averages(queue.policy()), [1.25 * 0.25, 2.125 * 0.125 + 0.5]);
    }

    #[test]
    fn each_kind_is_dropped_as_often_as_its_ramp_says() {
        // The count stays at its start: each packet is the first after a drop. OUT at 20: p_b = 0.2·(20 -
        // 10)/20 = 0.1, spread 0.1/(1 - 0.1). IN at 55: 0.02·(55 - 40)/30 = 0.01, spread 0.01/0.99.
        for (colour, queued, p) in [(Colour::Red, 20, 0.1 / 0.9), (Colour::Green, 55, 0.01 / 0.99)] {
            let mut rio = rio(&RioParams { w_q: Ratio::ONE, wait: false, ..defaults() });
            let mut drop = || {
                rio.q_in = queued;
                rio.spacing_in.dropped();
                rio.spacing_out.dropped();
                admit(&mut rio, colour, queued) == Admission::Drop(DropReason::Early)
            };
            assert!(!drop(), "the first above the minimum");
            let share = (0..20_000).filter(|_| drop()).count() as f64 / 20_000.0;
            let band = 4.0 * (p * (1.0 - p) / 20_000.0_f64).sqrt();
            assert!((share - p).abs() < band, "{colour:?}: {share} against {p} ± {band}");
        }
    }
}
