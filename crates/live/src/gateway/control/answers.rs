//! Answers of the gateway about itself.

use std::sync::Arc;

use apportion_core::units::{Span, Time};
use serde_json::json;

use super::Control;
use crate::gateway::history::SHOWN;
use crate::gateway::metrics::Metrics;
use crate::gateway::page::PAGE;
use crate::gateway::snapshot::Snapshot;
use crate::http::Answer;

impl Control {
    pub(super) fn answer(&mut self, now: Time, method: &str, target: &str) -> Answer {
        let Some(snapshot) = self.snapshot() else { return starting() };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        match (method, path) {
            ("GET", "/metrics") => Metrics::answer(snapshot.prometheus(&self.reloads, self.silence(now))),
            ("GET", "/") => PAGE.answer(),
            ("GET", "/stats.json") => Answer::json(self.stats(now, &snapshot)),
            ("GET", "/history") => self.answer_history(query),
            ("GET", "/control") => self.answer_control(),
            ("GET", "/healthz") => match self.obstacles(now, &snapshot) {
                obstacles if obstacles.is_empty() => Answer::text(200, "frames pass\n"),
                obstacles => Answer::text(503, obstacles),
            },
            ("GET", _) => {
                Answer::text(404, "there are /, /metrics, /stats.json, /history, /control and /healthz\n")
            }
            _ => {
                Answer::text(405, "only GET is answered here, and POST /change at the address of the page\n")
            }
        }
    }

    /// The data of the page, encoded once for all clients between two snapshots, and once a second while
    /// there is no new one.
    fn stats(&mut self, now: Time, snapshot: &Arc<Snapshot>) -> String {
        let silence = self.silence(now);
        let age = silence.as_nanos() / Span::from_secs(1).as_nanos();
        if let Some((of, aged, text)) = &self.written
            && Arc::ptr_eq(of, snapshot)
            && *aged == age
        {
            return text.clone();
        }
        let mut all = snapshot.json(&self.reloads, silence);
        all["obstacles"] = json!(self.obstacles(now, snapshot).lines().collect::<Vec<_>>());
        all["traffic"] = self.history.latest();
        all["events"] = self.history.events(SHOWN);
        all["control"] = json!({ "on": self.token.is_some(), "revision": self.revision(&snapshot.config) });
        let mut text = serde_json::to_string_pretty(&all).unwrap_or_default();
        text.push('\n');
        self.written = Some((Arc::clone(snapshot), age, text.clone()));
        text
    }

    /// The last hour of both directions, or that of the flow or customer that `query` names.
    fn answer_history(&self, query: &str) -> Answer {
        if query.is_empty() {
            return Answer::json(self.history.json().to_string());
        }
        let (kind, number) = query.split_once('=').unwrap_or((query, ""));
        let found = match (kind, number.parse()) {
            ("flow", Ok(number)) => Some(self.history.flow(number)),
            ("customer", Ok(number)) => Some(self.history.customer(number)),
            _ => None,
        };
        match found {
            Some(Some(hour)) => Answer::json(hour.to_string()),
            Some(None) => {
                Answer::text(404, format!("this {kind} is not in the last hour of the largest ones\n"))
            }
            None => Answer::text(
                400,
                "write /history, or /history?flow= or /history?customer= and the number of one in /stats.json\n",
            ),
        }
    }
}

/// The answer before the first snapshot.
pub(super) fn starting() -> Answer {
    Answer::text(500, "the gateway is starting; try again\n")
}
