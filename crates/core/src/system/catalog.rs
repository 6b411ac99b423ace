//! The catalogue: every discipline, marker and exchange as data.
//!
//! Scenario files, `list`, `explain` and the JSON schema read it; nothing repeats it.
//!
//! A loader turns a table such as `{ kind = "drr", drop = "red", limit = "110p", quantum = "1500B" }` into a
//! discipline in three steps: [`Selection::new`] finds the entries, [`Selection::set`] checks and reads each
//! remaining key, and [`DisciplineParams::from_args`](super::DisciplineParams::from_args) checks the whole.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use super::any::{POLICIES, SCHEDULERS, SHAPERS, SYSTEMS};
use crate::mark::{MARKERS, currency_exchange};
use crate::param::{Args, Entry, EntryArgs, ParamError, Role};

/// Every entry: disciplines, then markers and exchanges.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    disciplines().chain(MARKERS.iter().map(|known| known.entry)).chain([&currency_exchange::ENTRY])
}

/// What a queue can be made of, schedulers first.
pub fn disciplines() -> impl Iterator<Item = &'static Entry> {
    let schedulers = SCHEDULERS.iter().map(|known| known.entry);
    let policies = POLICIES.iter().map(|known| known.entry);
    let systems = SYSTEMS.iter().map(|known| known.entry);
    let shapers = SHAPERS.iter().map(|known| known.entry);
    schedulers.chain(policies).chain(systems).chain(shapers)
}

/// The entry called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.name == name)
}

/// The entries that one scenario table asks for, and the values it gives them.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The scheduler, system, marker or exchange.
    pub kind: &'static Entry,
    /// The buffer policy; none with a system.
    pub drop: Option<&'static Entry>,
    /// The shaper in front, if any.
    pub shaper: Option<&'static Entry>,
    /// The values set so far.
    pub args: Args,
}

impl Selection {
    /// Finds the entries for the keys `kind`, `drop` and `shaper`.
    ///
    /// A policy as `kind` is that policy in front of a FIFO. A scheduler without `drop` has the policy that
    /// its paper or common practice gives it.
    ///
    /// # Errors
    /// When a name is unknown or does not fit its key.
    pub fn new(kind: &str, drop: Option<&str>, shaper: Option<&str>) -> Result<Self, ParamError> {
        let entry = known("kind", kind, &[Role::Scheduler, Role::Policy, Role::System])?;
        let drop = drop.map(|name| known("drop", name, &[Role::Policy])).transpose()?;
        let shaper = shaper.map(|name| known("shaper", name, &[Role::Shaper])).transpose()?;
        let refuse = |why| Err(ParamError::new("drop", format!("`{kind}` {why}; leave `drop` out")));
        let (kind, drop) = match entry.role {
            Role::System if drop.is_some() => return refuse("has its own buffer policy"),
            Role::System => (entry, None),
            Role::Policy if drop.is_some() => {
                return refuse("is a buffer policy already, in front of a FIFO");
            }
            Role::Policy => (SCHEDULERS[0].entry, Some(entry)),
            Role::Scheduler | Role::Shaper | Role::Marker | Role::Exchange => {
                (entry, drop.or_else(|| default_policy(entry)))
            }
        };
        Ok(Self { kind, drop, shaper, args: Args::default() })
    }

    /// The entry called `name`, if it has this role, by itself.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(role: Role, name: &str) -> Result<Self, ParamError> {
        Ok(Self { kind: known("kind", name, &[role])?, drop: None, shaper: None, args: Args::default() })
    }

    /// The entries selected.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        [Some(self.kind), self.drop, self.shaper].into_iter().flatten()
    }

    /// The values of [`kind`](Self::kind) alone.
    #[must_use]
    pub const fn kind_args(&self) -> EntryArgs<'_> {
        self.args.of(self.kind)
    }

    /// Sets `key` to the value that `text` stands for.
    ///
    /// # Errors
    /// When none of the entries has such a parameter, or `text` is not a value of it.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ParamError> {
        let Some(param) = self.entries().find_map(|entry| entry.param(key)) else {
            let names: Vec<_> =
                self.entries().flat_map(|entry| entry.params).map(|param| param.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(ParamError::new(key, format!("unknown parameter (known here: {known})")));
        };
        self.args.set(param, text)
    }
}

fn known(key: &str, name: &str, roles: &[Role]) -> Result<&'static Entry, ParamError> {
    find(name).filter(|entry| roles.contains(&entry.role)).ok_or_else(|| {
        let names: Vec<_> =
            all().filter(|entry| roles.contains(&entry.role)).map(|entry| entry.name).collect();
        ParamError::new(key, format!("`{name}` is not known here (known: {})", names.join(", ")))
    })
}

fn default_policy(scheduler: &Entry) -> Option<&'static Entry> {
    SCHEDULERS.iter().find(|known| known.entry.name == scheduler.name)?.default_policy
}
