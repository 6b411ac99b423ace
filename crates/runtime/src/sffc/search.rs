//! Searches for the upstream routers of flows, and reports to them.

use std::collections::BTreeMap;

use super::count::Refusal;
use super::message::{
    Answer, FlowKey, FlowState, Message, Proof, Query, ROOM, Report, RouterId, Scope, flow_size, state_size,
};
use super::{Destination, FlowReport, Forwarding, Manager, check};
use apportion_core::packet::FlowId;
use apportion_core::units::{Span, Time};

/// The upstream router of a flow, as far as it is known.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    /// The flow's number may pass to another flow, its name does not.
    key: FlowKey,
    known: Option<Known>,
    search: Option<Search>,
    /// The last report that could not be sent, and when it was made.
    pending: Option<(Time, FlowReport)>,
}

/// The upstream router of a flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    router: RouterId,
    cookie: u64,
    answered: Time,
}

#[derive(Clone, Copy, Debug)]
struct Search {
    nonce: u64,
    stage: Stage,
}

/// The target of the last query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The router that answered last.
    Again,
    Neighbours,
    /// The routers on the way to the source, for this number of times.
    TowardsSource(u32),
    /// No router answered, and none is asked for a while.
    Silent,
}

/// The messages of a call, collected so that flows share them.
#[derive(Default)]
struct Work {
    /// Reports by router, cookie and interval.
    reports: BTreeMap<(RouterId, u64, Span), Vec<FlowState>>,
    /// Renewals by router and cookie.
    again: BTreeMap<(RouterId, u64), Vec<(FlowId, FlowKey)>>,
    neighbours: Vec<(FlowId, FlowKey)>,
}

impl Work {
    fn report(&mut self, to: Known, key: FlowKey, report: &FlowReport) {
        let state = FlowState { key, arrived: report.arrived, departed: report.departed };
        self.reports.entry((to.router, to.cookie, report.interval)).or_default().push(state);
    }
}

impl Manager {
    /// Sends these reports upstream after an interval in which an output link overflowed.
    pub fn report(&mut self, now: Time, reports: &[FlowReport], router: &dyn Forwarding) {
        while let Some(flow) = self.upstream.pop_due(now) {
            self.agenda.remove(flow);
        }
        let mut work = Work::default();
        for report in reports {
            // Every neighbour would refuse the others.
            if report.interval > Span::ZERO
                && check(report.arrived, report.departed).is_ok()
                && let Some(key) = router.key(report.flow)
            {
                self.report_flow(now, key, report, &mut work);
            }
        }
        self.send_work(now, work);
    }

    fn report_flow(&mut self, now: Time, key: FlowKey, report: &FlowReport, work: &mut Work) {
        let (flow, expiry, renewal) = (report.flow, self.params.expiry, self.params.renewal);
        if self.is_unanswered(flow, &key) {
            self.rules.report(now, key, report);
        }
        let upstream = self.upstream_of(now, flow, key);
        let age = upstream.known.map(|known| now.since(known.answered));
        match upstream.known {
            // An older cookie is probably outdated, and the next answer brings a new one.
            Some(known) if age < Some(renewal) => work.report(known, key, report),
            _ => upstream.pending = Some((now, *report)),
        }
        if upstream.search.is_some() {
            return;
        }
        match upstream.known {
            // The router changes its cookie every `renewal`; twice as many queries keep up with that.
            Some(_) if age < Some(renewal.div(2)) => {}
            Some(known) if age < Some(expiry) => {
                work.again.entry((known.router, known.cookie)).or_default().push((flow, key));
            }
            _ => {
                upstream.known = None;
                work.neighbours.push((flow, key));
            }
        }
    }

    /// Whether a search for the upstream router of this flow found none. A rule outlasts the next search.
    fn is_unanswered(&self, flow: FlowId, key: &FlowKey) -> bool {
        let upstream = self.upstream.get(flow).filter(|upstream| upstream.key == *key);
        let search = upstream.and_then(|upstream| upstream.search);
        upstream.is_none_or(|upstream| upstream.known.is_none())
            && (search.is_some_and(|search| search.stage == Stage::Silent) || self.rules.has(key))
    }

    /// The entry of a flow that is being reported, created if there is none.
    fn upstream_of(&mut self, now: Time, flow: FlowId, key: FlowKey) -> &mut Upstream {
        let until = now + self.params.expiry;
        if self.upstream.get(flow).is_none_or(|upstream| upstream.key != key) {
            self.forget(flow);
            if self.upstream.len() >= self.params.flows.max(1)
                && let Some(oldest) = self.upstream.pop_first()
            {
                self.agenda.remove(oldest);
            }
        }
        let new = || Upstream { key, known: None, search: None, pending: None };
        self.upstream.get_or_insert(flow, until, new)
    }

    fn forget(&mut self, flow: FlowId) {
        self.upstream.remove(flow);
        self.agenda.remove(flow);
    }

    /// Time to call [`on_timer`](Self::on_timer), if at all.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.agenda.first_time()
    }

    /// Continues searches whose timeout has expired.
    pub fn on_timer(&mut self, now: Time, router: &dyn Forwarding) {
        let mut due = Vec::new();
        while let Some(flow) = self.agenda.pop_due(now) {
            due.push(flow);
        }
        let mut work = Work::default();
        for flow in due {
            self.step(now, flow, router, &mut work);
        }
        self.send_work(now, work);
    }

    fn step(&mut self, now: Time, flow: FlowId, router: &dyn Forwarding, work: &mut Work) {
        let Some(upstream) = self.upstream.get_mut(flow) else { return };
        if router.key(flow) != Some(upstream.key) {
            return self.forget(flow);
        }
        let key = upstream.key;
        let Some(search) = &mut upstream.search else { return };
        let sent = match search.stage {
            Stage::Again => return work.neighbours.push((flow, key)),
            Stage::Silent => return upstream.search = None,
            Stage::Neighbours => 0,
            Stage::TowardsSource(sent) => sent,
        };
        if sent >= self.params.tries {
            search.stage = Stage::Silent;
            self.counters.not_found();
            self.agenda.insert(flow, now + self.params.pause, ());
            return;
        }
        search.stage = Stage::TowardsSource(sent + 1);
        let (nonce, scope) = (search.nonce, Scope::TowardsSource);
        let wait = self.params.search_timeout * 2_u64.saturating_pow(sent);
        self.agenda.insert(flow, now + wait, ());
        let query = Query { router: self.id, nonce, scope, proof: None, flows: [key].into() };
        self.send(Destination::TowardsSource(flow), &Message::Query(query));
    }

    /// Takes an answer to a query of this router, and sends the reports that waited for it.
    pub(super) fn answer(&mut self, now: Time, answer: &Answer, router: &dyn Forwarding) {
        let mut work = Work::default();
        for key in &answer.flows {
            let found = router.flow(key).is_some_and(|flow| self.found(now, flow, key, answer, &mut work));
            if !found {
                self.counters.refused(Refusal::Unasked);
            }
        }
        self.send_work(now, work);
    }

    fn found(&mut self, now: Time, flow: FlowId, key: &FlowKey, answer: &Answer, work: &mut Work) -> bool {
        let Some(upstream) = self.upstream.get_mut(flow) else { return false };
        let asked = upstream.search.filter(|search| search.nonce == answer.nonce && upstream.key == *key);
        let Some(search) = asked else { return false };
        if search.stage == Stage::Again && upstream.known.is_none_or(|known| known.router != answer.router) {
            return false;
        }
        let known = Known { router: answer.router, cookie: answer.cookie, answered: now };
        upstream.known = Some(known);
        upstream.search = None;
        self.rules.withdraw(key);
        self.agenda.remove(flow);
        // A report that is older than its interval is no news.
        if let Some((made, report)) = upstream.pending.take()
            && now.since(made) <= report.interval
        {
            work.report(known, *key, &report);
        }
        true
    }

    fn send_work(&mut self, now: Time, work: Work) {
        for ((to, cookie, interval), states) in work.reports {
            for flows in split(&states, state_size) {
                let proof = Proof { cookie, sequence: self.next_sequence() };
                let report = Report { router: self.id, proof, interval, flows: flows.to_vec() };
                self.send(Destination::Router(to), &Message::Report(report));
            }
        }
        for ((to, cookie), flows) in work.again {
            for flows in split(&flows, |(_, key)| flow_size(key)) {
                let proof = Proof { cookie, sequence: self.next_sequence() };
                self.ask(now, Destination::Router(to), Stage::Again, Some(proof), flows);
            }
        }
        for flows in split(&work.neighbours, |(_, key)| flow_size(key)) {
            self.ask(now, Destination::Neighbours, Stage::Neighbours, None, flows);
        }
    }

    /// Starts a search for flows that share a message.
    fn ask(
        &mut self,
        now: Time,
        to: Destination,
        stage: Stage,
        proof: Option<Proof>,
        flows: &[(FlowId, FlowKey)],
    ) {
        let nonce = self.secret.draw();
        for (flow, _) in flows {
            if let Some(upstream) = self.upstream.get_mut(*flow) {
                upstream.search = Some(Search { nonce, stage });
                self.agenda.insert(*flow, now + self.params.search_timeout, ());
            }
        }
        let flows = flows.iter().map(|(_, key)| *key).collect();
        let query = Query { router: self.id, nonce, scope: Scope::Neighbours, proof, flows };
        self.send(to, &Message::Query(query));
    }
}

/// Pieces of a list that each fit a message, in order.
fn split<T>(mut rest: &[T], size: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    core::iter::from_fn(move || {
        let mut room = ROOM;
        let fits = |item: &&T| {
            let left = room.checked_sub(size(item));
            room = left.unwrap_or(room);
            left.is_some()
        };
        let count = rest.iter().take_while(fits).count();
        // An item is less than a tenth of the room, so each piece has one.
        let (piece, behind) = rest.split_at(count);
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}
