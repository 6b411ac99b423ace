//! What is allowed in a gateway's configuration, and most likely not meant.

use apportion_core::system::DisciplineKind;
use apportion_core::system::classes::ByteLimit;
use apportion_core::units::{Bytes, Weight};

use super::{Direction, GatewayConfig};
use crate::plans::{Lowered, Plans};

/// The largest packet of Ethernet, without its header.
const MTU: Bytes = Bytes::new(1_500);
/// Most names in a warning.
const NAMED: usize = 3;

impl GatewayConfig {
    /// One line each, with the key and the mend; none if there is nothing to say.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let of = |way| [self.ignored_weights(way), self.too_small(way)];
        let mut all: Vec<_> = Direction::BOTH.into_iter().flat_map(of).flatten().collect();
        let Some(plans) = &self.nodes else { return all };
        let planned = Direction::BOTH.into_iter().zip(self.classes_of);
        let planned: Vec<_> = planned.filter_map(|(way, of)| Some((way, of?))).collect();
        let totals = planned.iter().filter_map(|(way, of)| self.above_rate(plans, *way, *of));
        let lowered = planned.iter().filter_map(|(_, of)| lowered(plans, *of));
        all.extend(totals.chain(lowered));
        all
    }

    /// Weights of rules in the direction `way`, whose `cake` has none.
    fn ignored_weights(&self, way: Direction) -> Option<String> {
        let queue = &self.direction(way).queue.params;
        let rule = self.rules.iter().find(|rule| rule.is_for(way) && rule.gives.weight != Weight::ONE)?;
        matches!(queue.kind, DisciplineKind::Cake(_)).then(|| {
            format!(
                "{}.queue: `cake` ignores weights, that of rule `{}` too; write a queue that divides by them, such as \"fq_codel\", or leave \
                 them out",
                way.name(),
                rule.name
            )
        })
    }

    /// A buffer in the direction `way` that has no room for a full packet of Ethernet.
    fn too_small(&self, way: Direction) -> Option<String> {
        let direction = self.direction(way);
        let packet = MTU + direction.overhead;
        let limits = direction.queue.params.byte_limits(direction.least_rate());
        let ByteLimit { key, size, .. } = limits.into_iter().find(|limit| limit.size < packet)?;
        Some(format!(
            "{}.queue.{key}: {size} is less than a full packet of Ethernet, {packet} with the overhead: it drops every one; write \
             \"{packet}\" or more",
            way.name()
        ))
    }

    /// Plans that are assured more than the direction `way` carries, whose classes have the rates of `of`.
    fn above_rate(&self, plans: &Plans, way: Direction, of: Direction) -> Option<String> {
        let (direction, total) = (self.direction(way), plans.total(of));
        let rate = direction.least_rate();
        let key = if direction.auto.is_some() { "rate_min" } else { "rate" };
        (total > rate).then(|| {
            format!(
                "{}.{key}: {rate} is less than the plans without a parent have together, {total}, so that what plans assure is not \
                 kept while all want more; raise it, or lower `{}` of these plans",
                way.name(),
                of.name()
            )
        })
    }
}

/// Plans whose minimum is below their part.
fn lowered(plans: &Plans, of: Direction) -> Option<String> {
    let all = plans.lowered(of);
    let named: Vec<_> = all
        .iter()
        .take(NAMED)
        .map(|Lowered { name, least, without }| format!("`{name}` ({least} in place of {without})"))
        .collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| {
        format!(
            "plans: {0}_min is below the part in proportion to `{0}`, and lowers what is assured to {1}{more}; leave it empty where the \
             part is to count, or raise it",
            of.name(),
            named.join(", ")
        )
    })
}
