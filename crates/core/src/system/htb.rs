//! HTB: classes with an assured rate and a ceiling, which borrow from their parents what siblings leave.
//!
//! Devera, "Hierarchical token bucket theory" (2002) and "HTB Linux queuing discipline manual – user guide"
//! (2002). A class is *green* while it keeps to its rate, *yellow* above it, *red* above its ceiling. A green
//! leaf sends by itself. A yellow one borrows from its parent if that is green, else the parent borrows from
//! its own, up to the root; a red one waits. Capacity is lent on the lowest level first, there to the lowest
//! `prio`, and there classes take turns by deficit round robin. Leaves are on level 0, roots on the top
//! level, inner classes a level below their parents.
//!
//! - Two token buckets for each class: `rate` with `burst` and `ceil` with `cburst`. A packet leaves while
//!   the bucket has no debt, and may bring it into debt, so rates are kept in the long run whatever the
//!   sizes. A packet is charged to the ceilings of its class and of all above, and to the rates from the
//!   lending class up. Rates are kept to 2^-31 ns for each byte.
//! - A turn is worth `quantum`. By default the class with the least rate has 200 bytes and others
//!   proportionally more, so that spare capacity is divided by rates. When a class borrows, each class on the
//!   way down has a deficit of its own: a parent's loan is divided among its children, and an inner class's
//!   part among its own.
//! - The rates of children may add up to more than their parent's, which is then in debt, and to more than
//!   the link: then leaves share it by priority and quantum. They may not exceed the parent's ceiling, which
//!   they would break: a green leaf does not ask its parent (section "Definitions", eq. 1, has no term for
//!   it). Such files are refused.
//!
//! Limit: a leaf of a high priority at its ceiling is red at times. Its parent's capacity then goes to a
//! lower priority, and later it borrows further up, at the cost of its cousins. With one priority, or if no
//! ceiling of a higher priority binds, rates are those of the fluid model.
//!
//! The queue of a leaf is a FIFO, or a discipline of its own.
//!
//! Deviations: deficits on the way down, where the manual has shares of the leaves only; `quantum` follows
//! rates at any scale, where the manual divides by `r2q` and stays within 1 to 60 kB.
//!
//! Cost: O(depth · log classes) per packet: each class on the way changes colour at most twice. A refusal
//! looks ahead to the next time at which a packet can leave, and an earlier arrival at an empty leaf takes it
//! back, O(colours changed · log classes). Memory: 8 bytes per flow, about 350 per leaf, 200 + 60 for each
//! `prio` up to the highest per inner class. Parameters: [`ENTRY`], [`CLASS`].

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::classes::{ClassQueue, Classes, DISCIPLINE, key_of};
use super::classful::ClassScheduler;
use crate::limit::BufferSize;
use crate::list::{Link, Linked, List};
use crate::param::{
    Entry, EntryArgs, GoesBy, Heeds, LIMIT, Param, ParamError, Role, Traits, concat, require, total,
};
use crate::params;
use crate::smallest::Smallest;
use crate::units::{Bytes, Rate, Span, Time};

/// HTB in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "htb",
    role: Role::System,
    summary: "Hierarchical token buckets: classes with assured rates and ceilings borrow what others leave.",
    reference: "Devera 2002",
    cost: "O(depth log classes) per packet, 8 bytes per flow, about 350 per class",
    params: HtbParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Customer, Heeds::Weight],
        goes_by: Some(GoesBy::Classes),
        classes: Some(&CLASS),
        limits: "With several priorities and ceilings that bind, classes get 0.85 to 1.5 times the rate of a \
            fluid model; otherwise they are within 2 %.",
        ..Traits::NONE
    },
};

/// The classes of [`ENTRY`] in the catalogue.
pub const CLASS: Entry = Entry {
    name: "htb",
    role: Role::Class,
    summary: "A class of HTB.",
    reference: "Devera 2002",
    cost: "",
    params: &concat::<{ total(OF_CLASS) }>(OF_CLASS),
    traits: Traits::NONE,
};

const OF_CLASS: &[&[Param]] = &[HtbClass::PARAMS, ClassQueue::PARAMS];

/// The quantum of the class with the least rate, and the minimum for all. Chosen: short turns, so that
/// ceilings and buckets see an even stream; a frame then takes up to eight turns.
const LEAST: Bytes = Bytes::new(200);
/// One Ethernet frame.
const FRAME: Bytes = Bytes::new(1_514);
/// The manual's timer: 100 ticks in a second.
const TICK: Span = Span::from_millis(10);
/// The number of priorities in the manual.
const PRIORITIES: usize = 8;

params! {
    /// A class of HTB.
    pub struct HtbClass {
        /// What it is assured, with its descendants (AR).
        rate: Rate = Param::required() => rate,
        /// The most that it gets (CR).
        ceil: Rate = Param::unset("as `rate`") => ceil,
        /// 0 to 7; of leaves that borrow, lower ones go first.
        prio: usize = Param::of("0", "the manual").symbol("P"),
        /// Bytes in a turn (Q).
        quantum: Option<Bytes> = Param::unset("in proportion to rates, the least 200B"),
        /// What it may send at once (B).
        burst: Bytes = Param::unset("10 ms of `rate` and a frame: the manual's timer") => |args| burst(args, "burst", rate),
        /// What it may send at once above its rate (CB).
        cburst: Bytes = Param::unset("10 ms of `ceil` and a frame") => |args| burst(args, "cburst", ceil),
    }
    check: |params: &Self, _| params.check()
}

fn rate(args: &EntryArgs<'_>) -> Result<Rate, ParamError> {
    args.rate_if_set("rate")
        .filter(|rate| *rate > Rate::ZERO)
        .ok_or_else(|| ParamError::new("rate", "it must be set, above 0; write for example \"10Mbit\""))
}

fn ceil(args: &EntryArgs<'_>) -> Result<Rate, ParamError> {
    args.rate_if_set("ceil").map_or_else(|| rate(args), Ok)
}

fn burst(
    args: &EntryArgs<'_>,
    key: &str,
    of: fn(&EntryArgs<'_>) -> Result<Rate, ParamError>,
) -> Result<Bytes, ParamError> {
    args.bytes_if_set(key).map_or_else(|| Ok(of(args)?.bytes_in(TICK) + FRAME), Ok)
}

impl HtbClass {
    fn check(&self) -> Result<(), ParamError> {
        let message = format!("it is below the rate, {}; write at least as much, or leave it out", self.rate);
        require(self.ceil >= self.rate, "ceil", &message)?;
        require(self.prio < PRIORITIES, "prio", "it must lie between 0 and 7")?;
        let message = "a turn must be worth at least 200B and at most 1GB";
        require(self.quantum.is_none_or(|q| (LEAST..=MOST).contains(&q)), "quantum", message)
    }
}

/// The largest quantum.
const MOST: Bytes = Bytes::new(1_000_000_000);

params! {
    /// Parameters of [`TokenBuckets`].
    pub struct HtbParams {
        limit: Option<BufferSize> = LIMIT,
        discipline: &'static str = DISCIPLINE,
        /// The classes. Without classes, all flows share one without bounds.
        class: Classes<HtbClass> => classes,
    }
}

fn classes(args: &EntryArgs<'_>) -> Result<Classes<HtbClass>, ParamError> {
    let all = Rate::from_bit(u64::MAX);
    let unbounded = HtbClass { rate: all, ceil: all, prio: 0, quantum: None, burst: FRAME, cburst: FRAME };
    let class = Classes::read(args, &CLASS, HtbClass::from_args)?;
    let class = class.unwrap_or_else(|| Classes::single(unbounded));
    let mut below = vec![0u128; class.all().len()];
    for own in class.all() {
        if let Some(parent) = own.parent {
            below[parent] += u128::from(own.params.rate.as_bit());
        }
    }
    for (own, below) in class.all().iter().zip(below) {
        if below > u128::from(own.params.ceil.as_bit()) {
            let message = format!(
                "its children are assured {:.6} Mbit/s together, more than its ceiling; raise `ceil`, or lower theirs",
                below as f64 / 1e6
            );
            return Err(ParamError::new(&key_of(&own.name, "ceil"), message));
        }
    }
    Ok(class)
}

/// Time in units of 2^-31 ns. At the largest rate a byte takes less than one.
type Fine = i128;
const FRACTION: u32 = 31;

const fn fine(now: Time) -> Fine {
    (now.as_nanos() as Fine) << FRACTION
}

/// A token bucket as the time at which it has, or had, no tokens: a charge moves this time forward, and
/// tokens need no update.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    zero: Fine,
    per_byte: Fine,
    depth: Fine,
}

impl Bucket {
    fn full(rate: Rate, burst: Bytes) -> Self {
        let per_byte = ((8_000_000_000u128 << FRACTION) / u128::from(rate.as_bit().max(1))) as Fine;
        Self { zero: Fine::MIN / 2, per_byte, depth: per_byte * Fine::from(burst.get()) }
    }

    fn charge(&mut self, now: Time, size: Bytes) {
        self.zero = self.zero.max(fine(now) - self.depth) + self.per_byte * Fine::from(size.get());
    }

    const fn is_in_debt(&self, now: Time) -> bool {
        self.zero > fine(now)
    }

    /// The first time without debt.
    fn paid(&self) -> u64 {
        u64::try_from((self.zero + (1 << FRACTION) - 1) >> FRACTION).unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Green,
    Yellow,
    Red,
}

/// No class.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    level: u8,
    is_leaf: bool,
    prio: u8,
    colour: Colour,
    /// One bit for each priority at which the class has packets that no class below holds back.
    active: u8,
    /// The first of its places in turns: two for each priority.
    seats: u32,
    /// The first ring of its children, priority 0, if it has any.
    feed: u32,
    rate: Bucket,
    ceil: Bucket,
}

/// A place in turns.
#[derive(Clone, Copy, Debug)]
struct Seat {
    link: Link,
    class: u32,
    quantum: i64,
    deficit: i64,
}

impl Linked for Seat {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The classes that can lend, and those that ask.
#[derive(Clone, Debug)]
pub struct TokenBuckets {
    nodes: Vec<Node>,
    seats: Vec<Seat>,
    /// Rings of green classes by level and priority, then of the children of each inner class by priority:
    /// the manual's self feeds and inner feeds. A class asks its parent unless it is red: green classes are
    /// served before the parent lends.
    rings: Vec<List>,
    /// One bit for each priority with green classes, by level.
    green: [u8; MAX_LEVELS],
    /// The time at which an active class that is not green may change its colour.
    events: Smallest,
    /// Classes whose colours were set for a future time.
    changed: Vec<u32>,
    is_ahead: bool,
}

/// Leaves and eight levels above them.
const MAX_LEVELS: usize = 9;

impl TokenBuckets {
    /// Classes with full buckets.
    #[must_use]
    pub fn new(classes: &Classes<HtbClass>) -> Self {
        let classes = classes.all();
        let mut depths = vec![0usize; classes.len()];
        for (at, class) in classes.iter().enumerate() {
            depths[at] = class.parent.map_or(0, |parent| depths[parent] + 1);
        }
        let top = depths.iter().copied().max().unwrap_or(0);
        let least = classes.iter().map(|class| class.params.rate.as_bit()).min().unwrap_or(1);
        let (mut seats, mut feeds) = (Vec::new(), MAX_LEVELS * PRIORITIES);
        let mut nodes = Vec::with_capacity(classes.len());
        for (at, class) in (0..).zip(classes) {
            let HtbClass { rate, ceil, prio, quantum, burst, cburst } = &class.params;
            let share = u128::from(LEAST.get()) * u128::from(rate.as_bit()) / u128::from(least.max(1));
            let quantum = quantum.map_or(share, |quantum| u128::from(quantum.get()));
            let quantum = quantum.min(u128::from(MOST.get())) as i64;
            nodes.push(Node {
                parent: class.parent.map_or(NONE, |parent| parent as u32),
                level: if class.is_leaf { 0 } else { (top - depths[at as usize]) as u8 },
                is_leaf: class.is_leaf,
                prio: *prio as u8,
                colour: Colour::Green,
                active: 0,
                seats: seats.len() as u32,
                feed: feeds as u32,
                rate: Bucket::full(*rate, *burst),
                ceil: Bucket::full(*ceil, *cburst),
            });
            let places = if class.is_leaf { 2 } else { 2 * PRIORITIES };
            let seat = Seat { link: Link::NONE, class: at, quantum, deficit: 0 };
            seats.extend((0..places).map(|_| seat));
            feeds += if class.is_leaf { 0 } else { PRIORITIES };
        }
        Self {
            nodes,
            seats,
            rings: vec![List::EMPTY; feeds],
            green: [0; MAX_LEVELS],
            events: Smallest::new(),
            changed: Vec::new(),
            is_ahead: false,
        }
    }

    /// The place of a class among green ones; the next place is among its siblings.
    fn seat(&self, class: usize, prio: usize) -> usize {
        let node = &self.nodes[class];
        node.seats as usize + if node.is_leaf { 0 } else { 2 * prio }
    }

    /// Adds the seat to the ring, behind the others. Returns whether it is the only one.
    fn join(&mut self, ring: usize, seat: usize) -> bool {
        let was_empty = self.rings[ring].is_empty();
        self.rings[ring].push_back(&mut self.seats, seat);
        was_empty
    }

    /// Removes the seat from the ring; it keeps the rest of its turn. Returns whether the ring is empty.
    fn leave(&mut self, ring: usize, seat: usize) -> bool {
        self.rings[ring].remove(&mut self.seats, seat);
        self.rings[ring].is_empty()
    }

    /// The ring and the seat of a class among green ones.
    fn among_green(&self, class: usize, prio: usize) -> (usize, usize) {
        (usize::from(self.nodes[class].level) * PRIORITIES + prio, self.seat(class, prio))
    }

    /// The ring and the seat of a class among its siblings, and its parent; none for a root.
    fn among_siblings(&self, class: usize, prio: usize) -> Option<(usize, usize, usize)> {
        let parent = self.nodes[class].parent;
        let parent = (parent != NONE).then_some(parent as usize)?;
        Some((self.nodes[parent].feed as usize + prio, self.seat(class, prio) + 1, parent))
    }

    fn join_green(&mut self, class: usize, prio: usize) {
        let (ring, seat) = self.among_green(class, prio);
        self.join(ring, seat);
        self.green[usize::from(self.nodes[class].level)] |= 1 << prio;
    }

    fn leave_green(&mut self, class: usize, prio: usize) {
        let (ring, seat) = self.among_green(class, prio);
        if self.leave(ring, seat) {
            self.green[usize::from(self.nodes[class].level)] &= !(1 << prio);
        }
    }

    /// Lets the class ask its parent, which may become active.
    fn ask(&mut self, now: Time, class: usize, prio: usize) {
        if let Some((ring, seat, parent)) = self.among_siblings(class, prio)
            && self.join(ring, seat)
        {
            self.activate_at(now, parent, prio);
        }
    }

    fn ask_no_more(&mut self, class: usize, prio: usize) {
        if let Some((ring, seat, parent)) = self.among_siblings(class, prio)
            && self.leave(ring, seat)
        {
            self.deactivate(parent, prio);
        }
    }

    fn activate_at(&mut self, now: Time, class: usize, prio: usize) {
        if self.nodes[class].active == 0 {
            self.nodes[class].active = 1 << prio;
            self.nodes[class].colour = self.colour(class, now);
            self.schedule(class);
        }
        self.nodes[class].active |= 1 << prio;
        if self.nodes[class].colour != Colour::Red {
            self.ask(now, class, prio);
        }
        if self.nodes[class].colour == Colour::Green {
            self.join_green(class, prio);
        }
    }

    fn deactivate(&mut self, class: usize, prio: usize) {
        if self.nodes[class].colour == Colour::Green {
            self.leave_green(class, prio);
        }
        if self.nodes[class].colour != Colour::Red {
            self.ask_no_more(class, prio);
        }
        self.nodes[class].active &= !(1 << prio);
        if self.nodes[class].active == 0 {
            self.events.remove(class);
        }
    }

    fn colour(&self, class: usize, now: Time) -> Colour {
        let Node { rate, ceil, .. } = &self.nodes[class];
        match (ceil.is_in_debt(now), rate.is_in_debt(now)) {
            (true, _) => Colour::Red,
            (false, true) => Colour::Yellow,
            (false, false) => Colour::Green,
        }
    }

    fn schedule(&mut self, class: usize) {
        let Node { rate, ceil, .. } = &self.nodes[class];
        match self.nodes[class].colour {
            Colour::Green => self.events.remove(class),
            Colour::Yellow => self.events.set(class, rate.paid()),
            Colour::Red => self.events.set(class, ceil.paid()),
        }
        if self.is_ahead {
            self.changed.push(class as u32);
        }
    }

    /// Sets the colour that an active class has at `now`.
    fn update(&mut self, now: Time, class: usize) {
        let (old, new) = (self.nodes[class].colour, self.colour(class, now));
        self.nodes[class].colour = new;
        self.schedule(class);
        if old == new {
            return;
        }
        let mut left = self.nodes[class].active;
        while left != 0 {
            let prio = left.trailing_zeros() as usize;
            left &= left - 1;
            if old == Colour::Green {
                self.leave_green(class, prio);
            }
            match (old, new) {
                (_, Colour::Red) => self.ask_no_more(class, prio),
                (Colour::Red, _) => self.ask(now, class, prio),
                _ => {}
            }
            if new == Colour::Green {
                self.join_green(class, prio);
            }
        }
    }

    /// Applies the changes of colour until `now`.
    fn advance(&mut self, now: Time) {
        while let Some((_, class)) = self.events.first().filter(|(at, _)| *at <= now.as_nanos()) {
            self.update(now, class);
        }
    }

    fn can_send(&self) -> bool {
        self.green.iter().any(|prios| *prios != 0)
    }

    /// The seat in turn.
    fn turn(&mut self, ring: usize) -> Option<usize> {
        loop {
            let front = self.rings[ring].front()?;
            let Seat { quantum, deficit, .. } = &mut self.seats[front];
            if *deficit <= 0 {
                *deficit += *quantum;
            }
            if *deficit > 0 {
                return Some(front);
            }
            self.rings[ring].rotate(&mut self.seats);
        }
    }

    /// The leaf that sends, and the class that lends to it.
    fn next_turn(&mut self) -> Option<(usize, Turn)> {
        let level = self.green.iter().position(|prios| *prios != 0)?;
        let prio = self.green[level].trailing_zeros() as usize;
        let mut ring = level * PRIORITIES + prio;
        let mut turn = Turn { level, path: [(0, 0); MAX_LEVELS + 1], steps: 0 };
        loop {
            let seat = self.turn(ring)?;
            turn.path[turn.steps] = (ring as u32, seat as u32);
            turn.steps += 1;
            let class = self.seats[seat].class as usize;
            let node = &self.nodes[class];
            if node.is_leaf {
                return Some((class, turn));
            }
            ring = node.feed as usize + prio;
        }
    }

    /// Drops the rest of the turn of a leaf whose queue is empty.
    fn idle(&mut self, leaf: usize) {
        let prio = self.nodes[leaf].prio.into();
        self.deactivate(leaf, prio);
        let first = self.seat(leaf, prio);
        self.seats[first..first + 2].iter_mut().for_each(|seat| seat.deficit = seat.deficit.min(0));
    }

    /// Charges a packet that has left.
    fn charge(&mut self, now: Time, leaf: usize, turn: &Turn, size: Bytes, is_empty: bool) {
        for &(ring, seat) in &turn.path[..turn.steps] {
            let deficit = &mut self.seats[seat as usize].deficit;
            *deficit -= size.get() as i64;
            if *deficit <= 0 {
                self.rings[ring as usize].rotate(&mut self.seats);
            }
        }
        if is_empty {
            self.idle(leaf);
        }
        let mut class = leaf as u32;
        while class != NONE {
            let node = &mut self.nodes[class as usize];
            node.ceil.charge(now, size);
            if usize::from(node.level) >= turn.level {
                node.rate.charge(now, size);
            }
            let parent = node.parent;
            if node.active != 0 {
                self.update(now, class as usize);
            }
            class = parent;
        }
    }
}

/// The way in which a leaf is chosen.
#[derive(Debug)]
pub struct Turn {
    /// The level of the class that lends.
    level: usize,
    /// Rings and the seats in turn, from that class down.
    path: [(u32, u32); MAX_LEVELS + 1],
    steps: usize,
}

impl ClassScheduler for TokenBuckets {
    const HOLDS_BACK: bool = true;
    type Turn = Turn;

    fn activate(&mut self, now: Time, class: usize, _size: Bytes) {
        self.activate_at(now, class, self.nodes[class].prio.into());
    }

    fn choose(&mut self, now: Time) -> Option<(usize, Turn)> {
        self.changed.clear();
        self.advance(now);
        self.next_turn()
    }

    fn served(&mut self, now: Time, class: usize, turn: &Turn, size: Bytes, next: Option<Bytes>) {
        self.charge(now, class, turn, size, next.is_none());
    }

    fn taken(&mut self, _now: Time, class: usize, next: Option<Bytes>) {
        if next.is_none() {
            self.idle(class);
        }
    }

    fn advance_to_eligible(&mut self) -> Option<Time> {
        self.is_ahead = true;
        let mut time = None;
        while !self.can_send() {
            let Some((at, class)) = self.events.first() else { break };
            time = Some(Time::from_nanos(at));
            self.update(Time::from_nanos(at), class);
        }
        self.is_ahead = false;
        time
    }

    fn rewind(&mut self, now: Time) {
        while let Some(class) = self.changed.pop() {
            if self.nodes[class as usize].active != 0 {
                self.update(now, class as usize);
            }
        }
    }
}
