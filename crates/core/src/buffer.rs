//! One buffer: any [buffer policy](crate::aqm) with any [scheduler](crate::schedule).

use crate::aqm::{Admission, BufferPolicy, Victim};
use crate::packet::Packet;
use crate::queue::{Backlog, Queue, Sink};
use crate::schedule::Scheduler;
use crate::units::Time;

/// A scheduler `S` whose buffer is managed by the policy `B`.
#[derive(Clone, Debug)]
pub struct Buffer<S, B> {
    scheduler: S,
    policy: B,
}

impl<S, B> Buffer<S, B> {
    /// Combines the two. `scheduler` must be empty.
    pub fn new<P: Packet>(scheduler: S, mut policy: B) -> Self
    where
        S: Scheduler<P>,
        B: BufferPolicy<P>,
    {
        if scheduler.keeps_flows_apart() {
            policy.control_each_flow();
        }
        Self { scheduler, policy }
    }
    /// The policy, for reading.
    pub const fn policy(&self) -> &B {
        &self.policy
    }
    /// The policy, for changes of its settings.
    pub const fn policy_mut(&mut self) -> &mut B {
        &mut self.policy
    }
    /// The scheduler, for reading.
    pub const fn scheduler(&self) -> &S {
        &self.scheduler
    }
    /// The scheduler, for changes of its settings.
    pub const fn scheduler_mut(&mut self) -> &mut S {
        &mut self.scheduler
    }
}

/// Pushes out `victim`, and others until the policy names none.
// A function of its own: if the loop is inlined, each `enqueue` pays for its registers.
#[inline(never)]
fn push_out<P: Packet, S: Scheduler<P>, B: BufferPolicy<P>>(
    buffer: &mut Buffer<S, B>,
    now: Time,
    victim: Victim,
    sink: &mut dyn Sink<P>,
) {
    let mut next = Some(victim);
    // Terminates: each victim makes the backlog smaller, and an empty buffer exceeds no limit.
    while let Some(victim) = next {
        let Some(queued) = buffer.scheduler.push_out(now, victim.flow, victim.end) else {
            debug_assert!(false, "the victim {victim:?} has no packet");
            return;
        };
        buffer.policy.pushed_out(&queued.packet);
        sink.dropped(now, queued.packet, victim.reason);
        next = buffer.policy.victim(now, &buffer.scheduler);
    }
}

impl<P: Packet, S: Scheduler<P>, B: BufferPolicy<P>> Queue<P> for Buffer<S, B> {
    #[inline]
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) {
        let backlog = self.scheduler.backlog();
        let admission = if self.scheduler.keeps_flows_apart() {
            self.policy.admit_to_flow(now, &mut packet, backlog)
        } else {
            self.policy.admit(now, &mut packet, backlog)
        };
        match admission {
            Admission::Drop(reason) => return sink.dropped(now, packet, reason),
            Admission::Mark => {
                packet.set_ce();
                sink.marked(now, &packet);
            }
            Admission::Accept => {}
        }
        self.scheduler.push_in_turn(now, packet, self.policy.turn());
        if let Some(victim) = self.policy.victim(now, &self.scheduler) {
            push_out(self, now, victim, sink);
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.scheduler.link_is_free(now);
        self.policy.dequeue(now, &mut self.scheduler, sink).map(|queued| queued.packet)
    }

    fn is_transparent(&self) -> bool {
        self.scheduler.is_transparent() && self.policy.is_transparent()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.scheduler.backlog()
    }

    fn upcoming(&self, others: usize) -> Option<&P> {
        self.scheduler.upcoming(others)
    }
}
