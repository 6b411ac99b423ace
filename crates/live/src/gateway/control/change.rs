//! Changes from the page: the running configuration with other weights, rates or queues.
//!
//! `POST /change` takes `{ "revision": …, "set": { "up.rate": "20Mbit" } }` and answers with the changes that
//! it would make and a hash. The same request with that hash as `confirm` applies them as a reload does: as
//! text that is loaded and checked, as a difference, and as an order to the other thread. No state is kept
//! between the two requests. `revision` names the configuration that the client has seen, so that two clients
//! do not undo each other's changes unseen. No file is written.
//!
//! A page of another site cannot send it: the token is in a field and the body is JSON, so that a browser
//! asks first (the Fetch standard, section 3.3.5, CORS-preflight fetch), by OPTIONS, which is refused here.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use apportion_core::units::Time;
use apportion_scenario::gateway::{Difference, GatewayConfig};
use apportion_scenario::unknown_key;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::answers::starting;
use super::token::Denied;
use super::{Control, Order, Ordered, Origin, TO_APPLY, Takeover, read_plans};
use crate::http::{Answer, Request};

/// The keys of a body.
const KEYS: [&str; 3] = ["revision", "set", "confirm"];
/// An example of a body.
const EXAMPLE: &str =
    "write for example {\"revision\": \"that of /control\", \"set\": {\"up.rate\": \"20Mbit\"}}";

/// The body of a request.
#[derive(Debug)]
struct Change {
    revision: String,
    set: Map<String, Value>,
    confirm: Option<String>,
}

impl Change {
    /// Parses a body.
    ///
    /// # Errors
    /// The problem with the change, and how to mend it.
    fn read(body: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|why| format!("the body is not JSON: {why}; {EXAMPLE}\n"))?;
        let Value::Object(mut entries) = value else {
            return Err(format!("the body is no JSON object; {EXAMPLE}\n"));
        };
        if let Some(key) = entries.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("{key}: {}\n", unknown_key("key", key, KEYS.iter().copied())));
        }
        let mut text = |key: &str| match entries.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{key}: it is no string; write the one of the last answer\n")),
        };
        let (revision, confirm) = (text("revision")?, text("confirm")?);
        let revision = revision.ok_or_else(|| {
            "revision: missing; write the one of /control, so that nobody's change is undone unseen\n"
                .to_owned()
        })?;
        match entries.remove("set") {
            Some(Value::Object(set)) => Ok(Self { revision, set, confirm }),
            Some(_) => Err(format!("set: it is no object; {EXAMPLE}\n")),
            None => Err(format!("set: missing; {EXAMPLE}\n")),
        }
    }
}

/// The revision of a configuration: a hash of its text and of its file of plans.
pub(super) fn revision(config: &GatewayConfig) -> String {
    hash(&[&config.canonical(), &config.plan_text()])
}

fn hash(texts: &[&str]) -> String {
    let mut all = Sha256::new();
    for text in texts {
        all.update(text);
        all.update([0]);
    }
    all.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl Control {
    /// The settings that can change, with their values.
    pub(super) fn answer_control(&mut self) -> Answer {
        if self.token.is_none() {
            return off();
        }
        let Some(snapshot) = self.snapshot() else { return starting() };
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| json!(text));
        let settable = snapshot.config.settable();
        let set: Map<_, _> = settable.iter().map(|(key, text)| (key.clone(), value(text))).collect();
        Answer::json(json!({ "revision": self.revision(&snapshot.config), "set": set }).to_string())
    }

    /// The answer to `POST /change`; none if it is not known yet.
    pub(super) fn answer_change(&mut self, now: Time, request: &Request<'_>) -> Option<Answer> {
        match self.allow(now, request).and_then(|()| self.change(now, request.body)) {
            Ok(answer) => answer,
            Err(refused) => Some(refused),
        }
    }

    /// Checks that this client may change settings.
    ///
    /// # Errors
    /// The answer that refuses it.
    fn allow(&mut self, now: Time, request: &Request<'_>) -> Result<(), Answer> {
        let Some(token) = &self.token else { return Err(off()) };
        // Browsers announce it (Fetch Metadata Request Headers, section 2.4).
        if request.field("sec-fetch-site").is_some_and(|site| !["same-origin", "none"].contains(&site)) {
            return Err(Answer::text(
                403,
                "a page of another site asks for this change; use the page of the gateway\n",
            ));
        }
        self.guard.check(now, token, request.field("authorization")).map_err(|denied| match denied {
            Denied::Absent => {
                Answer::text(401, "a change needs the token: send it as Authorization: Bearer TOKEN\n")
            }
            Denied::Wrong => {
                tracing::warn!("a change with a wrong token is refused");
                Answer::text(401, "this is not the token; it is in the file that control_token names\n")
            }
            Denied::TooMany => Answer::text(
                429,
                "this is not the token, and too many others were wrong; it is in the file that control_token names\n",
            ),
        })?;
        let kind = request.field("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
        if kind.trim().eq_ignore_ascii_case("application/json") {
            Ok(())
        } else {
            Err(Answer::text(415, "a change is JSON; send it with Content-Type: application/json\n"))
        }
    }

    /// Answers with the changes that would be made, or orders them; then the answer is not known yet.
    ///
    /// # Errors
    /// The answer that refuses the change.
    fn change(&mut self, now: Time, body: &[u8]) -> Result<Option<Answer>, Answer> {
        let change = Change::read(body).map_err(|why| Answer::text(400, why))?;
        let config = self.snapshot().ok_or_else(starting)?.config.clone();
        let own = self.revision(&config);
        if change.revision != own {
            let message = format!(
                "revision: the configuration has changed since, to {own}; look at /control again, and make the change against that\n"
            );
            return Err(Answer::text(409, message));
        }
        let (new, difference) = self.edit(&config, &change.set)?;
        let confirm = hash(&[&own, &new.canonical()]);
        let changes = difference.to_string();
        let Some(said) = change.confirm else {
            let confirm = if changes.is_empty() { Value::Null } else { json!(confirm) };
            let changes: Vec<_> = changes.lines().collect();
            let answer = json!({ "applied": false, "revision": own, "changes": changes, "confirm": confirm });
            return Ok(Some(Answer::json(answer.to_string())));
        };
        if said != confirm {
            let message = "confirm: it belongs to another change; ask for this one without `confirm` first, and look at what changes\n";
            return Err(Answer::text(409, message));
        }
        if let Some(busy) = self.busy() {
            return Err(Answer::text(409, busy));
        }
        let count = difference.changes.len();
        let (reply, answer) = sync_channel(1);
        self.send(Order::Apply(Box::new(new), difference, reply));
        let (deadline, takeover) = (now + TO_APPLY, Takeover::default());
        self.ordered = Some(Ordered { answer, changes, count, takeover, origin: Origin::Page, deadline });
        Ok(None)
    }

    /// The configuration with these keys set, and its difference.
    ///
    /// # Errors
    /// The answer if the new configuration is wrong.
    fn edit(
        &self,
        config: &Arc<GatewayConfig>,
        set: &Map<String, Value>,
    ) -> Result<(GatewayConfig, Difference), Answer> {
        let lines = |all: Vec<String>| all.into_iter().map(|line| line + "\n").collect::<String>();
        let text = config.edited(set).map_err(|wrong| Answer::text(400, lines(wrong)))?;
        let new =
            GatewayConfig::load_with(&self.catalog, &text, &self.path, &read_plans).map_err(|problems| {
                // Line numbers refer to a text that is not shown.
                let said = problems
                    .iter()
                    .map(|problem| format!("{}: {}", config.path_by_name(&problem.path), problem.message));
                Answer::text(400, lines(said.collect()))
            })?;
        if !new.has_plans_of(config) {
            let message = "plans: the file of plans is another one than that which runs; reload first\n";
            return Err(Answer::text(409, message));
        }
        let difference = config
            .difference(&new)
            .map_err(|pinned| Answer::text(409, lines(pinned.iter().map(ToString::to_string).collect())))?;
        Ok((new, difference))
    }

    /// The revision of this configuration, cached: a gateway keeps one for long, and the hash of a thousand
    /// customers takes a millisecond.
    pub(super) fn revision(&mut self, config: &Arc<GatewayConfig>) -> String {
        match &self.revision {
            Some((known, revision)) if Arc::ptr_eq(known, config) => revision.clone(),
            _ => {
                let revision = revision(config);
                self.revision = Some((Arc::clone(config), revision.clone()));
                revision
            }
        }
    }

    /// The answer once a change was applied or refused.
    pub(super) fn changed(&mut self, result: &Result<String, String>) -> Answer {
        match (result, self.snapshot()) {
            (Ok(changes), Some(snapshot)) => {
                let revision = self.revision(&snapshot.config);
                let changes: Vec<_> = changes.lines().collect();
                Answer::json(json!({ "applied": true, "revision": revision, "changes": changes }).to_string())
            }
            (Ok(_), None) => starting(),
            (Err(problems), _) => Answer::text(409, problems.as_str()),
        }
    }
}

fn off() -> Answer {
    let message = "control is off: this gateway is not changed from here; write control = true and control_token = \"FILE\" in its configuration\n";
    Answer::text(404, message)
}
