//! Whole disciplines: every combination that a scenario can name, behind one type.
//!
//! | file | holds | source |
//! |---|---|---|
//! | [`afq`] | a calendar of FIFO queues by bids in a sketch | Sharma, Liu, Atreya, Krishnamurthy 2018 |
//! | [`aifo`] | one FIFO that admits by the quantile of a rank | Yu, Hu, Wu, Jin 2021 |
//! | [`any`] | every discipline: its parameters, its constructor, the tables of the catalogue | – |
//! | [`cake`] | flow queueing with COBALT, hosts before flows, and a shaper | Høiland-Jørgensen, Täht, Morton 2018 |
//! | [`catalog`] | the register: finds disciplines by name, reads their parameters from scenarios | – |
//! | [`cebinae`] | two queues that tax the largest flows of a full link | Yu, Sonchack, Liu 2022 |
//! | [`custom`] | external disciplines | – |
//! | [`choke`] | RED that drops pairs of the same flow | Pan, Prabhakar, Psounis 2000 |
//! | [`classes`] | the tree of classes of `prio`, `htb` and `hfsc`, and the flows of each | – |
//! | [`classful`] | a discipline with classes, their queues or inner disciplines, and its scheduler | – |
//! | [`dualpi2`] | two coupled queues, for L4S and for classic senders | RFC 9332 |
//! | [`fq`] | flow queueing with a maximum rate per flow | Dumazet 2013, tc-fq(8) |
//! | [`fq_codel`] | flow queueing with CoDel | RFC 8290 |
//! | [`fq_pie`] | flow queueing with PIE | Ramakrishnan, Bhasi, Tahiliani 2019 |
//! | [`hfsc`] | a hierarchy of service curves | Stoica, Zhang, Ng 1997 |
//! | [`htb`] | a hierarchy of token buckets, from which classes borrow | Devera 2002 |
//! | [`isolate`] | presents hosts to any discipline as its flows | Høiland-Jørgensen, Täht, Morton 2018 |
//! | [`packs`] | strict-priority queues that admit and sort by quantiles of ranks | Gran Alcoz et al. 2025 |
//! | [`ppv`] | a FIFO that drops the packet of least value | Nádas, Turányi, Rácz 2016 |
//! | [`vdq_csaqm`] | an L4S queue and a classic one, which share by values | Nádas, Gombos, Fejes, Laki 2020 |
//! | [`prio`] | classes in strict priority | Cobham 1954 |
//! | [`ramp`] | allocates bandwidth to real-rate flows from the fill of their queues | Li, Walpole, McNamee, Pu, Steere 2001 |
//! | [`rank_queues`] | FIFO queues in strict priority for packets with ranks, the common part of `aifo`, `packs`, `rifo`, `sp_pifo` | – |
//! | [`rifo`] | one FIFO that admits by the place of a rank in the range | Mostafaei, Pacut, Schmid 2023 |
//! | [`sffc_fronted`] | SF-FC's discarder in front of any discipline | Tamura, Tobe, Tokuda 2000 |
//! | [`sp_pifo`] | strict-priority queues with adaptive bounds | Alcoz, Dietmüller, Vanbever 2020 |
//! | [`sfq`] | hashed buckets that take turns | McKenney 1990 |
//!
//! Algorithms are generic. Here each scheduler with each policy becomes a type of its own, and a backend
//! holds any of them as a [`LinkQueue`]. A packet thus costs one virtual call each way, and all called parts
//! are compiled as one: a choice among the parts by enums for each packet took half of the instructions of a
//! FIFO. [`Discipline`] is the interface of whole disciplines, and [`LinkContext`] describes their link.

pub mod afq;
pub mod aifo;
pub mod any;
pub mod cake;
pub mod catalog;
pub mod cebinae;
mod charge;
pub mod choke;
pub mod classes;
pub mod classful;
mod context;
pub mod custom;
mod discipline;
pub mod dualpi2;
mod flow_queueing;
pub mod fq;
pub mod fq_codel;
pub mod fq_pie;
mod hash;
pub mod hfsc;
pub mod htb;
pub mod isolate;
mod link_queue;
pub mod packs;
pub mod ppv;
pub mod prio;
pub mod ramp;
pub mod rank_queues;
mod ranks;
pub mod rifo;
pub mod sffc_fronted;
pub mod sfq;
pub mod sp_pifo;
pub mod vdq_csaqm;

pub use any::{BoxedDiscipline, BufferParams, DisciplineKind, POLICIES, SCHEDULERS, SHAPERS, SYSTEMS};
pub use catalog::Catalog;
pub use context::LinkContext;
pub use discipline::Discipline;
pub use link_queue::{DisciplineParams, LinkQueue};
