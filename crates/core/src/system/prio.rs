//! Strict priority: a FIFO queue for each class, and no packet leaves while one of a higher priority waits.
//!
//! The head-of-line priority discipline of Cobham, "Priority assignment in waiting line problems", Operations
//! Research 2(1), 1954: the packet in transmission is not interrupted. A class is a priority, the lowest
//! number first; a flow belongs to the class of its customer (`classes.rs`). Each queue has a limit of its
//! own, at which arrivals are dropped, so a flood of one priority takes no room from another; but it takes
//! the link from all lower ones. A discipline can replace the queue of a class.
//!
//! Cost: O(1) per packet up to 64 classes, then one more step for each 64. Memory: 8 bytes per flow, about 100 per class.
//! Parameters: [`ENTRY`], [`CLASS`].

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::classes::{ClassQueue, Classes, DISCIPLINE, key_of};
use super::classful::ClassScheduler;
use crate::limit::BufferSize;
use crate::param::{
    Entry, EntryArgs, GoesBy, Heeds, LIMIT, PARENT_KEY, Param, ParamError, Role, Traits, concat, total,
};
use crate::params;
use crate::units::{Bytes, Time};

/// Strict priority in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "prio",
    role: Role::System,
    summary: "Strict priority: a FIFO per class; serves a class only while all of higher priority are empty.",
    reference: "Cobham 1954",
    cost: "O(1) per packet, 8 bytes per flow, about 100 per class",
    params: PrioParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Customer, Heeds::Weight],
        goes_by: Some(GoesBy::Classes),
        classes: Some(&CLASS),
        ..Traits::NONE
    },
};

/// The classes of [`ENTRY`] in the catalogue.
pub const CLASS: Entry = Entry {
    name: "prio",
    role: Role::Class,
    summary: "A class of strict priority.",
    reference: "Cobham 1954",
    cost: "",
    params: &concat::<{ total(OF_CLASS) }>(OF_CLASS),
    traits: Traits::NONE,
};

const OF_CLASS: &[&[Param]] = &[PrioClass::PARAMS, ClassQueue::PARAMS];

params! {
    /// A class of strict priority.
    pub struct PrioClass {
        /// Its priority, the lowest number first.
        prio: u64 = Param::required() => |args: &EntryArgs<'_>| {
            args.count_if_set("prio").ok_or_else(|| ParamError::new("prio", "it must be set; write for example 1"))
        },
    }
}

params! {
    /// Parameters of [`ByPriority`].
    pub struct PrioParams {
        limit: Option<BufferSize> = LIMIT,
        discipline: &'static str = DISCIPLINE,
        /// The classes, with their priorities.
        class: Classes<PrioClass> => classes,
    }
}

fn classes(args: &EntryArgs<'_>) -> Result<Classes<PrioClass>, ParamError> {
    let class = Classes::read(args, &CLASS, PrioClass::from_args)?;
    let class = class.unwrap_or_else(|| Classes::single(PrioClass { prio: 0 }));
    let mut by_prio: Vec<_> = class.all().iter().collect();
    by_prio.sort_by_key(|class| class.params.prio);
    if let Some(inner) = by_prio.iter().find(|class| class.parent.is_some()) {
        let message = "priorities have no hierarchy; leave `parent` out, or take \"htb\"";
        return Err(ParamError::new(&key_of(&inner.name, PARENT_KEY), message));
    }
    if let Some(same) = by_prio.windows(2).find(|pair| pair[0].params == pair[1].params) {
        let message = format!("class `{}` has this priority already", same[0].name);
        return Err(ParamError::new(&key_of(&same[1].name, "prio"), message.to_string()));
    }
    Ok(class)
}

/// Serves the highest priority with packets.
#[derive(Clone, Debug)]
pub struct ByPriority {
    /// Classes, the highest priority first.
    by_rank: Vec<u32>,
    /// The place of each class in `by_rank`.
    ranks: Vec<u32>,
    /// One bit for each rank, set if its queue has packets.
    waiting: Vec<u64>,
}

impl ByPriority {
    /// A scheduler of classes without packets.
    #[must_use]
    pub fn new(classes: &Classes<PrioClass>) -> Self {
        let classes = classes.all();
        let mut by_rank: Vec<u32> = (0..classes.len() as u32).collect();
        by_rank.sort_by_key(|&class| classes[class as usize].params.prio);
        let mut ranks = vec![0; classes.len()];
        (0..).zip(&by_rank).for_each(|(rank, &class)| ranks[class as usize] = rank);
        Self { waiting: vec![0; classes.len().div_ceil(64)], by_rank, ranks }
    }
}

impl ClassScheduler for ByPriority {
    const HOLDS_BACK: bool = false;
    type Turn = ();

    fn activate(&mut self, _now: Time, class: usize, _size: Bytes) {
        let rank = self.ranks[class] as usize;
        self.waiting[rank / 64] |= 1 << (rank % 64);
    }

    fn choose(&mut self, _now: Time) -> Option<(usize, ())> {
        let word = self.waiting.iter().position(|word| *word != 0)?;
        let rank = 64 * word + self.waiting[word].trailing_zeros() as usize;
        Some((self.by_rank[rank] as usize, ()))
    }

    fn served(&mut self, now: Time, class: usize, _turn: &(), _size: Bytes, next: Option<Bytes>) {
        self.taken(now, class, next);
    }

    fn taken(&mut self, _now: Time, class: usize, next: Option<Bytes>) {
        if next.is_none() {
            let rank = self.ranks[class] as usize;
            self.waiting[rank / 64] &= !(1 << (rank % 64));
        }
    }
}
