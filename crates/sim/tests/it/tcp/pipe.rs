//! One sender and one receiver over a link of fixed rate and delay with losses that the test chooses.
//!
//! As in ns-2's link, a lost packet never enters the queue, the queue is unlimited, and propagation follows
//! serialization, in both directions.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::tcp::TcpParams;
use apportion_sim::tcp::{Receiver, Segment, SegmentSink, Sender};

/// The fate of a packet that the sender offers to the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Pass,
    Lose,
    Mark,
    /// Arrives this much later than otherwise.
    Late(Span),
    Twice,
}

/// A function that decides the fate of the packet with this ordinal.
pub type Judge = Box<dyn FnMut(usize, &Segment) -> Fate>;

/// The state of a sender after an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    pub at: Time,
    pub cwnd: f64,
    pub ssthresh: f64,
    pub timeouts: u64,
    pub fast_retransmits: u64,
}

pub struct Pipe {
    pub params: Arc<TcpParams>,
    pub sender: Sender,
    pub receiver: Receiver,
    pub now: Time,
    /// Every packet that the sender offered: time and header, in order.
    pub sent: Vec<(Time, Segment)>,
    /// Every ACK that the receiver sent.
    pub acks: Vec<(Time, Segment)>,
    pub trace: Vec<Snapshot>,
    pub fate: Judge,
    pub ack_fate: Judge,
    /// Whether a packet of the size of an ACK precedes the first data, as at the end of the handshake of a
    /// two-way TCP; it is not in `sent`.
    pub handshake_ack: bool,
    rate: Rate,
    delay: Span,
    free: [Time; 2],
    arrivals: BinaryHeap<Reverse<(Time, usize)>>,
    packets: Vec<(bool, Segment, Ecn)>,
}

/// The segments that an endpoint sends during one call.
#[derive(Default)]
pub struct Outbox(Vec<(Segment, Bytes, Ecn)>);

impl Outbox {
    /// Returns the segments, with their sizes and ECN fields.
    pub fn take(self) -> Vec<(Segment, Bytes, Ecn)> {
        self.0
    }
}

impl SegmentSink for Outbox {
    fn send(&mut self, segment: Segment, size: Bytes, ecn: Ecn) {
        self.0.push((segment, size, ecn));
    }
}

impl Pipe {
    pub fn new(params: TcpParams, isn: u32, rate: Rate, delay: Span) -> Self {
        let params = Arc::new(params);
        Self {
            sender: Sender::new(Arc::clone(&params), isn),
            receiver: Receiver::new(Arc::clone(&params), isn),
            params,
            now: Time::ZERO,
            sent: Vec::new(),
            acks: Vec::new(),
            trace: Vec::new(),
            fate: Box::new(|_, _| Fate::Pass),
            ack_fate: Box::new(|_, _| Fate::Pass),
            handshake_ack: false,
            rate,
            delay,
            free: [Time::ZERO; 2],
            arrivals: BinaryHeap::new(),
            packets: Vec::new(),
        }
    }

    /// Loses the packets with these ordinals; the first packet offered is number 0.
    pub fn losing(mut self, ordinals: &[usize]) -> Self {
        let ordinals = ordinals.to_vec();
        self.fate = Box::new(move |n, _| if ordinals.contains(&n) { Fate::Lose } else { Fate::Pass });
        self
    }

    /// Starts the connection and writes `bytes`.
    pub fn start(&mut self, bytes: u64) {
        self.with_sender(|sender, now, out| {
            sender.supply(now, bytes, out);
            sender.start(now, out);
        });
    }

    /// Returns every segment that entered the link at the sender, with the ECN field with which it arrives.
    pub fn carried(&self) -> impl Iterator<Item = (Segment, Ecn)> {
        self.packets.iter().filter(|(to_receiver, ..)| *to_receiver).map(|&(_, segment, ecn)| (segment, ecn))
    }

    /// Returns the segments that the receiver sent.
    pub fn answered(&self) -> impl Iterator<Item = (Segment, Ecn)> {
        self.packets.iter().filter(|(to_receiver, ..)| !*to_receiver).map(|&(_, segment, ecn)| (segment, ecn))
    }

    /// Lets the application act on the sender.
    pub fn with_sender(&mut self, act: impl FnOnce(&mut Sender, Time, &mut Outbox)) {
        let mut outbox = Outbox::default();
        act(&mut self.sender, self.now, &mut outbox);
        self.offer_data(outbox);
    }

    /// Runs until `stop`, or until no event is left.
    pub fn run(&mut self, stop: Time) {
        while let Some(at) = self.next_event().filter(|&at| at <= stop) {
            self.now = at;
            self.step();
        }
        self.now = stop;
    }

    fn next_event(&self) -> Option<Time> {
        let arrival = self.arrivals.peek().map(|Reverse((at, _))| *at);
        [arrival, self.sender.next_timer(), self.receiver.next_timer()].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        let mut outbox = Outbox::default();
        if let Some(&Reverse((at, id))) = self.arrivals.peek()
            && at <= now
        {
            self.arrivals.pop();
            let (to_receiver, segment, ecn) = self.packets[id];
            if to_receiver {
                self.receiver.on_segment(now, &segment, ecn, &mut outbox);
                self.offer_acks(outbox);
            } else {
                self.sender.on_segment(now, &segment, &mut outbox);
                self.offer_data(outbox);
            }
        } else if self.sender.next_timer().is_some_and(|at| at <= now) {
            self.sender.on_timer(now, &mut outbox);
            self.offer_data(outbox);
        } else {
            self.receiver.on_timer(now, &mut outbox);
            self.offer_acks(outbox);
        }
    }

    fn offer_data(&mut self, outbox: Outbox) {
        for (segment, size, ecn) in outbox.0 {
            if self.handshake_ack && segment.payload > 0 {
                self.handshake_ack = false;
                self.free[1] = self.free[1].max(self.now) + self.rate.time_for(self.params.ack);
            }
            let fate = (self.fate)(self.sent.len(), &segment);
            self.sent.push((self.now, segment));
            self.carry(true, segment, size, ecn, fate);
        }
        let stats = self.sender.stats();
        self.trace.push(Snapshot {
            at: self.now,
            cwnd: self.sender.cwnd(),
            ssthresh: self.sender.ssthresh(),
            timeouts: stats.timeouts,
            fast_retransmits: stats.fast_retransmits,
        });
    }

    fn offer_acks(&mut self, outbox: Outbox) {
        for (segment, size, ecn) in outbox.0 {
            let fate = (self.ack_fate)(self.acks.len(), &segment);
            self.acks.push((self.now, segment));
            self.carry(false, segment, size, ecn, fate);
        }
    }

    fn carry(&mut self, to_receiver: bool, segment: Segment, size: Bytes, ecn: Ecn, fate: Fate) {
        let (copies, late) = match fate {
            Fate::Lose => return,
            Fate::Late(late) => (1, late),
            Fate::Twice => (2, Span::ZERO),
            Fate::Pass | Fate::Mark => (1, Span::ZERO),
        };
        let ecn = if fate == Fate::Mark && ecn.is_capable() { Ecn::Ce } else { ecn };
        for _ in 0..copies {
            let free = &mut self.free[usize::from(to_receiver)];
            *free = (*free).max(self.now) + self.rate.time_for(size);
            let at = *free + self.delay + late;
            self.arrivals.push(Reverse((at, self.packets.len())));
            self.packets.push((to_receiver, segment, ecn));
        }
    }
}
