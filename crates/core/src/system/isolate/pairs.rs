//! Pairs of hosts with packets, and the flows of each pair at either host.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::longest::{Longest, Ranked};
use crate::list::{Link, Linked, List};

/// The number of ends of a flow: its source and its destination.
pub(super) const ENDS: usize = 2;

/// No pair.
pub(super) const NONE: u32 = u32::MAX;

/// Two hosts, with all flows in one direction between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Links among idle pairs.
    link: Link,
    ends: [u32; ENDS],
    /// The number of its backlogged flows, whichever end their packets belong to.
    flows: u32,
}

impl Linked for Pair {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// One host's part of the packets of a pair. The two groups of a pair, one for each end, are adjacent.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Links in the round of the host.
    link: Link,
    /// Seats with packets, in turn.
    pub round: List,
    /// Whether the seat at the front has got its quantum of this turn.
    pub in_turn: bool,
    /// The number of turns that it has passed since the last one that it took.
    pub passed: u8,
    /// The place in the heap of the host.
    place: u32,
    pub longest: Longest,
    /// The bytes of its seats.
    pub bytes: i64,
    /// The deficit, as in DRR.
    pub deficit: u64,
}

const EMPTY: Group = Group {
    link: Link::NONE,
    round: List::EMPTY,
    in_turn: false,
    passed: 0,
    place: 0,
    longest: Longest::EMPTY,
    bytes: 0,
    deficit: 0,
};

impl Linked for Group {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Ranked for Group {
    fn length(&self) -> f64 {
        self.bytes as f64
    }
    fn place(&mut self) -> &mut u32 {
        &mut self.place
    }
}

/// All pairs with flows or packets. An idle pair keeps its place until a new one needs it.
#[derive(Debug)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    pub groups: Vec<Group>,
    places: BTreeMap<[u32; ENDS], u32>,
    /// Pairs without flows and packets, the longest idle first.
    idle: List,
}

impl Pairs {
    pub const fn new() -> Self {
        Self { pairs: Vec::new(), groups: Vec::new(), places: BTreeMap::new(), idle: List::EMPTY }
    }

    /// The numbers of the hosts of a pair.
    pub fn ends(&self, pair: u32) -> [u32; ENDS] {
        self.pairs[pair as usize].ends
    }

    /// The number of the host at the end of `group`, and of its peer at the other end.
    pub fn hosts(&self, group: usize) -> (usize, usize) {
        let ends = self.pairs[group / ENDS].ends.map(|host| host as usize);
        (ends[group % ENDS], ends[1 - group % ENDS])
    }

    /// Adds a backlogged flow with these ends. Returns its pair, which is perhaps `hint`, and whether the
    /// flow is the only one of the pair.
    pub fn join(&mut self, hint: u32, ends: [u32; ENDS]) -> (u32, bool) {
        let at = self.place(hint, ends);
        if self.is_idle(at) {
            self.idle.remove(&mut self.pairs, at);
        }
        self.pairs[at].flows += 1;
        (at as u32, self.pairs[at].flows == 1)
    }

    /// Subtracts a flow of a pair. Returns whether it was the last one.
    pub fn leave(&mut self, pair: u32) -> bool {
        let at = pair as usize;
        self.pairs[at].flows -= 1;
        self.settle(at);
        self.pairs[at].flows == 0
    }

    /// Must be called when a group of the pair at `at` has become empty.
    pub fn settle(&mut self, at: usize) {
        if self.is_idle(at) {
            self.idle.push_back(&mut self.pairs, at);
        }
    }

    /// The memory of pairs and groups. An entry of a B-tree takes at most three times its size: nodes are at
    /// least half full, and have links.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let heaps: usize = self.groups.iter().map(|group| group.longest.bytes()).sum();
        self.pairs.capacity() * size_of::<Pair>()
            + self.groups.capacity() * size_of::<Group>()
            + self.places.len() * 3 * size_of::<([u32; ENDS], u32)>()
            + heaps
    }

    fn is_idle(&self, at: usize) -> bool {
        let mut groups = self.groups[ENDS * at..ENDS * (at + 1)].iter();
        self.pairs[at].flows == 0 && groups.all(|group| group.round.is_empty())
    }

    /// The place of the pair with these ends; a new pair is idle.
    fn place(&mut self, hint: u32, ends: [u32; ENDS]) -> usize {
        if self.pairs.get(hint as usize).is_some_and(|pair| pair.ends == ends) {
            return hint as usize;
        }
        if let Some(&at) = self.places.get(&ends) {
            return at as usize;
        }
        let at = if let Some(at) = self.idle.front() {
            self.places.remove(&self.pairs[at].ends);
            self.pairs[at].ends = ends;
            at
        } else {
            self.pairs.push(Pair { link: Link::NONE, ends, flows: 0 });
            self.groups.extend([EMPTY; ENDS]);
            let at = self.pairs.len() - 1;
            self.idle.push_back(&mut self.pairs, at);
            at
        };
        self.places.insert(ends, at as u32);
        at
    }
}
