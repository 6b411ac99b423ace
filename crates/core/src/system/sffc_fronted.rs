//! SF-FC's discarder in front of any discipline.
//!
//! Tamura, Tobe, Tokuda 2000 put it in front of a FIFO, in which adaptive flows share the rest by their
//! round-trip times and the sizes of their segments. Here packets that pass the [discarder](Sffc) go to a
//! discipline that divides among flows. Non-adaptive flows wait in it too, as in the paper's FIFO: a flow
//! that changes its kind keeps its place, and a flow that is wrongly taken for adaptive takes nothing from
//! the others.
//!
//! Drops of the discipline count as losses of this link, like an overflow of the FIFO.

use alloc::boxed::Box;
use alloc::format;

use super::any::{BoxedDiscipline, BufferParams, DisciplineKind, PolicyParams, SchedulerParams};
use super::context::LinkContext;
use super::discipline::Discipline;
use crate::aqm::BufferPolicy;
use crate::aqm::sffc::{FIFO, Sffc, SffcParams};
use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{FlowId, Packet};
use crate::param::Shares;
use crate::queue::{Backlog, DropReason, Overload, Queue, Sink};
use crate::units::{Rate, Time};

#[cfg(test)]
mod tests;

/// Parameters of [`SffcFronted`].
#[derive(Clone, Debug, PartialEq)]
pub struct SffcFrontedParams {
    /// The discarder. Its limit is the size of the discipline.
    pub sffc: SffcParams,
    /// The discipline that divides among the flows that pass.
    pub discipline: Box<DisciplineKind>,
}

impl SffcFrontedParams {
    /// The same discipline, or SF-FC in front of the discipline that its parameters name in place of the
    /// FIFO.
    pub(super) fn of(kind: DisciplineKind) -> DisciplineKind {
        let DisciplineKind::Buffered(BufferParams { schedule, drop: PolicyParams::Sffc(sffc) }) = &kind
        else {
            return kind;
        };
        let is_fifo = matches!(schedule, SchedulerParams::Fifo(_));
        let name = sffc.discipline();
        let named = DisciplineKind::of_name(name).filter(|_| is_fifo && name != FIFO);
        match named {
            Some(discipline) => {
                DisciplineKind::SffcFronted(Self { sffc: sffc.clone(), discipline: Box::new(discipline) })
            }
            None => kind,
        }
    }

    /// Whether the discipline gives each flow its share, so that the discarder only enforces reports.
    pub(super) fn gives_shares(&self) -> bool {
        self.discipline.entries().any(|entry| entry.traits.shares == Shares::Given)
    }
}

/// A discipline behind the discarder of SF-FC.
pub struct SffcFronted<P> {
    sffc: Sffc,
    inner: BoxedDiscipline<P>,
}

impl<P: Packet> SffcFronted<P> {
    /// An empty discipline for this link.
    #[must_use]
    pub fn new(params: &SffcFrontedParams, link: &LinkContext<'_>) -> Self {
        let name = format!("{}.discipline", link.name);
        let inside = LinkContext { name: &name, ..*link };
        let mut inner = params.discipline.build(&inside);
        let mut sffc = Sffc::new(&params.sffc, link.link_rate, link.stream(), link.stream_for("trials"));
        inner.set_limit(sffc.limit());
        if params.gives_shares() {
            sffc = sffc.before_shares(link.stream_for("trials"));
        }
        Self { sffc, inner }
    }
}

impl<P: Packet> Queue<P> for SffcFronted<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        if !self.sffc.lets_pass(now, &packet) {
            return sink.dropped(now, packet, DropReason::Policy);
        }
        self.inner.enqueue(now, packet, &mut Losses { sffc: &mut self.sffc, sink });
    }

    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.sffc.advance(now);
        let packet = self.inner.dequeue(now, &mut Losses { sffc: &mut self.sffc, sink })?;
        self.sffc.sent(&packet);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }
}

impl<P: Packet> Discipline<P> for SffcFronted<P> {
    fn drain(&mut self, now: Time) -> Option<P> {
        self.inner.drain(now)
    }
    fn limit(&self) -> Option<Limit> {
        Some(self.sffc.limit())
    }
    fn set_limit(&mut self, limit: Limit) {
        BufferPolicy::<P>::set_limit(&mut self.sffc, limit);
        self.inner.set_limit(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        BufferPolicy::<P>::set_link_rate(&mut self.sffc, rate);
        self.inner.set_link_rate(rate);
        self.inner.set_limit(self.sffc.limit());
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.inner.set_flow(flow, setting)
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        BufferPolicy::<P>::statistics(&self.sffc, show);
        self.inner.statistics(show);
    }
    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        BufferPolicy::<P>::flow_statistics(&self.sffc, show);
        self.inner.flow_statistics(show);
    }
    fn reporter(&self) -> Option<&Sffc> {
        BufferPolicy::<P>::reporter(&self.sffc)
    }
    fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        BufferPolicy::<P>::reporter_mut(&mut self.sffc)
    }
}

/// Reports the losses of the discipline to the discarder.
struct Losses<'a, P> {
    sffc: &'a mut Sffc,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<P> for Losses<'_, P> {
    fn dropped(&mut self, now: Time, packet: P, reason: DropReason) {
        self.sffc.lost(&packet);
        self.sink.dropped(now, packet, reason);
    }
    fn marked(&mut self, now: Time, packet: &P) {
        self.sink.marked(now, packet);
    }
    fn overload(&mut self, now: Time, overload: Overload) {
        self.sink.overload(now, overload);
    }
}
