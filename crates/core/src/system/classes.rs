//! The classes of a discipline: the tree that a table describes, and the flows of its leaves.
//!
//! A flow belongs to the leaf with the name of its customer; if customers have no names, customer n belongs
//! to the n-th leaf of the table. Other flows belong to the leaf with `others`, or are dropped. A table
//! without classes has one class for all.
//!
//! Cost: O(1) per packet; 4 bytes per flow, about 100 per class with its name, 4 per customer.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::context::LinkContext;
use crate::limit::BufferSize;
use crate::packet::{CustomerId, FlowId, MAX_CUSTOMERS};
use crate::param::{CLASS_KEY, Entry, EntryArgs, Inside, LIMIT, PARENT_KEY, Param, ParamError};
use crate::params;
use crate::units::{Bytes, Rate};

params! {
    /// Parameters that the classes of all disciplines have.
    pub struct ClassQueue {
        /// Size of the queue of this class, where it is a leaf.
        limit: Option<BufferSize> = Param::unset("that of the discipline"),
        /// Whether flows belong here whose customer has no class of its own.
        others: bool = Param::of("false", "chosen: a flow that was forgotten is seen"),
    }
}

/// The discipline inside a class.
pub(super) const DISCIPLINE: Param = Param::of(FIFO, "a queue for each class is what its paper has").discipline(Inside::Part).doc(
    "What divides the part of each class among its flows, with its defaults and the size of the queue of the class.",
);

/// One queue for all flows of a class.
pub(super) const FIFO: &str = "fifo";

/// The maximum depth of the hierarchy. Chosen: as in HTB.
const MAX_DEPTH: usize = 8;

/// A class, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Class<T> {
    /// The name.
    pub name: String,
    /// The place in the table.
    pub place: usize,
    /// The position of the parent; none for a root.
    pub parent: Option<usize>,
    /// Whether the class has no children and thus a queue.
    pub is_leaf: bool,
    /// The number of classes below it, on the longest way down.
    pub height: usize,
    /// The queue, and the flows that use it.
    pub queue: ClassQueue,
    /// The parameters of the discipline's classes.
    pub params: T,
}

/// The classes of a discipline, each after its parent.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes<T>(Vec<Class<T>>);

/// The key of a parameter of a class.
pub(super) fn key_of(name: &str, key: &str) -> String {
    format!("{}.{name}.{key}", CLASS_KEY)
}

impl<T> Classes<T> {
    /// One class that takes all flows.
    pub(super) fn single(params: T) -> Self {
        let (name, queue) = (String::new(), ClassQueue { limit: None, others: true });
        Self(vec![Class { name, place: 0, parent: None, is_leaf: true, height: 0, queue, params }])
    }

    /// The classes that `args` name, as classes of `entry`, each with the parameters that `read` returns;
    /// none if there are none. `read` refuses a value of a class by its own key.
    pub(super) fn read(
        args: &EntryArgs<'_>,
        entry: &'static Entry,
        read: impl Fn(&EntryArgs<'_>) -> Result<T, ParamError>,
    ) -> Result<Option<Self>, ParamError> {
        let named: Vec<_> = args.classes(entry).collect();
        if named.is_empty() {
            return Ok(None);
        }
        if named.len() > MAX_CUSTOMERS {
            let message = format!("{} classes; at most {MAX_CUSTOMERS} are supported", named.len());
            return Err(ParamError::new(CLASS_KEY, message));
        }
        let order = in_order(&named.iter().map(|class| (class.name, class.parent)).collect::<Vec<_>>())?;
        let mut place = vec![0; named.len()];
        let mut classes: Vec<Class<T>> = Vec::with_capacity(named.len());
        for &(at, parent) in &order {
            let class = &named[at];
            place[at] = classes.len();
            let params = read(&class.args)
                .map_err(|error| ParamError::new(&key_of(class.name, &error.key), error.message))?;
            classes.push(Class {
                name: class.name.to_owned(),
                place: at,
                parent: parent.map(|parent| place[parent]),
                is_leaf: true,
                height: 0,
                queue: ClassQueue::from_args(&class.args)?,
                params,
            });
        }
        for at in (0..classes.len()).rev() {
            if let Some(parent) = classes[at].parent {
                classes[parent].is_leaf = false;
                classes[parent].height = classes[parent].height.max(classes[at].height + 1);
            }
        }
        Self(classes).checked().map(Some)
    }

    fn checked(self) -> Result<Self, ParamError> {
        if let Some(deep) = self.0.iter().find(|class| class.height >= MAX_DEPTH) {
            let message = format!("more than {MAX_DEPTH} classes stand above each other; leave some out");
            return Err(ParamError::new(&key_of(&deep.name, CLASS_KEY), message));
        }
        let refuse =
            |class: &Class<T>, message| Err(ParamError::new(&key_of(&class.name, "others"), message));
        let mut takers = self.0.iter().filter(|class| class.queue.others);
        if let Some(inner) = takers.clone().find(|class| !class.is_leaf) {
            let message = "flows belong to classes without children; let one of these take the others";
            return refuse(inner, message.to_owned());
        }
        if let (Some(first), Some(second)) = (takers.next(), takers.next()) {
            return refuse(second, format!("class `{}` takes the others already", first.name));
        }
        Ok(self)
    }

    /// All classes, each after its parent.
    #[must_use]
    pub fn all(&self) -> &[Class<T>] {
        &self.0
    }

    /// The sizes in bytes that classes set for their queues, for a link of `rate`.
    pub(super) fn byte_limits(&self, rate: Rate) -> Vec<ByteLimit<'_>> {
        let of = |class: &Class<T>| class.queue.limit?.at(rate).bytes().filter(|_| class.is_leaf);
        let limit = |class| Some((class, of(class)?));
        let limits = self.0.iter().filter_map(limit);
        limits
            .map(|(class, size)| ByteLimit {
                key: LIMIT.name,
                size,
                class: Some((&class.name, class.queue.others)),
            })
            .collect()
    }

    /// The names that flows can be assigned to.
    pub(super) fn names(&self) -> ClassNames<'_> {
        let leaves = self.0.iter().filter(|class| class.is_leaf);
        ClassNames {
            leaves: leaves.map(|class| class.name.as_str()).collect(),
            others: self.0.iter().find(|class| class.queue.others).map(|class| class.name.as_str()),
        }
    }
}

/// The size of a buffer in bytes, set or derived from the link.
#[derive(Clone, Copy, Debug)]
pub struct ByteLimit<'a> {
    /// The key that sets it.
    pub key: &'static str,
    /// The maximum number of bytes that wait.
    pub size: Bytes,
    /// The class that has the queue, by name, and whether it takes flows without a class; none for a whole
    /// discipline.
    pub class: Option<(&'a str, bool)>,
}

/// The leaves of a classful discipline, for the assignment of flows.
#[derive(Clone, Debug)]
pub struct ClassNames<'a> {
    /// The names. The only leaf of a table without classes has an empty name.
    pub leaves: Vec<&'a str>,
    /// The leaf that takes flows without a class of their own, if there is one.
    pub others: Option<&'a str>,
}

/// Positions in an order with parents first, each with its parent.
fn in_order(classes: &[(&str, Option<&str>)]) -> Result<Vec<(usize, Option<usize>)>, ParamError> {
    let by_name: alloc::collections::BTreeMap<&str, usize> =
        classes.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let mut parents = Vec::with_capacity(classes.len());
    for (name, parent) in classes {
        parents.push(match parent {
            None => None,
            Some(parent) => Some(*by_name.get(parent).ok_or_else(|| {
                let known = classes.iter().map(|(name, _)| *name).filter(|other| other != name);
                let known: Vec<_> = known.take(20).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let message = format!("there is no class `{parent}` (others: {known})");
                ParamError::new(&key_of(name, PARENT_KEY), message)
            })?),
        });
    }
    let mut children = vec![Vec::new(); classes.len()];
    let mut order: Vec<(usize, Option<usize>)> = Vec::with_capacity(classes.len());
    for (at, parent) in parents.iter().enumerate() {
        match parent {
            Some(parent) => children[*parent].push(at),
            None => order.push((at, None)),
        }
    }
    let mut next = 0;
    while let Some(&(at, _)) = order.get(next) {
        order.extend(children[at].iter().map(|&child| (child, Some(at))));
        next += 1;
    }
    if order.len() == classes.len() {
        return Ok(order);
    }
    // A class that no root leads to is on a cycle or below one: the way up from it reaches the cycle.
    let mut reached = vec![false; classes.len()];
    order.iter().for_each(|(at, _)| reached[*at] = true);
    let mut at = reached.iter().position(|reached| !reached).unwrap_or(0);
    for _ in 0..classes.len() {
        at = parents[at].unwrap_or(at);
    }
    let (first, mut names) = (at, vec![classes[at].0]);
    while let Some(parent) = parents[at].filter(|parent| *parent != first) {
        at = parent;
        names.push(classes[at].0);
    }
    let message = if names.len() == 1 {
        "it is its own parent; leave `parent` out, or name another class".to_owned()
    } else {
        format!(
            "its parents go in a circle: {}, {}; one of them must have no parent",
            names.join(", "),
            names[0]
        )
    };
    Err(ParamError::new(&key_of(classes[first].0, PARENT_KEY), message))
}

/// No class.
const NONE: u32 = u32::MAX;

/// A leaf: its position, its place in the table and its name.
struct Named<'a> {
    at: u32,
    place: usize,
    name: &'a str,
}

/// The leaf of each flow.
#[derive(Clone, Debug)]
pub(super) struct Members {
    of_customer: Vec<u32>,
    of_flow: Vec<CustomerId>,
    others: u32,
}

impl Members {
    /// Assigns flows as `link` says, by the names of customers or their numbers.
    pub fn new<T>(classes: &Classes<T>, link: &LinkContext<'_>) -> Self {
        let leaves = classes.0.iter().enumerate().filter(|(_, class)| class.is_leaf);
        let leaves = leaves.map(|(at, class)| Named { at: at as u32, place: class.place, name: &class.name });
        let others = classes.0.iter().position(|class| class.queue.others).map_or(NONE, |at| at as u32);
        Self::of(leaves.collect(), others, link)
    }

    fn of(mut leaves: Vec<Named<'_>>, others: u32, link: &LinkContext<'_>) -> Self {
        let of_customer = if link.customers.names.is_empty() {
            leaves.sort_unstable_by_key(|leaf| leaf.place);
            [others].into_iter().chain(leaves.iter().map(|leaf| leaf.at)).collect()
        } else {
            leaves.sort_unstable_by_key(|leaf| leaf.name);
            let own = |name: &String| {
                let found = leaves.binary_search_by_key(&name.as_str(), |leaf| leaf.name);
                found.map_or(others, |at| leaves[at].at)
            };
            [others].into_iter().chain(link.customers.names.iter().skip(1).map(own)).collect()
        };
        Self { of_customer, of_flow: link.customers.of_flows.to_vec(), others }
    }

    /// The position of the flow's class; none if it has none.
    #[inline]
    pub fn class_of(&self, flow: FlowId) -> Option<usize> {
        let customer = self.of_flow.get(flow.slot()).map_or(0, |customer| customer.0 as usize);
        let class = self.of_customer.get(customer).copied().unwrap_or(self.others);
        (class != NONE).then_some(class as usize)
    }

    /// Sets the customer of the flow from its next packet on.
    pub fn set_customer(&mut self, flow: FlowId, customer: CustomerId) {
        if flow.slot() >= self.of_flow.len() {
            self.of_flow.resize(flow.slot() + 1, CustomerId::OTHERS);
        }
        self.of_flow[flow.slot()] = customer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn order(classes: &[(&str, Option<&str>)]) -> Result<Vec<usize>, String> {
        let order = in_order(classes).map_err(|error| error.to_string())?;
        Ok(order.into_iter().map(|(at, _)| at).collect())
    }

    #[test]
    fn parents_come_first_and_a_circle_is_named() {
        let classes = [("leaf", Some("inner")), ("inner", Some("root")), ("root", None), ("other", None)];
        assert_eq!(order(&classes), Ok(vec![2, 3, 1, 0]));
        let refused = |classes: &[(&str, Option<&str>)]| order(classes).unwrap_err();
        let circle = refused(&[("a", None), ("x", Some("b")), ("b", Some("c")), ("c", Some("b"))]);
        assert!(circle.starts_with("`class.c.parent`: its parents go in a circle: c, b, c;"), "{circle}");
        assert!(refused(&[("a", Some("a"))]).contains("its own parent"));
        let unknown = refused(&[("a", Some("z")), ("b", None)]);
        assert_eq!(unknown, "`class.a.parent`: there is no class `z` (others: b)");
    }
}
