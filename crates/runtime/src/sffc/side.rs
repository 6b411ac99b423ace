//! The routers beyond one output port: next hops of flows, and the reports that they may send.

use super::aged::Aged;
use super::count::{Counters, Refusal};
use super::message::{FlowKey, FlowState, Proof, Query, Report, RouterId};
use super::{FlowReport, Forwarding, ManagerParams, Port, Secret, check};
use apportion_core::packet::FlowId;
use apportion_core::units::{Span, Time};

/// A limit on a rate of messages: how far they are ahead of it.
#[derive(Clone, Copy, Debug, Default)]
struct Allowance {
    /// Time at which the messages so far would all have come at the limit.
    due: Time,
}

impl Allowance {
    fn take(&mut self, now: Time, rate: u32, burst: u32) -> bool {
        let gap = Span::from_secs(1).div(u64::from(rate.max(1)));
        if self.due.since(now) >= gap * u64::from(burst.max(1)) {
            return false;
        }
        self.due = self.due.max(now) + gap;
        true
    }
}

/// A router that was answered.
#[derive(Clone, Debug)]
struct Asker {
    cookie: u64,
    /// The cookie before this one.
    previous: Option<u64>,
    /// Time at which the cookie was made.
    made: Time,
    /// Number of its last message with a cookie.
    sequence: u64,
    messages: Allowance,
}

impl Asker {
    fn new(cookie: u64, now: Time) -> Self {
        Self { cookie, previous: None, made: now, sequence: 0, messages: Allowance::default() }
    }

    /// Accepts a message with this proof, or refuses it.
    fn check(&mut self, now: Time, proof: Proof, params: &ManagerParams) -> Result<(), Refusal> {
        if proof.cookie != self.cookie && Some(proof.cookie) != self.previous {
            return Err(Refusal::Cookie);
        }
        if proof.sequence <= self.sequence {
            return Err(Refusal::Replayed);
        }
        self.sequence = proof.sequence;
        // Only authentic messages count: no other router can use up a router's allowance in its name.
        if self.messages.take(now, params.message_rate, params.burst) { Ok(()) } else { Err(Refusal::Rate) }
    }
}

/// A router's claim to be the next hop of a flow.
#[derive(Clone, Debug)]
struct Claim {
    /// The flow's number may pass to another flow, its name does not.
    key: FlowKey,
    router: RouterId,
    /// Time at which it last reported the flow.
    last_report: Option<Time>,
}

/// The next hops beyond one port. The time of a router and of a claim is its end, unless a report extends it;
/// a router never ends before its claims.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    askers: Aged<RouterId, Asker>,
    claims: Aged<FlowId, Claim>,
    strangers: Allowance,
}

impl Side {
    fn expire(&mut self, now: Time) {
        while self.claims.pop_due(now).is_some() {}
        while self.askers.pop_due(now).is_some() {}
    }

    /// The cookie and the flows of an answer to a query about flows that leave by this port.
    pub fn query(
        &mut self,
        now: Time,
        query: &Query,
        carried: &[(FlowKey, FlowId)],
        params: &ManagerParams,
        secret: &mut Secret,
        counters: &mut Counters,
    ) -> Result<(u64, Vec<FlowKey>), Refusal> {
        self.expire(now);
        let known = self.is_known(now, query, params)?;
        if !known && !self.strangers.take(now, params.query_rate, params.burst) {
            return Err(Refusal::QueryRate);
        }
        if self.askers.get(query.router).is_none() && self.askers.len() >= params.neighbours {
            return Err(Refusal::Full);
        }
        let mut flows = Vec::new();
        let mut refused = Refusal::Claimed;
        for &(key, flow) in carried {
            match self.claim(now, key, flow, query.router, params) {
                Ok(()) => flows.push(key),
                Err(refusal) => refused = refusal,
            }
        }
        if flows.is_empty() {
            return Err(refused);
        }
        if flows.len() < carried.len() {
            counters.refused(refused);
        }
        Ok((self.cookie(now, query.router, known, params, secret), flows))
    }

    /// Whether a query provably comes from a router that was answered. A query with an outdated cookie may
    /// come from one after a pause, and is treated as a stranger's; a replayed one is refused.
    fn is_known(&mut self, now: Time, query: &Query, params: &ManagerParams) -> Result<bool, Refusal> {
        let Some((asker, proof)) = self.askers.get_mut(query.router).zip(query.proof) else {
            return Ok(false);
        };
        match asker.check(now, proof, params) {
            Ok(()) => Ok(true),
            Err(Refusal::Cookie) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Makes `router` the next hop of a flow that has none. A repeated query extends nothing, because it may
    /// be a replay.
    fn claim(
        &mut self,
        now: Time,
        key: FlowKey,
        flow: FlowId,
        router: RouterId,
        params: &ManagerParams,
    ) -> Result<(), Refusal> {
        match self.claims.get(flow) {
            Some(claim) if claim.key == key => {
                return if claim.router == router { Ok(()) } else { Err(Refusal::Claimed) };
            }
            Some(_) => {}
            None if self.claims.len() >= params.flows => return Err(Refusal::Full),
            None => {}
        }
        self.claims.insert(flow, now + params.expiry, Claim { key, router, last_report: None });
        self.askers.set_time(router, now + params.expiry);
        Ok(())
    }

    /// The cookie of a router with a claim: a new one for a new router, and at intervals for a known one.
    fn cookie(
        &mut self,
        now: Time,
        router: RouterId,
        known: bool,
        params: &ManagerParams,
        secret: &mut Secret,
    ) -> u64 {
        let Some(asker) = self.askers.get_mut(router) else {
            let cookie = secret.draw();
            self.askers.insert(router, now + params.expiry, Asker::new(cookie, now));
            return cookie;
        };
        // Strangers must not be able to invalidate the cookies of others.
        if known && now.since(asker.made) >= params.renewal {
            asker.previous = Some(asker.cookie);
            asker.cookie = secret.draw();
            asker.made = now;
        }
        asker.cookie
    }

    /// Passes on the parts of a report about flows whose next hop is its sender.
    pub fn report(
        &mut self,
        now: Time,
        port: Port,
        report: &Report,
        params: &ManagerParams,
        router: &mut dyn Forwarding,
        counters: &mut Counters,
    ) {
        self.expire(now);
        let Some(asker) = self.askers.get_mut(report.router) else {
            return counters.refused(Refusal::Stranger);
        };
        if let Err(refusal) = asker.check(now, report.proof, params) {
            return counters.refused(refusal);
        }
        if report.interval == Span::ZERO || report.interval > params.longest_interval {
            return counters.refused(Refusal::Interval);
        }
        for state in &report.flows {
            match self.accept(now, port, report.router, state, params, router) {
                Ok(flow) => {
                    counters.accepted();
                    let FlowState { arrived, departed, .. } = *state;
                    router.on_report(port, FlowReport { flow, arrived, departed, interval: report.interval });
                }
                Err(refusal) => counters.refused(refusal),
            }
        }
    }

    fn accept(
        &mut self,
        now: Time,
        port: Port,
        sender: RouterId,
        state: &FlowState,
        params: &ManagerParams,
        router: &dyn Forwarding,
    ) -> Result<FlowId, Refusal> {
        let flow = router.flow(&state.key).ok_or(Refusal::NotCarried)?;
        let claim =
            self.claims.get_mut(flow).filter(|claim| claim.key == state.key && claim.router == sender);
        let claim = claim.ok_or(Refusal::NotNextHop)?;
        if !router.carries(port, flow) {
            return Err(Refusal::NotCarried);
        }
        check(state.arrived, state.departed)?;
        if claim.last_report.is_some_and(|last| now.since(last) < params.min_interval) {
            return Err(Refusal::TooSoon);
        }
        claim.last_report = Some(now);
        self.claims.set_time(flow, now + params.expiry);
        self.askers.set_time(sender, now + params.expiry);
        Ok(flow)
    }
}
