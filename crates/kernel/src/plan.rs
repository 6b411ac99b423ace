//! The queues that the kernel can implement, and how. The others are refused, each by its name.
//!
//! There are two ways. A core-stateless core decides by the label of a packet and one estimate of its link: a
//! tc program. HTB divides a link by weights among flows, or by classes with rates and ceilings. A program
//! before a queue can neither inspect the queue nor remove a packet that it admitted (push-out), so
//! disciplines that do are refused.

use apportion_core::aqm::csfq::CsfqParams;
use apportion_core::aqm::hcsfq::HcsfqParams;
use apportion_core::aqm::tred::TredParams;
use apportion_core::limit::{Limit, LinkLimit};
use apportion_core::param::Entry;
use apportion_core::system::any::{PolicyParams, SchedulerParams};
use apportion_core::system::{BufferParams, DisciplineKind, DisciplineParams};
use apportion_core::units::Rate;

use crate::classes::ClassTree;
use crate::hierarchy::HierarchySettings;
use crate::settings::{CoreSettings, Unsuitable};
use crate::tickets::TicketSettings;

/// The implementation of a queue in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// The tc program of a CSFQ core before a FIFO.
    Core(Box<CoreSettings>),
    /// The tc program of an HCSFQ core before a FIFO, for one customer until others are added.
    Hierarchy(Box<HierarchySettings>),
    /// The tc program of TRED before a FIFO, without an exchange until one is added.
    Tickets(Box<TicketSettings>),
    /// HTB with one leaf per flow.
    Weights,
    /// HTB with the classes of a file.
    Classes(Box<ClassTree>),
    /// A FIFO of this size in HTB, which limits the rate to that of the link.
    Fifo(Limit),
}

/// The reason for a refusal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel cannot implement the discipline.
    #[error(
        "the kernel backend cannot run `{name}`: {why}; use the user-space backend, or one of: csfq, mcsfq, hcsfq with role = \"core\", tred, htb, fifo with drop = \"tail\""
    )]
    Discipline {
        /// The part that the kernel cannot implement.
        name: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// The kernel cannot implement the value of a key.
    #[error(
        "the kernel backend cannot run this core of `csfq`, `mcsfq` or `hcsfq`, or this `tred`: {0}; or use the user-space backend"
    )]
    Key(#[from] Unsuitable),
    /// The kernel cannot implement these `htb` classes.
    #[error("the kernel backend cannot carry out this `htb`: {0}; or use the user-space backend")]
    Classes(String),
    /// The kernel cannot implement `drr` in a gateway.
    #[error(
        "a gateway's flows are not known beforehand, so that `drr` has no leaves for them in the kernel; write \
         queue = {{ kind = \"htb\", .. }} with classes, or use the user-space backend"
    )]
    UnknownFlows,
}

const PUSH_OUT: &str =
    "it takes packets out of the queue after they were let in (push-out), which no tc program can";
const QUEUE: &str = "it decides by what waits in the queue, which no tc program sees";
const FLOWS: &str = "its state of each flow is kept in user space only";
const TURNS: &str = "the kernel has no scheduler of this order that a program could steer";
const CLASSES: &str = "its classes are not translated into those of the kernel";

impl Plan {
    /// Returns the plan for `queue` on a link of `rate`.
    ///
    /// # Errors
    /// The part of the queue that the kernel cannot implement, and the reason.
    pub fn of(queue: &DisciplineParams, rate: Rate) -> Result<Self, Refusal> {
        if queue.shaper.is_some() {
            return Err(refused("token_bucket", "a shaper around a queue is a second queue"));
        }
        match &queue.kind {
            DisciplineKind::Htb(params) => {
                let tree = ClassTree::new(params, rate).map_err(Refusal::Classes)?;
                Ok(Plan::Classes(Box::new(tree)))
            }
            DisciplineKind::Buffered(BufferParams { schedule, drop }) => buffered(schedule, drop, rate),
            other => Err(system(other)),
        }
    }
}

const fn refused(name: &'static str, why: &'static str) -> Refusal {
    Refusal::Discipline { name, why }
}

/// The name of a catalogue entry; parts without an entry of their own are not asked for.
fn name_of(entry: Option<&'static Entry>) -> &'static str {
    entry.map_or("", |entry| entry.name)
}

fn buffered(schedule: &SchedulerParams, drop: &PolicyParams, rate: Rate) -> Result<Plan, Refusal> {
    match (schedule, drop) {
        (SchedulerParams::Fifo(_), PolicyParams::Csfq(params)) => core(params, rate),
        (SchedulerParams::Fifo(_), PolicyParams::Hcsfq(params)) => hierarchy(params, rate),
        (SchedulerParams::Fifo(_), PolicyParams::Tred(params)) => tickets(params, rate),
        (SchedulerParams::Drr(_), PolicyParams::Tail(_)) => Ok(Plan::Weights),
        (SchedulerParams::Fifo(_), PolicyParams::Tail(params)) => {
            Ok(Plan::Fifo(LinkLimit::new(params.limit, rate).get()))
        }
        (SchedulerParams::Fifo(_) | SchedulerParams::Drr(_), drop) => Err(policy(drop)),
        (other, _) => Err(refused(name_of(other.entry()), TURNS)),
    }
}

fn core(params: &CsfqParams, rate: Rate) -> Result<Plan, Refusal> {
    Ok(Plan::Core(Box::new(CoreSettings::new(params, rate)?)))
}

fn hierarchy(params: &HcsfqParams, rate: Rate) -> Result<Plan, Refusal> {
    Ok(Plan::Hierarchy(Box::new(HierarchySettings::new(params, rate)?)))
}

fn tickets(params: &TredParams, rate: Rate) -> Result<Plan, Refusal> {
    Ok(Plan::Tickets(Box::new(TicketSettings::new(params, rate)?)))
}

fn policy(policy: &PolicyParams) -> Refusal {
    match policy {
        PolicyParams::Head(_) => refused("head", PUSH_OUT),
        PolicyParams::LongestQueue(_) => refused("lqd", PUSH_OUT),
        PolicyParams::RandomDrop(_) => refused("random_drop", PUSH_OUT),
        PolicyParams::Pfd(_) => refused("pfd", PUSH_OUT),
        PolicyParams::Tail(_) => refused("tail", "it goes with drr only"),
        PolicyParams::Csfq(_) => refused("csfq", "it goes with a FIFO only"),
        PolicyParams::Tred(_) => refused("tred", "it goes with a FIFO only"),
        PolicyParams::Hcsfq(_) => refused("hcsfq", "it goes with a FIFO only"),
        PolicyParams::Sffc(_) => refused("sffc", FLOWS),
        other => refused(name_of(other.entry()), QUEUE),
    }
}

fn system(system: &DisciplineKind) -> Refusal {
    match system {
        DisciplineKind::Buffered(_) => refused("fifo", TURNS),
        // Handled above: it has a plan.
        DisciplineKind::Htb(_) => refused("htb", CLASSES),
        DisciplineKind::Cake(_) => refused("cake", PUSH_OUT),
        DisciplineKind::Fq(_) => refused("fq", TURNS),
        DisciplineKind::FqCodel(_) => refused("fq_codel", PUSH_OUT),
        DisciplineKind::Afq(_) => refused("afq", TURNS),
        DisciplineKind::SpPifo(_) => refused("sp_pifo", TURNS),
        DisciplineKind::Packs(_) => refused("packs", TURNS),
        DisciplineKind::Cebinae(_) => refused("cebinae", FLOWS),
        DisciplineKind::Ppv(_) => refused("ppv", PUSH_OUT),
        DisciplineKind::VdqCsaqm(_) => refused("vdq_csaqm", QUEUE),
        DisciplineKind::Sfq(_) => refused("sfq", PUSH_OUT),
        DisciplineKind::Prio(_) => refused("prio", CLASSES),
        DisciplineKind::Hfsc(_) => refused("hfsc", CLASSES),
        DisciplineKind::SffcFronted(_) => refused("sffc", FLOWS),
        DisciplineKind::Custom(_) => refused("custom", "a registered discipline is code of this process"),
        DisciplineKind::Isolated(_) => refused("isolate", FLOWS),
        other => refused(name_of(other.entry()), QUEUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::system::Catalog;
    use apportion_core::units::Bytes;

    fn plan(kind: &str, drop: Option<&str>, set: &[(&str, &str)]) -> Result<Plan, String> {
        let mut selection = Catalog::default().select(kind, drop, None).unwrap();
        for (key, value) in set {
            selection.set(key, value).unwrap();
        }
        let queue = DisciplineParams::from_args(&selection).unwrap();
        Plan::of(&queue, Rate::from_mbit(10)).map_err(|refusal| refusal.to_string())
    }

    const CORE: [(&str, &str); 2] = [("role", "core"), ("target_delay", "0s")];

    #[test]
    fn cores_and_weights_have_a_plan() {
        for kind in ["csfq", "mcsfq"] {
            assert!(matches!(plan(kind, None, &CORE), Ok(Plan::Core(_))), "{kind}");
        }
        assert!(matches!(plan("hcsfq", None, &CORE), Ok(Plan::Hierarchy(_))));
        assert!(matches!(plan("tred", None, &[]), Ok(Plan::Tickets(_))));
        assert!(matches!(plan("tred", None, &[("preset", "paper")]), Ok(Plan::Tickets(_))));
        assert_eq!(plan("drr", Some("tail"), &[]), Ok(Plan::Weights));
        // 100 ms of 10 Mb/s.
        assert_eq!(plan("fifo", None, &[]), Ok(Plan::Fifo(Limit::Bytes(Bytes::new(125_000)))));
        assert!(matches!(plan("htb", None, &[]), Ok(Plan::Classes(_))));
        let inner = plan("htb", None, &[("discipline", "fq_codel")]).unwrap_err();
        assert!(inner.contains("`discipline` must be \"fifo\""), "{inner}");
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_its_name() {
        // Every entry that is a complete queue.
        let catalog = Catalog::default();
        let mut refusals = 0;
        for name in catalog.all().map(|entry| entry.name) {
            let Ok(selection) = catalog.select(name, None, None) else { continue };
            let Ok(queue) = DisciplineParams::from_args(&selection) else { continue };
            if matches!(name, "fifo" | "tail" | "htb" | "tred") {
                continue;
            }
            let refusal = Plan::of(&queue, Rate::from_mbit(10)).unwrap_err().to_string();
            // A scheduler is combined with a policy, and nbq is sffc with other parameters.
            let named = match name {
                "drr" => "lqd",
                "nbq" => "sffc",
                name => name,
            };
            assert!(refusal.contains(&format!("`{named}`")), "{name}: {refusal}");
            refusals += 1;
        }
        assert!(refusals > 30, "{refusals}");
        assert!(plan("pfd", None, &[]).unwrap_err().contains("push-out"));
        assert!(plan("drr", None, &[]).unwrap_err().contains("`lqd`"), "the default policy of drr");
        assert!(plan("drr", Some("tred"), &[]).unwrap_err().contains("goes with a FIFO only"));
        for kind in ["csfq", "hcsfq"] {
            assert!(plan("drr", Some(kind), &CORE).unwrap_err().contains("goes with a FIFO only"), "{kind}");
        }
        // A gateway refuses `drr`, so no hint may suggest it.
        assert!(!plan("pfd", None, &[]).unwrap_err().contains("drr"));
    }

    #[test]
    fn a_key_that_the_program_lacks_is_named() {
        for kind in ["csfq", "mcsfq", "hcsfq"] {
            let refusal = |set: &[_]| plan(kind, None, set).unwrap_err();
            assert!(refusal(&[]).contains("`role` must be \"core\""), "{kind}");
            assert!(refusal(&CORE[..1]).contains("`target_delay` must be \"0s\""), "{kind}");
            for (key, value) in [("bits", "8"), ("k_c", "10us"), ("limit", "64p")] {
                let refusal = refusal(&[CORE[0], CORE[1], (key, value)]);
                assert!(refusal.contains(&format!("`{key}` must")), "{kind}: {refusal}");
            }
        }
        let refusal = |kind, set: &[_]| plan(kind, None, &[&CORE, set].concat()).unwrap_err();
        assert!(refusal("csfq", &[("onset", "true")]).contains("`onset` must"));
        for (key, value) in [
            ("n", "2.5"),
            ("l4s", "true"),
            ("adaptive", "true"),
            ("min_tkt_rank", "2"),
            ("window", "10us"),
            ("min_tkt_window", "2h"),
        ] {
            let refusal = plan("tred", None, &[(key, value)]).unwrap_err();
            assert!(refusal.contains(&format!("`{key}` must")), "{key}: {refusal}");
        }
        for (key, value) in [("k", "10us"), ("credit", "2us")] {
            assert!(refusal("hcsfq", &[(key, value)]).contains(&format!("`{key}` must")), "{key}");
        }
    }
}
