//! Doubly linked lists threaded through a slice by index, and the queues of packets built from them.
//!
//! Disciplines keep their flows in rounds and the packets of each flow in a queue. Both must append, pop at
//! either end and take out of the middle in O(1) without an allocation per packet, so the elements hold the
//! links and one `Vec` holds the elements.

use alloc::vec::Vec;

use crate::schedule::{End, Queued};

/// No element.
const NIL: u32 = u32::MAX;

/// The links of one element. An element is in at most one list at a time. The first element's link to the one
/// before and the last one's link to the one behind are undefined: a pop then leaves the neighbour alone,
/// which may not be in the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    prev: u32,
    next: u32,
}

impl Link {
    pub const NONE: Self = Self { prev: NIL, next: NIL };
}

/// An element that carries its links.
pub(crate) trait Linked {
    fn link(&mut self) -> &mut Link;
}

/// The two ends of a list. Every call gets the slice that holds the elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl List {
    pub const EMPTY: Self = Self { head: NIL, tail: NIL };

    pub fn front(&self) -> Option<usize> {
        (self.head != NIL).then_some(self.head as usize)
    }

    pub fn back(&self) -> Option<usize> {
        (self.tail != NIL).then_some(self.tail as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Whether there is exactly one element.
    pub fn is_single(&self) -> bool {
        self.head == self.tail && self.head != NIL
    }

    /// The element behind `index`, which must be in this list.
    pub fn behind<T: Linked>(&self, elements: &mut [T], index: usize) -> Option<usize> {
        (self.tail != index as u32).then(|| elements[index].link().next as usize)
    }

    /// The element before `index`, which must be in this list.
    pub fn before<T: Linked>(&self, elements: &mut [T], index: usize) -> Option<usize> {
        (self.head != index as u32).then(|| elements[index].link().prev as usize)
    }

    /// Appends element `index`, which must be in no list.
    pub fn push_back<T: Linked>(&mut self, elements: &mut [T], index: usize) {
        let id = index as u32;
        *elements[index].link() = Link { prev: self.tail, next: NIL };
        match self.tail {
            NIL => self.head = id,
            tail => elements[tail as usize].link().next = id,
        }
        self.tail = id;
    }

    /// Takes the first element out.
    pub fn pop_front<T: Linked>(&mut self, elements: &mut [T]) -> Option<usize> {
        let front = self.front()?;
        let Link { next, .. } = core::mem::replace(elements[front].link(), Link::NONE);
        if self.head == self.tail {
            *self = Self::EMPTY;
        } else {
            self.head = next;
        }
        Some(front)
    }

    /// Takes the last element out.
    pub fn pop_back<T: Linked>(&mut self, elements: &mut [T]) -> Option<usize> {
        let back = self.back()?;
        let Link { prev, .. } = core::mem::replace(elements[back].link(), Link::NONE);
        if self.head == self.tail {
            *self = Self::EMPTY;
        } else {
            self.tail = prev;
        }
        Some(back)
    }

    /// Takes element `index`, which must be in this list, out of it.
    pub fn remove<T: Linked>(&mut self, elements: &mut [T], index: usize) {
        if self.head == index as u32 {
            self.pop_front(elements);
        } else if self.tail == index as u32 {
            self.pop_back(elements);
        } else {
            let Link { prev, next } = core::mem::replace(elements[index].link(), Link::NONE);
            elements[prev as usize].link().next = next;
            elements[next as usize].link().prev = prev;
        }
    }

    /// Moves the front element to the back.
    pub fn rotate<T: Linked>(&mut self, elements: &mut [T]) {
        if let Some(front) = self.pop_front(elements) {
            self.push_back(elements, front);
        }
    }
}

/// Storage for the packets of many queues: one `Vec`. Free places are reused, the latest first because it is
/// in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Pool<P> {
    nodes: Vec<Node<P>>,
    /// The first free place; each free place holds the index of the next.
    free: u32,
}

/// One place. Alignment keeps a packet of the simulator within one cache line.
#[derive(Clone, Debug)]
#[repr(align(32))]
struct Node<P> {
    link: Link,
    queued: Option<Queued<P>>,
}

impl<P> Linked for Node<P> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl<P> Pool<P> {
    pub const fn new() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }

    /// All packets, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Queued<P>> {
        self.nodes.iter_mut().filter_map(|node| node.queued.as_mut())
    }

    fn place(&mut self, queued: Queued<P>) -> usize {
        if let Some(node) = self.nodes.get_mut(self.free as usize) {
            let index = core::mem::replace(&mut self.free, node.link.next);
            node.queued = Some(queued);
            return index as usize;
        }
        self.nodes.push(Node { link: Link::NONE, queued: Some(queued) });
        self.nodes.len() - 1
    }

    fn take(&mut self, index: usize) -> Option<Queued<P>> {
        let node = &mut self.nodes[index];
        node.link.next = core::mem::replace(&mut self.free, index as u32);
        node.queued.take()
    }
}

/// The packets of one flow, in order of arrival. Every call gets the [`Pool`] that holds them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketQueue(List);

impl PacketQueue {
    pub const EMPTY: Self = Self(List::EMPTY);

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn push<P>(&mut self, pool: &mut Pool<P>, queued: Queued<P>) {
        let index = pool.place(queued);
        self.0.push_back(&mut pool.nodes, index);
    }

    pub fn pop<P>(&mut self, pool: &mut Pool<P>, end: End) -> Option<Queued<P>> {
        let index = match end {
            End::Head => self.0.pop_front(&mut pool.nodes),
            End::Tail => self.0.pop_back(&mut pool.nodes),
        }?;
        pool.take(index)
    }

    pub fn front<'a, P>(&self, pool: &'a Pool<P>) -> Option<&'a Queued<P>> {
        pool.nodes[self.0.front()?].queued.as_ref()
    }

    /// Takes out the first packet for which `is_meant`; the others keep their order. O(1) if it is the head.
    pub fn take_first<P>(&mut self, pool: &mut Pool<P>, is_meant: impl Fn(&P) -> bool) -> Option<Queued<P>> {
        let mut at = self.0.front()?;
        // Terminates: each pass goes one packet on.
        while !pool.nodes[at].queued.as_ref().is_some_and(|queued| is_meant(&queued.packet)) {
            at = self.0.behind(&mut pool.nodes, at)?;
        }
        self.0.remove(&mut pool.nodes, at);
        pool.take(at)
    }

    /// Takes out the first packet for which `is_meant` among the first `most` packets, if at least `least` of
    /// these are meant. The others keep their order.
    pub fn take_first_of<P>(
        &mut self,
        pool: &mut Pool<P>,
        [least, most]: [usize; 2],
        is_meant: impl Fn(&P) -> bool,
    ) -> Option<Queued<P>> {
        let (mut found, mut meant) = (None, 0);
        let mut next = self.0.front();
        for _ in 0..most {
            let Some(at) = next else { break };
            if pool.nodes[at].queued.as_ref().is_some_and(|queued| is_meant(&queued.packet)) {
                found = found.or(next);
                meant += 1;
            }
            next = self.0.behind(&mut pool.nodes, at);
        }
        let at = found.filter(|_| meant >= least)?;
        self.0.remove(&mut pool.nodes, at);
        pool.take(at)
    }

    /// Whether there is more than one packet.
    pub fn has_several(&self) -> bool {
        !self.0.is_empty() && !self.0.is_single()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use crate::units::Time;

    #[test]
    fn two_queues_share_a_pool_and_give_back_from_either_end() {
        let mut pool = Pool::new();
        let mut queues = [PacketQueue::EMPTY; 2];
        for id in 0..6 {
            let queued = Queued { packet: packet(id, id % 2, 100), arrived: Time::ZERO };
            queues[id as usize % 2].push(&mut pool, queued);
        }
        let mut take = |queue: usize, end| queues[queue].pop(&mut pool, end).map(|queued| queued.packet.id);
        assert_eq!(take(0, End::Tail), Some(4));
        assert_eq!(take(1, End::Head), Some(1));
        assert_eq!(take(0, End::Head), Some(0));
        assert_eq!(take(0, End::Head), Some(2));
        assert_eq!(take(0, End::Head), None);
        // The outer links of the remaining ends are undefined.
        assert_eq!(take(1, End::Tail), Some(5));
        assert_eq!(take(1, End::Head), Some(3));
        assert_eq!(take(1, End::Tail), None);
        // Freed places are used again before the pool grows.
        queues[0].push(&mut pool, Queued { packet: packet(9, 0, 100), arrived: Time::ZERO });
        assert_eq!(pool.nodes.len(), 6);
    }

    #[test]
    fn the_first_packet_that_is_meant_leaves_and_the_others_keep_their_order() {
        let mut pool = Pool::new();
        let mut queue = PacketQueue::EMPTY;
        for (id, flow) in [(0, 7), (1, 8), (2, 7), (3, 8), (4, 9)] {
            queue.push(&mut pool, Queued { packet: packet(id, flow, 100), arrived: Time::ZERO });
        }
        let mut take = |flow: u32| queue.take_first(&mut pool, |it| it.flow.0 == flow).map(|it| it.packet.id);
        assert_eq!([8, 9, 8, 8].map(&mut take), [Some(1), Some(4), Some(3), None]);
        assert!(queue.has_several());
        let left: Vec<_> = core::iter::from_fn(|| queue.pop(&mut pool, End::Head)).collect();
        assert_eq!(left.iter().map(|queued| queued.packet.id).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn an_element_leaves_the_middle_of_a_list() {
        let mut nodes: Vec<Node<()>> = (0..3).map(|_| Node { link: Link::NONE, queued: None }).collect();
        let mut list = List::EMPTY;
        for index in 0..3 {
            list.push_back(&mut nodes, index);
        }
        list.remove(&mut nodes, 1);
        list.rotate(&mut nodes);
        assert_eq!((list.front(), list.back()), (Some(2), Some(0)));
    }
}
