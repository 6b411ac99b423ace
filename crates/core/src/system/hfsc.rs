//! H-FSC: a hierarchy of service curves. Deadlines guarantee delays of leaves; virtual times divide the rest.
//!
//! Stoica, Zhang, Ng, "A hierarchical fair service curve algorithm for link-sharing, real-time and priority
//! services", SIGCOMM 1997. A service curve gives the bytes due to a class t after it became active: here
//! `m1` for the first `d`, then `m2`. With m1 above m2 a class has a shorter delay than its rate implies, at
//! the expense of classes with m1 below m2.
//!
//! - The *real-time* criterion: a leaf with a curve `rt` has a deadline for its first packet, where its curve
//!   D reaches the service that it got by this criterion plus the packet, and a time E at which it must be
//!   served to meet future deadlines. Of leaves whose time E has come, the earliest deadline is served. If
//!   the curves together stay below the link, each deadline is met within the time of one largest packet.
//! - The *link-sharing* criterion applies when there is none: from the root down, the child with the smallest
//!   virtual time, at which the curve `ls` of a class reaches its total service. A class that becomes active
//!   starts at the mean of the smallest and the largest virtual time of its siblings.
//! - When a class becomes active, a curve becomes the minimum of itself and a copy that starts now. For a
//!   concave curve (m1 above m2) this is exact: both have the same slopes. A convex one keeps the lower value
//!   at that time; the minimum could have more pieces.
//! - Upper limit, not in the paper: by link-sharing a class gets no more than its curve `ul`, which starts
//!   when it first becomes active and after each idle time. The real-time criterion may exceed it.
//! - Times are whole nanoseconds, rounded up; bytes are exact, so no error accumulates.
//!
//! Limit: if the curves `rt` exceed the link, which is not tested, deadlines are missed, in their order.
//!
//! Queues are FIFOs: a deadline needs the size of the next packet, which other disciplines choose later.
//!
//! Cost: O(depth · log siblings + log leaves) per packet. A refusal looks ahead, and an earlier arrival takes
//! it back, as in HTB. Memory: 8 bytes per flow, about 700 per class. Parameters: [`ENTRY`], [`CLASS`].

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::classes::{ClassQueue, Classes, key_of};
use super::classful::ClassScheduler;
use crate::limit::BufferSize;
use crate::param::{
    Entry, EntryArgs, GoesBy, Heeds, LIMIT, Param, ParamError, Role, Traits, concat, require, total,
};
use crate::params;
use crate::smallest::Smallest;
use crate::units::{Bytes, Rate, Span, Time};

/// H-FSC in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "hfsc",
    role: Role::System,
    summary: "Hierarchical fair service curve: real-time leaves by deadlines, link sharing by virtual times.",
    reference: "Stoica, Zhang, Ng 1997",
    cost: "O(depth log siblings + log leaves) per packet, 8 bytes per flow, about 700 per class",
    params: HfscParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Customer],
        goes_by: Some(GoesBy::Classes),
        classes: Some(&CLASS),
        limits: "Leaves are FIFO queues. If the real-time curves exceed the link, deadlines are missed. Give each \
            class a link-sharing curve at least as steep as its real-time curve: otherwise it runs ahead and \
            then waits.",
        ..Traits::NONE
    },
};

/// The classes of [`ENTRY`] in the catalogue.
pub const CLASS: Entry = Entry {
    name: "hfsc",
    role: Role::Class,
    summary: "A class of H-FSC.",
    reference: "Stoica, Zhang, Ng 1997",
    cost: "",
    params: &concat::<{ total(OF_CLASS) }>(OF_CLASS),
    traits: Traits::NONE,
};

const OF_CLASS: &[&[Param]] = &[HfscClass::PARAMS, ClassQueue::PARAMS];

/// A service curve of two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Curve {
    /// The initial slope.
    pub m1: Rate,
    /// The duration of the initial slope.
    pub d: Span,
    /// The slope after that.
    pub m2: Rate,
}

impl Curve {
    /// A curve with the slope `m2` from the start.
    #[must_use]
    pub const fn straight(m2: Rate) -> Self {
        Self { m1: m2, d: Span::ZERO, m2 }
    }

    /// The curve of three values, if they form one.
    fn of(m1: Option<Rate>, d: Option<Span>, m2: Option<Rate>) -> Option<Self> {
        let straight = Self::straight(m2?);
        Some(m1.zip(d).map_or(straight, |(m1, d)| Self { m1, d, ..straight }))
    }

    fn is_concave(&self) -> bool {
        self.m1 > self.m2
    }
}

const M1: Param = Param::unset("off unless set; section V").symbol("m1");
const D: Param = M1.symbol("d");
const M2: Param = M1.symbol("m2");

params! {
    /// A class of H-FSC.
    #[derive(Default)]
    pub struct HfscClass {
        /// Real-time curve of a leaf: its slope at first.
        rt_m1: Option<Rate> = M1,
        /// Real-time curve: how long that is.
        rt_d: Option<Span> = D,
        /// Real-time curve: its slope then; alone, a straight line.
        rt_m2: Option<Rate> = M2,
        /// Link-sharing curve: its slope at first.
        ls_m1: Option<Rate> = M1,
        /// Link-sharing curve: how long that is.
        ls_d: Option<Span> = D,
        /// Link-sharing curve: its slope then; of a leaf, if not set, as the real-time curve.
        ls_m2: Option<Rate> = M2,
        /// Upper limit: its slope at first.
        ul_m1: Option<Rate> = M1,
        /// Upper limit: how long that is.
        ul_d: Option<Span> = D,
        /// Upper limit of link-sharing, which the paper does not have: its slope then.
        ul_m2: Option<Rate> = M2,
    }
    check: |params: &Self, _| params.check()
}

impl HfscClass {
    /// The real-time curve of a leaf.
    fn rt(&self) -> Option<Curve> {
        Curve::of(self.rt_m1, self.rt_d, self.rt_m2)
    }

    /// The link-sharing curve.
    fn ls(&self) -> Option<Curve> {
        Curve::of(self.ls_m1, self.ls_d, self.ls_m2).or_else(|| self.rt())
    }

    /// The upper limit.
    fn ul(&self) -> Option<Curve> {
        Curve::of(self.ul_m1, self.ul_d, self.ul_m2)
    }

    fn check(&self) -> Result<(), ParamError> {
        for (curve, m1, d, m2) in [
            ("rt", self.rt_m1, self.rt_d, self.rt_m2),
            ("ls", self.ls_m1, self.ls_d, self.ls_m2),
            ("ul", self.ul_m1, self.ul_d, self.ul_m2),
        ] {
            let in_the_long_run = "a curve needs its slope in the long run; write for example \"1Mbit\"";
            let (key, why) = match (m1, d, m2) {
                (None, None, _) | (Some(_), Some(_), Some(_)) => continue,
                (_, _, None) => ("m2", in_the_long_run.to_owned()),
                (None, ..) => ("m1", format!("`{curve}_d` says how long it lasts")),
                (_, None, _) => ("d", format!("it says how long `{curve}_m1` lasts")),
            };
            return Err(ParamError::new(&format!("{curve}_{key}"), format!("missing: {why}")));
        }
        let message =
            "a class needs a curve; write for example ls_m2 = \"1Mbit\", which gives it a share, or rt_m2";
        require(self.ls().is_some(), "ls_m2", message)?;
        for (key, curve) in [("ls_m2", self.ls()), ("ul_m2", self.ul())] {
            let rises = curve.is_none_or(|curve| curve.m2 > Rate::ZERO);
            require(rises, key, "it must be above 0, or the class would wait without end")?;
        }
        Ok(())
    }
}

params! {
    /// Parameters of [`ServiceCurves`].
    pub struct HfscParams {
        limit: Option<BufferSize> = LIMIT,
        /// The classes. Without classes, all flows share one.
        class: Classes<HfscClass> => classes,
    }
}

fn classes(args: &EntryArgs<'_>) -> Result<Classes<HfscClass>, ParamError> {
    let all = HfscClass { ls_m2: Some(Rate::from_mbit(1_000)), ..HfscClass::default() };
    let class = Classes::read(args, &CLASS, HfscClass::from_args)?.unwrap_or_else(|| Classes::single(all));
    if let Some(inner) = class.all().iter().find(|class| !class.is_leaf && class.params.rt().is_some()) {
        let message = "only classes without children have packets, and so a real-time curve; write ls_m2";
        return Err(ParamError::new(&key_of(&inner.name, "rt_m2"), message));
    }
    Ok(class)
}

/// A curve that has started: through (x, y), m1 for `dx` and `dy`, then m2.
#[derive(Clone, Copy, Debug)]
struct Running {
    of: Curve,
    x: Time,
    y: Bytes,
    dx: Span,
    dy: Bytes,
}

/// The sum, or the largest number if it overflows.
fn sum<const N: usize>(all: [Bytes; N]) -> Bytes {
    Bytes::new(all.iter().fold(0, |sum: u64, bytes| sum.saturating_add(bytes.get())))
}

impl Running {
    fn start(of: Curve, x: Time, y: Bytes) -> Self {
        Self { of, x, y, dx: of.d, dy: of.m1.bytes_in(of.d) }
    }

    /// Bytes due at `t`.
    fn at(&self, t: Time) -> Bytes {
        let since = t.since(self.x);
        match since <= self.dx {
            true => sum([self.y, self.of.m1.bytes_in(since)]),
            false => sum([self.y, self.dy, self.of.m2.bytes_in(since.saturating_sub(self.dx))]),
        }
    }

    /// The time at which `bytes` are due.
    fn reaches(&self, bytes: Bytes) -> Time {
        let more = bytes.saturating_sub(self.y);
        if more == Bytes::ZERO {
            self.x
        } else if more <= self.dy {
            self.x + self.of.m1.time_for(more)
        } else {
            self.x + self.dx + self.of.m2.time_for(more - self.dy)
        }
    }

    /// Becomes the minimum of itself and a copy that starts at (x, y) (section V, figure 8).
    fn lower(&mut self, x: Time, y: Bytes) {
        let here = self.at(x);
        // Slopes are the same, and the older curve is in the later piece: below a concave copy it stays below.
        if here <= y {
            return;
        }
        let new = Self::start(self.of, x, y);
        if !self.of.is_concave() {
            *self = new;
            return;
        }
        // The copy rises by m1 until it meets the second piece of the old curve, or reaches its own.
        let (knee, knee_y) = (self.x + self.dx, sum([self.y, self.dy]));
        let line = match x >= knee {
            true => sum([knee_y, self.of.m2.bytes_in(x.since(knee))]),
            false => knee_y.saturating_sub(self.of.m2.bytes_in(knee.since(x))),
        };
        let apart = Rate::from_bit(self.of.m1.as_bit() - self.of.m2.as_bit());
        let meet = apart.time_for(line.saturating_sub(y));
        *self = new;
        if meet < self.dx {
            (self.dx, self.dy) = (meet, self.of.m1.bytes_in(meet));
        }
    }
}

/// Starts the curve, or lowers it.
fn lower(running: &mut Option<Running>, of: Curve, x: Time, y: Bytes) -> &Running {
    if let Some(running) = running.as_mut() {
        running.lower(x, y);
    }
    running.get_or_insert_with(|| Running::start(of, x, y))
}

/// No class: the root, which is the link.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node {
    rt: Option<Curve>,
    ls: Option<Curve>,
    ul: Option<Curve>,
    parent: u32,
    /// The index among its siblings.
    place: u32,
    /// The family of its children, if it has any.
    family: u32,
    /// The number of its children with packets; for a leaf with packets, 1.
    active: u32,
    /// The paper's D, c (the service by the real-time criterion), and d.
    deadline: Option<Running>,
    by_deadline: Bytes,
    due: Time,
    /// The paper's V (by virtual time), w (the total service), and v.
    fair: Option<Running>,
    all: Bytes,
    virtual_time: Time,
    /// The upper limit, and whether it permits more service.
    limit: Option<Running>,
    fits: bool,
    /// Whether its parent may choose it.
    is_offered: bool,
}

/// The children of a class by virtual time.
#[derive(Clone, Debug)]
struct Family {
    by_least: Smallest,
    by_largest: Smallest,
    members: Vec<u32>,
    /// The largest virtual time served: where a new period starts.
    latest: Time,
}

/// The largest time that is compared.
const LAST: u64 = u64::MAX / 2;

impl Family {
    fn new() -> Self {
        Self {
            by_least: Smallest::new(),
            by_largest: Smallest::new(),
            members: Vec::new(),
            latest: Time::ZERO,
        }
    }

    /// The virtual time of a class that becomes active (section V): the mean of the smallest and the largest.
    fn start(&self) -> Time {
        match (self.by_least.first(), self.by_largest.first()) {
            (Some((least, _)), Some((turned, _))) => Time::from_nanos(least + (LAST - turned - least) / 2),
            _ => self.latest,
        }
    }

    fn set(&mut self, place: u32, v: Time) {
        let v = v.as_nanos().min(LAST);
        self.by_least.set(place as usize, v);
        self.by_largest.set(place as usize, LAST - v);
    }

    fn remove(&mut self, place: u32) {
        self.by_least.remove(place as usize);
        self.by_largest.remove(place as usize);
    }

    fn first(&self) -> Option<usize> {
        self.by_least.first().map(|(_, place)| self.members[place] as usize)
    }
}

/// Classes and their curves.
#[derive(Clone, Debug)]
pub struct ServiceCurves {
    nodes: Vec<Node>,
    /// The families; the first is that of the root.
    families: Vec<Family>,
    /// Leaves that are not yet eligible, by eligible time.
    waiting: Smallest,
    /// Eligible leaves, by deadline.
    eligible: Smallest,
    /// Classes at their upper limit, by the time at which they may get more.
    limited: Smallest,
    /// Classes at their upper limit whose time was advanced by a look ahead.
    changed: Vec<u32>,
    is_ahead: bool,
}

impl ServiceCurves {
    /// Classes whose curves start with their first packet.
    #[must_use]
    pub fn new(classes: &Classes<HfscClass>) -> Self {
        let classes = classes.all();
        let mut families = vec![Family::new()];
        let mut nodes: Vec<Node> = Vec::with_capacity(classes.len());
        for (at, class) in (0..).zip(classes) {
            let family = if class.is_leaf { NONE } else { families.len() as u32 };
            families.extend((!class.is_leaf).then(Family::new));
            let siblings = class.parent.map_or(0, |parent| nodes[parent].family as usize);
            let place = families[siblings].members.len() as u32;
            families[siblings].members.push(at);
            nodes.push(Node {
                rt: class.params.rt(),
                ls: class.params.ls(),
                ul: class.params.ul(),
                parent: class.parent.map_or(NONE, |parent| parent as u32),
                place,
                family,
                active: 0,
                deadline: None,
                by_deadline: Bytes::ZERO,
                due: Time::ZERO,
                fair: None,
                all: Bytes::ZERO,
                virtual_time: Time::ZERO,
                limit: None,
                fits: true,
                is_offered: false,
            });
        }
        let (waiting, eligible, limited) = (Smallest::new(), Smallest::new(), Smallest::new());
        Self { nodes, families, waiting, eligible, limited, changed: Vec::new(), is_ahead: false }
    }

    /// The family that contains a class.
    fn siblings(&self, class: usize) -> usize {
        match self.nodes[class].parent {
            NONE => 0,
            parent => self.nodes[parent as usize].family as usize,
        }
    }

    /// Makes a class active among its siblings.
    fn start(&mut self, now: Time, class: usize) {
        let start = self.families[self.siblings(class)].start();
        let node = &mut self.nodes[class];
        if let Some(curve) = node.ls {
            node.virtual_time = lower(&mut node.fair, curve, start, node.all).reaches(node.all);
        }
        if let Some(curve) = node.ul {
            lower(&mut node.limit, curve, now, node.all);
        }
        self.refit(now, class);
    }

    /// Notes that a leaf has no packets left.
    fn deactivate(&mut self, leaf: usize) {
        self.waiting.remove(leaf);
        self.eligible.remove(leaf);
        let mut class = leaf as u32;
        while class != NONE {
            let node = &mut self.nodes[class as usize];
            node.active -= 1;
            if node.active > 0 {
                break;
            }
            self.limited.remove(class as usize);
            class = node.parent;
        }
        self.offer(leaf);
    }

    /// Sets the eligible time of the leaf and the deadline of the packet at its head.
    fn plan(&mut self, now: Time, leaf: usize, head: Bytes) {
        let node = &mut self.nodes[leaf];
        let Some(deadline) = &node.deadline else { return };
        let mut eligible = *deadline;
        // Section V: for a convex curve, the time from which m2 is enough for the rest.
        if !eligible.of.is_concave() {
            (eligible.dx, eligible.dy) = (Span::ZERO, Bytes::ZERO);
        }
        node.due = deadline.reaches(sum([node.by_deadline, head]));
        let from = eligible.reaches(node.by_deadline).as_nanos().min(LAST);
        if from <= now.as_nanos() {
            self.waiting.remove(leaf);
            self.eligible.set(leaf, node.due.as_nanos().min(LAST));
        } else {
            self.eligible.remove(leaf);
            self.waiting.set(leaf, from);
        }
    }

    /// Updates whether an active class is below its upper limit.
    fn refit(&mut self, now: Time, class: usize) {
        let node = &mut self.nodes[class];
        let Some(limit) = &node.limit else { return };
        let from = limit.reaches(node.all);
        node.fits = from <= now;
        if node.fits {
            self.limited.remove(class);
        } else {
            self.limited.set(class, from.as_nanos().min(LAST));
        }
        if self.is_ahead {
            self.changed.push(class as u32);
        }
    }

    /// Offers a class to its parent by its virtual time, or withdraws it. Returns whether this is a change.
    fn place(&mut self, class: usize) -> bool {
        let siblings = self.siblings(class);
        let node = &self.nodes[class];
        let has_packets = match node.family {
            NONE => node.active > 0,
            family => self.families[family as usize].first().is_some(),
        };
        let is_offered = has_packets && node.fits;
        if is_offered {
            self.families[siblings].set(node.place, node.virtual_time);
        } else if node.is_offered {
            self.families[siblings].remove(node.place);
        }
        core::mem::replace(&mut self.nodes[class].is_offered, is_offered) != is_offered
    }

    /// Offers the class as [`place`](Self::place) does, and then its ancestors as far as anything changes.
    fn offer(&mut self, class: usize) {
        let mut class = class;
        while self.place(class) && self.nodes[class].parent != NONE {
            class = self.nodes[class].parent as usize;
        }
    }

    /// Makes leaves eligible, and lifts limits of classes, whose time has come.
    fn advance(&mut self, now: Time) {
        while let Some((_, leaf)) = self.waiting.first().filter(|(at, _)| *at <= now.as_nanos()) {
            self.waiting.remove(leaf);
            self.eligible.set(leaf, self.nodes[leaf].due.as_nanos().min(LAST));
        }
        while let Some((_, class)) = self.limited.first().filter(|(at, _)| *at <= now.as_nanos()) {
            self.refit(now, class);
            self.offer(class);
        }
    }
}

impl ClassScheduler for ServiceCurves {
    const HOLDS_BACK: bool = true;

    /// Whether the class is served by its deadline.
    type Turn = bool;

    fn activate(&mut self, now: Time, leaf: usize, head: Bytes) {
        let node = &mut self.nodes[leaf];
        if let Some(curve) = node.rt {
            lower(&mut node.deadline, curve, now, node.by_deadline);
        }
        self.plan(now, leaf, head);
        let mut class = leaf as u32;
        while class != NONE {
            let at = class as usize;
            self.nodes[at].active += 1;
            if self.nodes[at].active > 1 {
                break;
            }
            self.start(now, at);
            class = self.nodes[at].parent;
        }
        self.offer(leaf);
    }

    fn choose(&mut self, now: Time) -> Option<(usize, bool)> {
        self.changed.clear();
        self.advance(now);
        if let Some((_, leaf)) = self.eligible.first() {
            return Some((leaf, true));
        }
        let mut class = self.families[0].first()?;
        while self.nodes[class].family != NONE {
            class = self.families[self.nodes[class].family as usize].first()?;
        }
        Some((class, false))
    }

    fn served(&mut self, now: Time, leaf: usize, by_deadline: &bool, size: Bytes, next: Option<Bytes>) {
        if *by_deadline {
            self.nodes[leaf].by_deadline += size;
        }
        let mut class = leaf as u32;
        while class != NONE {
            let siblings = self.siblings(class as usize);
            let node = &mut self.nodes[class as usize];
            node.all += size;
            if let Some(fair) = &node.fair {
                node.virtual_time = fair.reaches(node.all);
                self.families[siblings].latest = self.families[siblings].latest.max(node.virtual_time);
            }
            let parent = node.parent;
            self.refit(now, class as usize);
            self.place(class as usize);
            class = parent;
        }
        self.taken(now, leaf, next);
    }

    fn taken(&mut self, now: Time, leaf: usize, next: Option<Bytes>) {
        match next {
            Some(head) => self.plan(now, leaf, head),
            None => self.deactivate(leaf),
        }
    }

    fn advance_to_eligible(&mut self) -> Option<Time> {
        let from = self.waiting.first().map(|(at, _)| at);
        let mut time = None;
        self.is_ahead = true;
        while self.families[0].first().is_none() {
            let next = self.limited.first().filter(|(at, _)| from.is_none_or(|from| *at < from));
            let Some((at, class)) = next else {
                time = from;
                break;
            };
            time = Some(at);
            self.refit(Time::from_nanos(at), class);
            self.offer(class);
        }
        self.is_ahead = false;
        time.map(Time::from_nanos)
    }

    fn rewind(&mut self, now: Time) {
        while let Some(class) = self.changed.pop() {
            if self.nodes[class as usize].active > 0 {
                self.refit(now, class as usize);
                self.offer(class as usize);
            }
        }
    }
}
