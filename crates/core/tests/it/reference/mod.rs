//! Slow literal transcripts of the papers, for differential tests only.
//!
//! Plain numbers and vectors, in the order of the pseudo-code, without regard to speed. Times are seconds as
//! `f64` where the paper has real time, and nanoseconds where a test compares times for equality. Nothing
//! here depends on the disciplines under test. Unit tests of private items include single files.
//!
//! | module | transcript of |
//! |---|---|
//! | [`red`] | Floyd, Jacobson 1993, figure 2, with ns-2's `wait`, `gentle` and byte mode |
//! | [`rio`] | Clark, Fang 1998 |
//! | [`csfq`] | Stoica, Shenker, Zhang 1998, figure 3, with the authors' code's readings |
//! | [`mcsfq`] | Pelsser, De Cnodder 2002, figures 1, 2, 3 and 7, with a switch for each reading |
//! | [`tred`] | Zhang et al. 2002, section II-C.1 |
//! | [`tickets`] | Zhang et al. 2002, sections II-B, II-D, II-F.1, II-G |
//! | [`fq`] | tc-fq(8), after Dumazet 2013 |
//! | [`fred`] | Lin, Morris 1997, pseudo-code |
//! | [`pfd`] | Srinivasan, Vaidyanathan, Baras, figure 3 with its slips mended, and RND of section 3 |
//! | [`sffc`] | Tamura, Tobe, Tokuda 2000, figure 5, and water filling by bisection |
//! | [`drr`] | Shreedhar, Varghese 1996, section III |
//! | [`round_robin`] | weighted round robin, packet by packet |
//! | [`start_time_fq`] | Goyal, Vin, Cheng 1997, section II |
//! | [`scfq`] | Golestani 1994, section 3 |
//! | [`gps`] | Parekh, Gallager 1993, section II, over time |
//! | [`wf2q_plus`] | Bennett, Zhang 1997, section IV |
//! | [`afq`] | Sharma, Liu, Atreya, Krishnamurthy 2018, section 3 |
//! | [`cebinae`] | Yu, Sonchack, Liu 2022, with the readings of the discipline and a slot for each flow |
//! | [`sfq`] | McKenney 1990 |
//! | [`start_tags`] | SP-PIFO of Alcoz, Dietmüller, Vanbever 2020, and AIFO of Yu, Hu, Wu, Jin 2021 |
//! | [`prio`] | strict priority |
//! | [`htb`] | Devera 2002, eq. 1 to 3, as fluid rates |
//! | [`hfsc`] | Stoica, Zhang, Ng 1997, with curves as minima over all their copies |
//! | [`ramp`] | Li, Walpole, McNamee, Pu, Steere 2001, figure 2, in the reading of KB and percent |
//! | [`codel`] | RFC 8289 section 5 |
//! | [`cake`] | the turns of flows and hosts of Høiland-Jørgensen, Täht, Morton 2018, round by round |
//! | [`cobalt`] | COBALT of Palmei et al. 2019, with the readings of the discipline |
//! | [`pie`] | RFC 8033 appendices A and B |
//! | [`bucket`] | token bucket over real numbers |
//! | [`max_min()`] | progressive filling, one round at a time |
//! | [`hierarchical()`] | two levels of weighted max-min on one link with guarantees, by halving intervals |

pub mod afq;
pub mod bucket;
pub mod cake;
pub mod cebinae;
pub mod cobalt;
pub mod codel;
pub mod csfq;
pub mod drr;
pub mod fq;
pub mod fred;
pub mod gps;
pub mod hfsc;
mod hierarchical;
pub mod htb;
mod max_min;
pub mod mcsfq;
pub mod pfd;
pub mod pie;
pub mod prio;
pub mod ramp;
pub mod red;
pub mod rio;
pub mod round_robin;
pub mod scfq;
pub mod sffc;
pub mod sfq;
pub mod start_tags;
pub mod start_time_fq;
pub mod tickets;
pub mod tred;
pub mod wf2q_plus;

pub use hierarchical::hierarchical;
pub use max_min::max_min;
