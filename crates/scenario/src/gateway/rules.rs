//! The list `rule`: conditions, and parameters of the flows that match.

use crate::gateway::classifier::{Prefix, Rule};
use apportion_core::packet::FlowClass;
use apportion_core::system::Catalog;
use apportion_core::units::{Rate, Weight};

use super::tables::{REAL_RATE, RULE};
use super::{Direction, Grouping, RuleConfig, Treatment, Written, forms};
use crate::keys::{Fields, walk};
use crate::problem::{Problems, TextError};
use crate::selection::Part;
use crate::text::{self, Item, Value};
use crate::{customers, flows, marking};

/// Protocols whose packets have ports: TCP, UDP, DCCP, SCTP and UDP-Lite.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

const TCP: u8 = 6;

/// Keys that limit sums of guarantees.
const LIMITS: [&str; 2] = ["guarantee_limit", PER_HOST];
const PER_HOST: &str = "guarantee_limit_per_host";

/// A rule and its place.
pub(super) struct Placed<'a> {
    pub config: RuleConfig,
    pub fields: Fields<'a>,
}

/// The rules that were not refused.
pub(super) struct Rules<'a> {
    pub all: Vec<Placed<'a>>,
    /// Whether these are all rules.
    pub complete: bool,
}

/// Reads all rules.
pub(super) fn read<'a>(root: &Fields<'a>, problems: &mut Problems) -> Rules<'a> {
    let items = match root.item("rule").map(|item| &item.value) {
        None => &[][..],
        Some(Value::List(items)) => items,
        Some(_) => {
            root.refuse("rule", "write each rule as a table [[rule]]", problems);
            return Rules { all: Vec::new(), complete: false };
        }
    };
    let one = |(number, item): (usize, &'a Item)| {
        let fields = walk(item, &format!("rule[{number}]"), RULE, false, problems)?;
        let config = rule(number, &fields, problems)?;
        Some(Placed { config, fields })
    };
    let all: Vec<Placed<'a>> = (1..).zip(items).filter_map(one).collect();
    Rules { complete: all.len() == items.len(), all }
}

/// `None` only if something was refused.
fn rule(number: usize, fields: &Fields<'_>, problems: &mut Problems) -> Option<RuleConfig> {
    let direction = fields.text("direction");
    let direction = Direction::BOTH.into_iter().find(|known| direction == Some(known.name()));
    let when = conditions(fields, problems);
    let tcp = when.as_ref().is_none_or(|when| when.protocol.is_none_or(|protocol| protocol == TCP));
    let gives = treatment(fields, tcp, problems);
    Some(RuleConfig {
        name: fields.text("name").map_or_else(|| format!("rule {number}"), ToOwned::to_owned),
        direction,
        when: when?,
        gives: gives?,
    })
}

/// Reads a rule whose flows are real-rate from text: an inline table with conditions of a `[[rule]]` and, if flows have a
/// target of their own, `target` or `target_delay`.
///
/// ```
/// let rule = apportion_scenario::gateway::real_rate_rule("{ protocol = \"udp\", to_port = 5004 }");
/// assert!(rule.is_ok());
/// ```
///
/// # Errors
/// All problems of the text.
pub fn real_rate_rule(text: &str) -> Result<RuleConfig, TextError> {
    let text = text.trim();
    let refuse = |why: &str| {
        let example = "{ protocol = \"udp\", to_port = 5004 }";
        TextError::whole(format!("`{text}` is {why}; write for example {example}"))
    };
    if !text.starts_with('{') {
        return Err(refuse("not a table"));
    }
    let item = text::parse_value(text).map_err(|why| refuse(&why))?;
    let mut problems = Problems::default();
    let rule = walk(&item, "", REAL_RATE, false, &mut problems).and_then(|fields| {
        let direction = fields.text("direction");
        let direction = Direction::BOTH.into_iter().find(|known| direction == Some(known.name()));
        let when = conditions(&fields, &mut problems);
        let target = flows::target(&fields, 1, &mut problems);
        let gives = Treatment { class: FlowClass::RealRate, target, ..Treatment::default() };
        Some(RuleConfig { name: text.to_owned(), direction, when: when?, gives })
    });
    rule.filter(|_| problems.is_empty()).ok_or_else(|| TextError::keys(Some(text), problems))
}

fn conditions(fields: &Fields<'_>, problems: &mut Problems) -> Option<Rule> {
    let [from, to] = ["from", "to"]
        .map(|key| fields.form(key, |text| Prefix::read(text, key).map_err(|error| error.message), problems));
    let [from_port, to_port] = ["from_port", "to_port"].map(|key| fields.form(key, forms::ports, problems));
    let protocol = fields.form("protocol", forms::protocol, problems);
    let dscp = fields.form("dscp", forms::codepoint, problems);
    let rule = Rule { protocol, from, to, from_port, to_port, dscp };
    // A refused condition would match every packet, so the checks below would only report consequences.
    let read = [from.is_some(), to.is_some(), rule.from_port.is_some(), rule.to_port.is_some()];
    let keys = ["from", "to", "from_port", "to_port", "protocol", "dscp"];
    let read = read.into_iter().chain([protocol.is_some(), dscp.is_some()]);
    if keys.into_iter().zip(read).any(|(key, read)| fields.item(key).is_some() != read) {
        return None;
    }
    let mut matches = true;
    let mut refuse = |key: &str, message: String| {
        fields.refuse(key, message, problems);
        matches = false;
    };
    if let Err(error) = rule.check() {
        refuse(&error.key, error.message);
    }
    if let (Some(from), Some(to)) = (from, to)
        && from.is_ipv4() != to.is_ipv4()
    {
        let message = format!(
            "no packet goes from {from} to {to}: one is IPv4, the other IPv6; use one version for both"
        );
        refuse("to", message);
    }
    if let Some(protocol) = protocol.filter(|protocol| !WITH_PORTS.contains(protocol))
        && let Some((key, _)) = [("from_port", &rule.from_port), ("to_port", &rule.to_port)]
            .into_iter()
            .find(|(_, ports)| ports.is_some())
    {
        let name = forms::protocol_text(protocol);
        let name = name.trim_matches('"');
        refuse(key, format!("packets of protocol {name} have no ports; leave `{key}` or `protocol` out"));
    }
    matches.then_some(rule)
}

/// Reads the parameters; `tcp`: the flows may have acknowledgements.
fn treatment(fields: &Fields<'_>, tcp: bool, problems: &mut Problems) -> Option<Treatment> {
    let weight = fields.get("weight", 1, problems).and_then(Weight::new);
    let guarantee = fields.get("guarantee", 1, problems);
    let grouping = match fields.item("flows") {
        Some(_) => fields.form("flows", forms::grouping, problems)?,
        None => Grouping::default(),
    };
    let [guarantee_limit, guarantee_limit_per_host] = LIMITS.map(|key| {
        let limit = fields.get(key, 1, problems)?;
        check_limit(fields, key, (limit, guarantee?), grouping, problems);
        Some(limit)
    });
    let [tickets, ack_tickets] = ["tickets", "ack_tickets"].map(|key| fields.tickets(key, 1, problems));
    let implied = Item::text(Part::Marker.example(), fields.place);
    let mark = marking::of_flow(&Catalog::default(), fields, tcp, true, problems).map(|params| {
        let item = fields.item("mark").unwrap_or(&implied);
        Written::new(&Catalog::default(), Part::Marker, item, (*params).clone())
    });
    let customer = fields.text("customer").filter(|_| customers::check(fields, problems).is_some());
    let class = fields.text("class").map(flows::class).unwrap_or_default();
    for key in ["target", "target_delay"] {
        if class == FlowClass::Greedy && fields.item(key).is_some() {
            let message = format!(
                "greedy flows share what is left and have no target; write class = \"real_rate\", or leave `{key}` out"
            );
            fields.refuse(key, message, problems);
        }
    }
    Some(Treatment {
        class,
        target: flows::target(fields, 1, problems),
        weight: weight?,
        guarantee: guarantee?,
        guarantee_limit,
        guarantee_limit_per_host,
        label_limit: fields.get("label_limit", 1, problems),
        tickets,
        ack_tickets,
        mark,
        rtt: fields.get("rtt", 1, problems),
        customer: customer.map(ToOwned::to_owned),
        flows: grouping,
    })
}

/// Refuses a limit of guarantees under which no flow could have one, or that limits none.
fn check_limit(
    fields: &Fields<'_>,
    key: &str,
    (limit, guarantee): (Rate, Rate),
    grouping: Grouping,
    problems: &mut Problems,
) {
    if guarantee == Rate::ZERO {
        let message = format!(
            "the rule guarantees nothing; write for example guarantee = \"1Mbit\", or leave `{key}` out"
        );
        fields.refuse(key, message, problems);
    } else if grouping == Grouping::One {
        let message = format!("the flows of this rule are one and share one guarantee; leave `{key}` out");
        fields.refuse(key, message, problems);
    } else if key == PER_HOST && grouping != Grouping::Each {
        let message = format!(
            "each address or network is one flow of this rule and has one guarantee; leave `{key}` out, or write \
             `guarantee_limit` for all of them"
        );
        fields.refuse(key, message, problems);
    } else if limit < guarantee {
        let message = format!("no flow fits: each is guaranteed {guarantee}; write at least \"{guarantee}\"");
        fields.refuse(key, message, problems);
    }
}
