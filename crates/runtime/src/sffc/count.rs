//! Counts of a Manager.

use super::message::{DecodeError, Message};

/// Why a valid message, or its part about a flow, was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The message names this router as its sender.
    Own,
    /// An answer to no query of this router.
    Unasked,
    /// The sender was not answered on this side.
    Stranger,
    /// The cookie is not the one of the sender's answer.
    Cookie,
    /// The number was used before.
    Replayed,
    /// The interval is zero or very long.
    Interval,
    /// More departed than arrived, or nothing or too much arrived.
    Inflated,
    /// The flow's next hop is another router, or none.
    NotNextHop,
    /// The flow does not leave by this port.
    NotCarried,
    /// The report comes too soon after the flow's last one.
    TooSoon,
    /// Too many messages from a router.
    Rate,
    /// Too many queries from strangers.
    QueryRate,
    /// The query is about a flow that has a next hop.
    Claimed,
    /// There is no room for the query.
    Full,
    /// There is no room for a message to send.
    Outbox,
}

const REFUSALS: [(Refusal, &str); 15] = [
    (Refusal::Own, "refused_own"),
    (Refusal::Unasked, "refused_unasked"),
    (Refusal::Stranger, "refused_stranger"),
    (Refusal::Cookie, "refused_cookie"),
    (Refusal::Replayed, "refused_replayed"),
    (Refusal::Interval, "refused_interval"),
    (Refusal::Inflated, "refused_inflated"),
    (Refusal::NotNextHop, "refused_not_next_hop"),
    (Refusal::NotCarried, "refused_not_carried"),
    (Refusal::TooSoon, "refused_too_soon"),
    (Refusal::Rate, "refused_rate"),
    (Refusal::QueryRate, "refused_query_rate"),
    (Refusal::Claimed, "refused_claimed"),
    (Refusal::Full, "refused_full"),
    (Refusal::Outbox, "unsent_outbox_full"),
];

#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    queries: u64,
    answers: u64,
    reports: u64,
    /// Reports of single flows that were accepted; `heard` in results.
    accepted: u64,
    /// Searches that found no router.
    not_found: u64,
    undecoded: [u64; DecodeError::ALL.len()],
    refused: [u64; REFUSALS.len()],
}

impl Counters {
    pub fn sent(&mut self, message: &Message) {
        *match message {
            Message::Query(_) => &mut self.queries,
            Message::Answer(_) => &mut self.answers,
            Message::Report(_) => &mut self.reports,
        } += 1;
    }

    pub fn accepted(&mut self) {
        self.accepted += 1;
    }

    pub fn not_found(&mut self) {
        self.not_found += 1;
    }

    pub fn undecoded(&mut self, error: DecodeError) {
        self.undecoded[error as usize] += 1;
    }

    pub fn refused(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }

    /// Reports the counts of messages sent and accepted, and those of refusals that are not zero.
    pub fn show(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("queries_sent", self.queries as f64);
        show("answers_sent", self.answers as f64);
        show("reports_sent", self.reports as f64);
        show("heard", self.accepted as f64);
        show("searches_without_answer", self.not_found as f64);
        let undecoded = DecodeError::ALL.map(|error| (error.name(), self.undecoded[error as usize]));
        let refused = REFUSALS.map(|(refusal, name)| (name, self.refused[refusal as usize]));
        for (name, count) in undecoded.into_iter().chain(refused).filter(|&(_, count)| count > 0) {
            show(name, count as f64);
        }
    }
}
