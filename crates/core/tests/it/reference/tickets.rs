//! Tickets at the ends of flows and on links: Zhang et al. 2002, sections II-B, II-D, II-F.1 and II-G.

/// A time sliding window: Clark, Fang 1998, figure 2.
#[derive(Clone, Copy, Debug)]
pub struct Tsw {
    win_length: f64,
    /// The rate as of the last arrival.
    pub avg_rate: f64,
    t_front: u64,
}

impl Tsw {
    /// A window of `win_length` seconds, with this rate at `now`, in nanoseconds.
    #[must_use]
    pub const fn new(win_length: f64, avg_rate: f64, now: u64) -> Self {
        Self { win_length, avg_rate, t_front: now }
    }

    /// An amount arrives.
    pub fn arrive(&mut self, now: u64, amount: f64) {
        let in_tsw = self.avg_rate * self.win_length;
        let new = in_tsw + amount;
        self.avg_rate = new / ((now - self.t_front) as f64 / 1e9 + self.win_length);
        self.t_front = now;
    }

    /// The rate that an arrival of zero would leave.
    #[must_use]
    pub fn at(mut self, now: u64) -> f64 {
        self.arrive(now, 0.0);
        self.avg_rate
    }
}

/// Section II-G, with tags of 8 bits.
#[derive(Clone, Debug)]
pub struct Policing {
    window: f64,
    bound: f64,
    /// None while unknown.
    pub out_tkt_rate: Option<f64>,
    actual_tkt_rate: Option<Tsw>,
}

impl Policing {
    /// An issue of `out_tkt_rate` at `now`, in nanoseconds; the factor is between 1 / `bound` and `bound`.
    #[must_use]
    pub fn new(window: f64, bound: f64, out_tkt_rate: Option<f64>, now: u64) -> Self {
        let mut this = Self { window, bound, out_tkt_rate: None, actual_tkt_rate: None };
        if let Some(rate) = out_tkt_rate {
            this.issue(now, rate);
        }
        this
    }

    /// Sets the issue to `rate`. ActualTktRate starts at the first such rate.
    pub fn issue(&mut self, now: u64, rate: f64) {
        self.out_tkt_rate = Some(rate);
        if self.actual_tkt_rate.is_none() {
            self.actual_tkt_rate = Some(Tsw::new(self.window, rate, now));
        }
    }

    /// The tag for `tickets` at OutTktRate = 1.
    fn tag(&mut self, now: u64, tickets: f64) -> u32 {
        let (Some(out_tkt_rate), Some(actual)) = (self.out_tkt_rate, &mut self.actual_tkt_rate) else {
            return 255;
        };
        let mut out_tkt = 0.0;
        if out_tkt_rate > 0.0 {
            let mut policing = out_tkt_rate / actual.at(now);
            if policing > self.bound {
                policing = self.bound;
            }
            if policing < 1.0 / self.bound {
                policing = 1.0 / self.bound;
            }
            out_tkt = out_tkt_rate * tickets * policing;
        }
        let tag = if out_tkt >= 254.5 {
            255
        } else if out_tkt < 1.5 {
            1
        } else {
            (out_tkt + 0.5) as u32
        };
        actual.arrive(now, f64::from(tag));
        tag
    }
}

/// A TCP source (section II-B), or with `counts_sent` a sink (II-F.1) or a source without acknowledgements.
#[derive(Clone, Debug)]
pub struct Source {
    win_length: f64,
    counts_sent: bool,
    decay: bool,
    avg_rate: Tsw,
    ack_in_tkt_rate: Tsw,
    receiver_based: bool,
    policing: Policing,
}

impl Source {
    /// A source that starts at `now`, in nanoseconds; `policing` has no rate if acknowledgements bring it.
    /// `decay`: AvgRate is read when a packet is sent, not when an acknowledgement arrives.
    #[must_use]
    pub const fn new(win_length: f64, counts_sent: bool, decay: bool, policing: Policing, now: u64) -> Self {
        Self {
            win_length,
            counts_sent,
            decay,
            avg_rate: Tsw::new(win_length, 1.0, now),
            ack_in_tkt_rate: Tsw::new(win_length, 0.0, now),
            receiver_based: policing.out_tkt_rate.is_none(),
            policing,
        }
    }

    /// An acknowledgement of `packets` packets arrives, with a tag if the receiver decides.
    pub fn ack(&mut self, now: u64, packets: f64, tag: Option<u32>) {
        if !self.counts_sent {
            self.avg_rate.arrive(now, packets);
        }
        if let (true, Some(tag)) = (self.receiver_based, tag) {
            self.ack_in_tkt_rate.arrive(now, f64::from(tag.max(1)));
            self.policing.issue(now, self.ack_in_tkt_rate.avg_rate);
        }
    }

    /// Sets the issue to `rate`.
    pub fn issue(&mut self, now: u64, rate: f64) {
        self.policing.issue(now, rate);
    }

    /// The tag of a packet that is sent.
    pub fn send(&mut self, now: u64) -> u32 {
        if self.counts_sent {
            self.avg_rate.arrive(now, 1.0);
        }
        let avg_rate = if self.decay { self.avg_rate.at(now) } else { self.avg_rate.avg_rate };
        self.policing.tag(now, 1.0 / avg_rate.max(1.0 / self.win_length))
    }
}

/// A link, for tags on data (section II-D) or on acknowledgements (II-F.1).
#[derive(Clone, Debug)]
pub struct Link {
    in_tkt_rate: Tsw,
    /// The issue of the link.
    pub policing: Policing,
}

impl Link {
    /// A link without arrivals at time 0.
    #[must_use]
    pub const fn new(win_length: f64, policing: Policing) -> Self {
        Self { in_tkt_rate: Tsw::new(win_length, 0.0, 0), policing }
    }

    /// A packet arrives; it counts even if it is dropped later. Returns the rate at which tickets arrive.
    pub fn arrive(&mut self, now: u64, in_tkt: u32) -> f64 {
        self.in_tkt_rate.arrive(now, f64::from(in_tkt.max(1)));
        self.in_tkt_rate.avg_rate
    }

    /// The new tag of a packet that leaves.
    pub fn relabel(&mut self, now: u64, in_tkt: u32) -> u32 {
        // A packet is worth at most the tickets issued in one window.
        let worth = f64::from(in_tkt.max(1)) / self.in_tkt_rate.at(now);
        self.policing.tag(now, worth.min(self.in_tkt_rate.win_length))
    }
}
