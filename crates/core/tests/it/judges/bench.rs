//! A discipline under a judge: packets at given times, counts, and the parameters that a table sets.

use apportion_core::packet::CustomerId;
use apportion_core::system::LinkContext;
use apportion_core::system::LinkQueue;
use apportion_core::system::catalog::{Catalog, Selection};
use apportion_core::units::{Rate, Time};
use apportion_core::{DropReason, Ecn, FlowId, FlowSetting, Queue};

use crate::common::{Log, SimplePacket, packet, read, setup};

/// A time in milliseconds.
pub fn ms(ms: f64) -> Time {
    Time::from_nanos((ms * 1e6).round() as u64)
}

/// The kind of a table and its keys: `codel limit=500p`.
fn split(table: &str) -> (&str, Vec<&str>) {
    let mut words = table.split_whitespace();
    (words.next().expect("a kind"), words.collect())
}

/// The key of the parameter for which a table is refused.
pub fn refused(table: &str) -> String {
    let (kind, pairs) = split(table);
    let error = read(kind, &pairs).expect_err(table);
    error.trim_start_matches('`').split(['`', ':', ' ']).next().unwrap_or_default().to_owned()
}

/// A table, and the values that its parameters then have.
pub struct Shown {
    pub table: &'static str,
    pub values: &'static str,
}

impl Shown {
    /// Checks that the table is accepted, and the value of each parameter.
    pub fn check(&self) {
        let (kind, pairs) = split(self.table);
        read(kind, &pairs).unwrap_or_else(|error| panic!("{}: {error}", self.table));
        let of = |pairs: &[&str]| {
            let pair = |key| pairs.iter().find_map(|pair| pair.strip_prefix(key));
            let mut selection = Selection::new(kind, pair("drop="), pair("shaper=")).expect("a kind");
            for pair in pairs.iter().filter(|pair| !pair.starts_with("drop=") && !pair.starts_with("shaper="))
            {
                let (key, value) = pair.split_once('=').expect("a pair");
                match key.strip_prefix("class.").and_then(|rest| rest.split_once('.')) {
                    Some((class, key)) => selection.set_of_class(class, key, value),
                    None => selection.set(key, value),
                }
                .expect("a value");
            }
            selection
        };
        let value = |selection: &Selection, key: &str| match key.split_once('.') {
            Some((class, key)) => {
                let entry = selection.class().expect("classes");
                let mut classes = selection.kind_args().classes(entry);
                classes.find(|found| found.name == class).expect("the class").args.value(key)
            }
            None => {
                let entry = selection.entries().find(|entry| entry.param(key).is_some()).expect(key);
                selection.args.of(entry).value(key)
            }
        };
        let set = of(&pairs);
        for shown in self.values.split_whitespace() {
            let (key, text) = shown.split_once('=').expect("a pair");
            let param = match key.split_once('.') {
                Some((_, key)) => set.class().and_then(|entry| entry.param(key)),
                None => set.entries().find_map(|entry| entry.param(key)),
            };
            let expected = Catalog::parse(param.expect(key), text).expect("a value");
            assert_eq!(value(&set, key), Some(expected), "{}: {key}", self.table);
        }
    }
}

/// A discipline with what it reported.
pub struct Bench {
    pub queue: LinkQueue<SimplePacket>,
    pub log: Log,
    pub sent: Vec<(Time, SimplePacket)>,
    next: u32,
}

impl Bench {
    /// The discipline of a table on a link of 10 Mb/s.
    pub fn new(table: &str) -> Self {
        Self::seeded(table, 1)
    }

    /// Creates one with another stream of random numbers.
    pub fn seeded(table: &str, seed: u64) -> Self {
        Self::on(table, LinkContext { seed, ..setup(&[]) })
    }

    /// Creates one on a link of `link_rate`.
    pub fn at_rate(table: &str, link_rate: Rate) -> Self {
        Self::on(table, LinkContext { link_rate, ..setup(&[]) })
    }

    fn on(table: &str, link: LinkContext<'_>) -> Self {
        let (kind, pairs) = split(table);
        let params = read(kind, &pairs).unwrap_or_else(|error| panic!("{table}: {error}"));
        Self { queue: params.build_simple(&link), log: Log::default(), sent: Vec::new(), next: 0 }
    }

    /// Puts flow i into the i-th class of the table.
    pub fn with_classes(mut self, classes: u32) -> Self {
        for flow in 0..classes {
            assert!(self.queue.set_flow(FlowId(flow), FlowSetting::Customer(CustomerId(flow + 1))));
        }
        self
    }

    /// A packet arrives; they are numbered from 0.
    pub fn arrive(&mut self, now: Time, flow: u32, size: u64, ecn: Ecn) {
        let arriving = SimplePacket { ecn, ..packet(self.next, flow, size) };
        self.next += 1;
        self.queue.enqueue(now, arriving, &mut self.log);
        self.conserve();
    }

    /// `count` packets of flow 0 arrive at once.
    pub fn burst(&mut self, now: Time, count: u32, size: u64, ecn: Ecn) {
        (0..count).for_each(|_| self.arrive(now, 0, size, ecn));
    }

    /// The link asks for a packet. Returns its number.
    pub fn depart(&mut self, now: Time) -> Option<u32> {
        let packet = self.queue.dequeue(now, &mut self.log);
        self.sent.extend(packet.map(|packet| (now, packet)));
        self.conserve();
        packet.map(|packet| packet.id)
    }

    /// Arrivals of 1,000 bytes of flow 0 each `every` ms, and departures each `served` ms, from one such time
    /// on. At the same time arrivals come first.
    pub fn run(&mut self, packets: u32, every: f64, served: f64, ecn: Ecn) {
        self.run_watched(packets, every, served, ecn, |_| {});
    }

    /// The same; `watch` sees the queue after each arrival.
    pub fn run_watched(
        &mut self,
        packets: u32,
        every: f64,
        served: f64,
        ecn: Ecn,
        mut watch: impl FnMut(&Self),
    ) {
        let mut departures = (1..=packets).map(|i| ms(f64::from(i) * served)).peekable();
        for arrival in (1..=packets).map(|i| ms(f64::from(i) * every)) {
            while let Some(now) = departures.next_if(|departure| *departure < arrival) {
                self.depart(now);
            }
            self.arrive(arrival, 0, 1_000, ecn);
            watch(self);
        }
        departures.for_each(|now| {
            self.depart(now);
        });
    }

    /// The link asks from `now` on, and again whenever a packet may leave. Returns the time at which it no
    /// longer asks.
    pub fn empty(&mut self, mut now: Time) -> Time {
        loop {
            if self.depart(now).is_none() {
                let Some(wakeup) = self.queue.next_wakeup() else { return now };
                now = wakeup;
            }
        }
    }

    /// Packets in the queue.
    pub fn held(&self) -> u64 {
        self.queue.backlog().packets.get()
    }

    /// Bytes in the queue.
    pub fn held_bytes(&self) -> u64 {
        self.queue.backlog().bytes.get()
    }

    /// The packets dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> usize {
        self.log.dropped.iter().filter(|drop| drop.2 == reason).count()
    }

    /// The packets dropped for any reason.
    pub fn drops(&self) -> usize {
        self.log.dropped.len()
    }

    /// The packets marked.
    pub fn marks(&self) -> usize {
        self.log.marked.len()
    }

    /// A number that the discipline reports.
    pub fn statistic(&self, name: &str) -> f64 {
        let mut found = None;
        self.queue.statistics(&mut |shown, value| {
            if shown == name {
                found = Some(value);
            }
        });
        found.unwrap_or_else(|| panic!("no `{name}`"))
    }

    /// Each packet that arrived has left, has been dropped or waits.
    fn conserve(&self) {
        let gone = self.sent.len() + self.drops();
        assert_eq!(self.next as usize, gone + self.held() as usize, "packets are lost or counted twice");
    }
}
