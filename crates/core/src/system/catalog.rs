//! The catalogue: every discipline, marker and exchange as data.
//!
//! Scenario files, `list`, `explain` and the JSON schema read it; nothing repeats it. A [`Catalog`] is a
//! value that loaders take as an argument: the entries of this project, and those that a program
//! [registers](Catalog::register).
//!
//! A loader turns a table such as `{ kind = "drr", drop = "red", limit = "110p", quantum = "1500B" }` into a
//! discipline in three steps: [`Catalog::select`] finds the entries, [`Selection::set`] checks and reads each
//! remaining key, and [`DisciplineParams::from_args`](super::DisciplineParams::from_args) checks the
//! combination.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::any::{POLICIES, SCHEDULERS, SHAPERS, SYSTEMS};
use super::context::LinkContext;
use super::custom::Registration;
use super::discipline::Discipline;
use super::isolate;
use crate::congestion::{self, ALGORITHMS, CongestionControl, Connection};
use crate::mark::{MARKERS, currency_exchange};
use crate::packet::SimplePacket;
use crate::param::{
    Args, CLASS_KEY, Entry, EntryArgs, Inside, Kind, PARENT_KEY, Param, ParamError, Preset, Role, Value,
    Written, unknown_key,
};
use crate::stack::{self, Stack, StackParams};

/// The disciplines, markers and exchanges that scenarios can name, by default those of this project, and the
/// congestion controls and transport stacks that a program has registered.
///
/// ```
/// use apportion_core::param::{Entry, LIMIT, Role, Traits};
/// use apportion_core::system::{Catalog, Discipline};
/// # use apportion_core::{Backlog, Queue, SimplePacket, Sink, limit::{Limit, LinkLimit}, units::Time};
/// # struct MyQueue;
/// # impl MyQueue { fn new(_: LinkLimit) -> Self { Self } }
/// # impl Queue<SimplePacket> for MyQueue {
/// #     fn enqueue(&mut self, _: Time, _: SimplePacket, _: &mut dyn Sink<SimplePacket>) {}
/// #     fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> { None }
/// #     fn backlog(&self) -> Backlog { Backlog::EMPTY }
/// # }
/// # impl Discipline<SimplePacket> for MyQueue {
/// #     fn drain(&mut self, _: Time) -> Option<SimplePacket> { None }
/// #     fn set_limit(&mut self, _: Limit) {}
/// # }
///
/// static ENTRY: Entry = Entry {
///     name: "mine",
///     role: Role::System,
///     summary: "What it does, in one sentence.",
///     reference: "–",
///     cost: "O(1) per packet, no state per flow",
///     params: &[LIMIT],
///     traits: Traits::NONE,
/// };
///
/// let mut catalog = Catalog::default();
/// catalog.register(
///     &ENTRY,
///     |args| Ok(args.limit_if_set("limit")),
///     |&limit, link| MyQueue::new(LinkLimit::new(limit, link.link_rate)),
/// )?;
/// assert!(catalog.find("mine").is_some() && catalog.find("red").is_some());
/// # Ok::<(), apportion_core::system::catalog::RegisterError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    registered: Vec<Registration>,
    controls: Vec<congestion::Registered>,
    stacks: Vec<stack::Registration>,
    preset: Preset,
}

/// The reason why a discipline, a congestion control or a transport stack cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterError(String);

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl core::error::Error for RegisterError {}

/// The keys of a queue's table that are not parameters of a discipline.
const SELECTORS: [&str; 6] = ["kind", "drop", "shaper", isolate::KEY, CLASS_KEY, Preset::KEY];

impl Catalog {
    /// Registers an external discipline, which scenarios name in `kind`.
    ///
    /// `read` checks the parameters when a scenario is loaded, and its errors become messages with file, line
    /// and key. `build` makes a discipline for each link, from the result of `read` and a description of the
    /// link.
    ///
    /// An external scheduler or buffer policy is registered together with its counterpart, as a
    /// [`Buffer`](crate::buffer::Buffer).
    ///
    /// # Errors
    /// When the role of the entry is not [`Role::System`], its name is taken, the name of a parameter is already a key
    /// of its table, or its default does not parse.
    pub fn register<T, Q>(
        &mut self,
        entry: &'static Entry,
        read: impl Fn(&EntryArgs<'_>) -> Result<T, ParamError> + Send + Sync + 'static,
        build: impl Fn(&T, &LinkContext<'_>) -> Q + Send + Sync + 'static,
    ) -> Result<(), RegisterError>
    where
        T: Send + Sync + 'static,
        Q: Discipline<SimplePacket> + Send + 'static,
    {
        let of_shapers = || SHAPERS.iter().flat_map(|shaper| shaper.entry.params).map(|param| param.name);
        let taken = |key: &str| SELECTORS.into_iter().chain(of_shapers()).any(|taken| taken == key);
        self.check(entry, Role::System, taken)?;
        self.registered.push(Registration::new(entry, read, build));
        Ok(())
    }

    /// Registers an external congestion control, which scenarios name as an `algorithm` of TCP, and of QUIC
    /// if its entry says so.
    ///
    /// `build` makes a control for each connection.
    ///
    /// # Errors
    /// When its name is taken.
    pub fn register_control<C: CongestionControl + 'static>(
        &mut self,
        entry: &'static congestion::ControlEntry,
        build: impl Fn(&Connection) -> C + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        let name = entry.name;
        if ALGORITHMS.iter().chain(self.controls()).any(|known| known.name == name) {
            let why = format!("`{name}` cannot be registered: another congestion control has this name");
            return Err(RegisterError(why));
        }
        self.controls.push(congestion::Registered::new(entry, build));
        Ok(())
    }

    /// Registers a transport stack, which scenarios name in a flow's `transport`.
    ///
    /// `read` checks the parameters when a scenario is loaded, and its errors become messages with file, line
    /// and key.
    ///
    /// # Errors
    /// When the role of the entry is not [`Role::Stack`], its name is taken, the name of a parameter is already a key
    /// of its table, or its default does not parse.
    pub fn register_stack<S: Stack + 'static>(
        &mut self,
        entry: &'static Entry,
        read: impl Fn(&EntryArgs<'_>) -> Result<S, ParamError> + Send + Sync + 'static,
    ) -> Result<(), RegisterError> {
        self.check(entry, Role::Stack, |key| ["kind", Preset::KEY].contains(&key))?;
        self.stacks.push(stack::Registration::new(entry, read));
        Ok(())
    }

    /// Refuses an entry that cannot be registered; `taken` are keys of its table beside its parameters.
    fn check(
        &self,
        entry: &'static Entry,
        role: Role,
        taken: impl Fn(&str) -> bool,
    ) -> Result<(), RegisterError> {
        let name = entry.name;
        let refuse = |why: String| Err(RegisterError(format!("`{name}` cannot be registered: {why}")));
        if entry.role != role {
            let whole = if role == Role::System { "a whole discipline, " } else { "" };
            return refuse(format!("its role is {:?}; register {whole}Role::{role:?}", entry.role));
        }
        if self.find(name).is_some() {
            return refuse("another entry has this name".to_owned());
        }
        for (place, param) in entry.params.iter().enumerate() {
            let mut earlier = entry.params[..place].iter().map(|param| param.name);
            if taken(param.name) || earlier.any(|earlier| earlier == param.name) {
                return refuse(format!("another key of its table is called `{}`", param.name));
            }
            if let Some(Err(error)) = param.default.map(|text| Self::parse(param, text)) {
                return refuse(format!("its default does not parse: {error}"));
            }
        }
        Ok(())
    }

    /// The entries of the registered transport stacks.
    pub fn stacks(&self) -> impl Iterator<Item = &'static Entry> {
        self.stacks.iter().map(|known| known.entry)
    }

    /// The stack of a selection, with its parameters.
    ///
    /// # Errors
    /// When the selection is not of a registered stack, or the stack refuses its parameters.
    pub fn stack(&self, selection: &Selection) -> Result<StackParams, ParamError> {
        let name = selection.kind.name;
        let known = self.stacks.iter().find(|known| known.entry.name == name);
        let known = known.ok_or_else(|| stack::unknown(name, self.stacks().map(|entry| entry.name)))?;
        known.read(&selection.args)
    }

    /// The registered congestion controls.
    pub fn controls(&self) -> impl Iterator<Item = &'static congestion::ControlEntry> {
        self.controls.iter().map(congestion::Registered::entry)
    }

    /// The registered congestion control called `name`.
    #[must_use]
    pub fn control(&self, name: &str) -> Option<&congestion::Registered> {
        self.controls.iter().find(|control| control.entry().name == name)
    }

    /// A catalogue with the same entries, and `preset` for tables that name none.
    #[must_use]
    pub fn with_preset(&self, preset: Preset) -> Self {
        Self { preset, ..self.clone() }
    }

    /// Every entry: disciplines, the isolation of hosts, then markers, exchanges and stacks.
    pub fn all(&self) -> impl Iterator<Item = &'static Entry> {
        let markers = MARKERS.iter().map(|known| known.entry);
        let own = self.disciplines().chain([&isolate::ENTRY]).chain(markers);
        own.chain([&currency_exchange::ENTRY]).chain(self.stacks())
    }

    /// The entries of which a queue can consist, schedulers first; registered ones are the last systems.
    pub fn disciplines(&self) -> impl Iterator<Item = &'static Entry> {
        let schedulers = SCHEDULERS.iter().map(|known| known.entry);
        let policies = POLICIES.iter().map(|known| known.entry);
        let systems = SYSTEMS.iter().map(|known| known.entry);
        let registered = self.registered.iter().map(|known| known.entry);
        let shapers = SHAPERS.iter().map(|known| known.entry);
        schedulers.chain(policies).chain(systems).chain(registered).chain(shapers)
    }

    /// The entries that can stand inside another discipline at `place`.
    pub fn inside(place: Inside) -> impl Iterator<Item = &'static Entry> {
        let schedulers = SCHEDULERS.iter().map(|known| known.entry);
        let policies = POLICIES.iter().map(|known| known.entry);
        let systems = SYSTEMS.iter().map(|known| known.entry);
        schedulers.chain(policies).chain(systems).filter(move |entry| entry.traits.inside >= place)
    }

    /// Reads a value of `param`, as [`Param::parse`] does, or the name of a discipline.
    ///
    /// # Errors
    /// When `written` is not a value of `param`; the message says how to write one.
    pub fn parse<'a>(param: &Param, written: impl Into<Written<'a>>) -> Result<Value, ParamError> {
        let written = written.into();
        let Kind::Discipline(place) = param.kind else { return param.parse(written) };
        let text = written.to_string();
        let entry = Self::inside(place).find(|entry| entry.name == text);
        entry.map(|entry| Value::Choice(entry.name)).ok_or_else(|| {
            let names: Vec<_> = Self::inside(place).map(|entry| entry.name).collect();
            ParamError::new(param.name, format!("`{text}` is not one of {}", names.join(", ")))
        })
    }

    /// The entry called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'static Entry> {
        self.all().find(|entry| entry.name == name)
    }

    /// Finds the entries for the keys `kind`, `drop` and `shaper`.
    ///
    /// A policy as `kind` is that policy in front of a FIFO. A scheduler without `drop` has the policy of its
    /// paper or of common practice.
    ///
    /// # Errors
    /// When a name is unknown or does not fit its key.
    pub fn select(
        &self,
        kind: &str,
        drop: Option<&str>,
        shaper: Option<&str>,
    ) -> Result<Selection, ParamError> {
        let entry = self.known("kind", kind, &[Role::Scheduler, Role::Policy, Role::System])?;
        let drop = drop.map(|name| self.known("drop", name, &[Role::Policy])).transpose()?;
        let shaper = shaper.map(|name| self.known("shaper", name, &[Role::Shaper])).transpose()?;
        let refuse = |why| Err(ParamError::new("drop", format!("`{kind}` {why}; leave `drop` out")));
        let (kind, drop) = match entry.role {
            Role::System if drop.is_some() => return refuse("has its own buffer policy"),
            Role::System => (entry, None),
            Role::Policy if drop.is_some() => {
                return refuse("is a buffer policy already, in front of a FIFO");
            }
            Role::Policy => (SCHEDULERS[0].entry, Some(entry)),
            Role::Scheduler
            | Role::Shaper
            | Role::Isolation
            | Role::Class
            | Role::Marker
            | Role::Exchange
            | Role::Stack => (entry, drop.or_else(|| default_policy(entry))),
        };
        let custom = self.registered.iter().find(|known| known.entry.name == kind.name).cloned();
        let mut args = Args::of_preset(self.preset);
        // A FIFO that is named stays one.
        let by_flow =
            drop.filter(|_| entry.name == SCHEDULERS[0].entry.name).and_then(|drop| drop.param("by_flow"));
        if let Some(by_flow) = by_flow {
            args.put(by_flow, Value::Switch(false));
        }
        Ok(Selection { kind, drop, shaper, isolate: Some(&isolate::ENTRY), args, custom })
    }

    /// Finds the entry called `name` with this role, without companions.
    ///
    /// # Errors
    /// When there is none.
    pub fn select_alone(&self, role: Role, name: &str) -> Result<Selection, ParamError> {
        let kind = match role {
            Role::Stack => {
                let found = self.stacks().find(|entry| entry.name == name);
                found.ok_or_else(|| stack::unknown(name, self.stacks().map(|entry| entry.name)))?
            }
            _ => self.known("kind", name, &[role])?,
        };
        let args = Args::of_preset(self.preset);
        Ok(Selection { kind, drop: None, shaper: None, isolate: None, args, custom: None })
    }

    fn known(&self, key: &str, name: &str, roles: &[Role]) -> Result<&'static Entry, ParamError> {
        self.find(name).filter(|entry| roles.contains(&entry.role)).ok_or_else(|| {
            let names: Vec<_> =
                self.all().filter(|entry| roles.contains(&entry.role)).map(|entry| entry.name).collect();
            ParamError::new(key, format!("`{name}` is not known here (known: {})", names.join(", ")))
        })
    }
}

/// The entries that a scenario's table selects, and the values that it sets.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The scheduler, system, marker or exchange.
    pub kind: &'static Entry,
    /// The buffer policy; none for a system.
    pub drop: Option<&'static Entry>,
    /// The shaper in front, if there is one.
    pub shaper: Option<&'static Entry>,
    /// The isolation of hosts, which is available for every queue.
    isolate: Option<&'static Entry>,
    /// The values set so far.
    pub args: Args,
    /// The functions that read and build `kind`, if it is registered.
    pub(super) custom: Option<Registration>,
}

impl Selection {
    /// Selects as [`Catalog::select`] does, among the entries of this project.
    ///
    /// # Errors
    /// When a name is unknown or does not fit its key.
    pub fn new(kind: &str, drop: Option<&str>, shaper: Option<&str>) -> Result<Self, ParamError> {
        Catalog::default().select(kind, drop, shaper)
    }

    /// Selects as [`Catalog::select_alone`] does, among the entries of this project.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(role: Role, name: &str) -> Result<Self, ParamError> {
        Catalog::default().select_alone(role, name)
    }

    /// The entries whose parameters can be set: the selected ones, and for a queue the isolation of hosts.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        [Some(self.kind), self.drop, self.shaper, self.isolate].into_iter().flatten()
    }

    /// The values of [`kind`](Self::kind) alone.
    #[must_use]
    pub const fn kind_args(&self) -> EntryArgs<'_> {
        self.args.of(self.kind)
    }

    /// The keys that [`set`](Self::set) accepts.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        let params = self.entries().flat_map(|entry| entry.params).map(|param| param.name);
        params.chain([Preset::KEY])
    }

    /// Sets `key`: a parameter of one of the entries, or the preset of all.
    ///
    /// # Errors
    /// When none of the entries has such a parameter, or `written` is not a value of it.
    pub fn set<'a>(&mut self, key: &str, written: impl Into<Written<'a>>) -> Result<(), ParamError> {
        let written = written.into();
        if key == Preset::KEY {
            self.args.set_preset(written.to_string().parse()?);
            return Ok(());
        }
        let Some(param) = self.entries().find_map(|entry| entry.param(key)) else {
            return Err(ParamError::new(key, unknown_key("parameter", "", self.keys())));
        };
        self.args.put(param, Catalog::parse(param, written)?);
        Ok(())
    }
}

/// Classes, if the discipline has them.
impl Selection {
    /// The entry with the parameters of a class; none if the discipline has no classes.
    #[must_use]
    pub fn class(&self) -> Option<&'static Entry> {
        self.kind.traits.classes
    }

    /// Adds a class called `name`, if there is none yet.
    ///
    /// # Errors
    /// When the discipline has no classes.
    pub fn add_class(&mut self, name: &str) -> Result<(), ParamError> {
        self.known_class(CLASS_KEY)?;
        self.args.add_class(name);
        Ok(())
    }

    /// Sets `key` of the class `name`, which is added if needed: a parameter, or its parent.
    ///
    /// # Errors
    /// When the discipline has no classes, classes have no such parameter, or `written` is not a value of it.
    pub fn set_of_class<'a>(
        &mut self,
        name: &str,
        key: &str,
        written: impl Into<Written<'a>>,
    ) -> Result<(), ParamError> {
        let written = written.into();
        let path = format!("{}.{name}.{key}", CLASS_KEY);
        let class = self.known_class(&path)?;
        if key == PARENT_KEY {
            self.args.set_parent(name, &written.to_string());
            return Ok(());
        }
        let Some(param) = class.param(key) else {
            let params = class.params.iter().map(|param| param.name);
            let message = unknown_key("parameter", "", params.chain([PARENT_KEY]));
            return Err(ParamError::new(&path, message));
        };
        let value = Catalog::parse(param, written).map_err(|error| ParamError::new(&path, error.message))?;
        self.args.set_of_class(name, param, value);
        Ok(())
    }

    fn known_class(&self, key: &str) -> Result<&'static Entry, ParamError> {
        self.class().ok_or_else(|| {
            let systems = SYSTEMS.iter().map(|known| known.entry);
            let with: Vec<_> =
                systems.filter(|entry| entry.traits.classes.is_some()).map(|entry| entry.name).collect();
            let message = format!("`{}` has no classes; these have: {}", self.kind.name, with.join(", "));
            ParamError::new(key, message)
        })
    }
}

fn default_policy(scheduler: &Entry) -> Option<&'static Entry> {
    SCHEDULERS.iter().find(|known| known.entry.name == scheduler.name)?.default_policy
}
