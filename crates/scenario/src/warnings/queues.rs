//! Settings of a queue that have no effect or another one than expected, alone or with the flows over it: in
//! front of a link of a scenario, or in a direction of a gateway.

use apportion_core::label::Label;
use apportion_core::mark::rate_label::RateLabelParams;
use apportion_core::system::classes::Classes;
use apportion_core::system::hfsc::HfscClass;
use apportion_core::system::htb::HtbClass;
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::{Bytes, Rate};

/// Maximum of flows or classes that are named for one reason. Chosen: what a person reads.
pub(crate) const MOST_NAMED: usize = 3;
/// The smallest packet that most links carry: an acknowledgement of TCP.
const SMALLEST: Bytes = Bytes::new(40);

/// A queue and its position.
pub(crate) struct Standing<'a> {
    /// The position as text: "link `wire`".
    pub(crate) place: String,
    pub(crate) queue: &'a DisciplineParams,
    /// The largest rate behind it.
    pub(crate) rate: Rate,
}

fn mbit(rate: Rate) -> f64 {
    rate.as_bit() as f64 / 1e6
}

impl Standing<'_> {
    /// Warnings about classes that have no effect, or rates that cannot be kept.
    pub(crate) fn of_classes(&self) -> Vec<String> {
        let one = [self.no_classes(), self.assured_too_much()].into_iter().flatten();
        let mut all: Vec<String> = one.collect();
        match &self.queue.kind {
            DisciplineKind::Htb(params) => {
                let rate = |class: &HtbClass, _| Some(class.rate);
                all.extend(self.squeezed(&params.class, "rate", rate));
                all.extend(self.bounded_above(&params.class, "ceil", |class| Some(class.ceil)));
            }
            DisciplineKind::Hfsc(params) => {
                let share = |class: &HfscClass, is_leaf| class.ls_m2.or(class.rt_m2.filter(|_| is_leaf));
                all.extend(self.squeezed(&params.class, "ls_m2", share));
                all.extend(self.bounded_above(&params.class, "ul_m2", |class| class.ul_m2));
                all.extend(self.beyond_limit(&params.class));
            }
            _ => {}
        }
        all
    }

    /// A queue that needs classes and has none.
    fn no_classes(&self) -> Option<String> {
        // A queue without a table of classes has one without a name.
        let has_none = self.queue.classes().is_some_and(|classes| classes.leaves == [""]);
        has_none.then(|| {
            format!(
                "the queue of {} schedules classes and has none, so it is a FIFO; write for example class = {{ calls = {{ .. }} }}, \
                 and customer = \"calls\" for its flows",
                self.place
            )
        })
    }

    /// Classes that are assured more in total than the rate.
    fn assured_too_much(&self) -> Option<String> {
        let sum = |rates: &mut dyn Iterator<Item = Rate>| {
            rates.fold(0, |sum, rate| sum + u128::from(rate.as_bit()))
        };
        let (assured, key) = match &self.queue.kind {
            DisciplineKind::Htb(params) => {
                let named = params.class.all().iter().filter(|class| !class.name.is_empty());
                let mut roots = named.filter(|class| class.parent.is_none()).map(|class| class.params.rate);
                (sum(&mut roots), "rate")
            }
            DisciplineKind::Hfsc(params) => {
                let mut curves = params.class.all().iter().filter_map(|class| class.params.rt_m2);
                (sum(&mut curves), "rt_m2")
            }
            _ => return None,
        };
        let shaper =
            self.queue.shaper.as_ref().map(|shaper| shaper.rate).filter(|shaper| *shaper < self.rate);
        let has = shaper.unwrap_or(self.rate);
        (assured > u128::from(has.as_bit())).then(|| {
            format!(
                "the classes of {} are assured {} Mbit/s together, and {} has {}; lower `{key}`, or some get less",
                self.place,
                assured as f64 / 1e6,
                if shaper.is_some() { "its shaper" } else { "it" },
                mbit(has)
            )
        })
    }

    /// Parents whose children have more of `key` in total than they have; `rate` returns that of a class,
    /// which is a leaf or not.
    fn squeezed<T>(
        &self,
        classes: &Classes<T>,
        key: &str,
        rate: impl Fn(&T, bool) -> Option<Rate>,
    ) -> Vec<String> {
        let rates: Vec<Option<Rate>> =
            classes.all().iter().map(|class| rate(&class.params, class.is_leaf)).collect();
        let mut below = vec![0_u128; rates.len()];
        for (class, rate) in classes.all().iter().zip(&rates) {
            if let (Some(parent), Some(rate)) = (class.parent, rate) {
                below[parent] += u128::from(rate.as_bit());
            }
        }
        let all = classes.all().iter().zip(rates).zip(below);
        let above = all.filter_map(|((class, own), below)| {
            let own = own?;
            (below > u128::from(own.as_bit())).then(|| {
                format!(
                    "the classes below class `{}` of {} have {} Mbit/s by `{key}` together, and it has {}; lower theirs, or \
                     raise its, or some get less",
                    class.name,
                    self.place,
                    below as f64 / 1e6,
                    mbit(own)
                )
            })
        });
        above.collect()
    }

    /// Classes whose `key` exceeds that of an ancestor; `most` returns that of a class.
    fn bounded_above<T>(
        &self,
        classes: &Classes<T>,
        key: &str,
        most: impl Fn(&T) -> Option<Rate>,
    ) -> Vec<String> {
        let above = classes.all().iter().filter_map(|class| {
            let own = most(&class.params)?;
            let (bounding, bound) = least_of(classes, class.parent, &most).filter(|(_, bound)| *bound < own)?;
            Some(format!(
                "`{key}` of class `{}` of {} is {} Mbit/s, and the {} of class `{bounding}` above it bound it; lower it, or raise that \
                 of `{bounding}`",
                class.name,
                self.place,
                mbit(own),
                mbit(bound)
            ))
        });
        above.take(MOST_NAMED).collect()
    }

    /// Real-time curves beyond an upper limit.
    fn beyond_limit(&self, classes: &Classes<HfscClass>) -> Vec<String> {
        let beyond = classes.all().iter().enumerate().filter_map(|(at, class)| {
            let own = class.params.rt_m2?;
            let limit = least_of(classes, Some(at), &|class: &HfscClass| class.ul_m2);
            let (limited, limit) = limit.filter(|(_, limit)| *limit < own)?;
            Some(format!(
                "`rt_m2` of class `{}` of {} is {} Mbit/s, and goes beyond the {} of `ul_m2` of class `{limited}`, which limits \
                 link-sharing alone; lower it, or raise `ul_m2`",
                class.name,
                self.place,
                mbit(own),
                mbit(limit)
            ))
        });
        beyond.take(MOST_NAMED).collect()
    }

    /// Rates of the queue itself that exceed the link's for any packet size, and so limit nothing.
    pub(crate) fn idle_rates(&self) -> impl Iterator<Item = String> {
        let shaper = self.queue.shaper.as_ref().map(|shaper| ("rate", "`shaper`", mbit(shaper.rate)));
        // A smaller packet has a larger charge relative to its size.
        let charged = self.queue.charge(SMALLEST, Bytes::ZERO).unwrap_or(SMALLEST);
        let part = SMALLEST.get() as f64 / charged.get() as f64;
        let least = |rate| (mbit(rate) * part * 1e3).round() / 1e3;
        let bandwidth = self.queue.bandwidth().map(|rate| ("bandwidth", "it", least(rate)));
        let flows = self.queue.max_flow_rate().map(|rate| ("maxrate", "it", mbit(rate)));
        let link = mbit(self.rate);
        let idle = shaper.into_iter().chain(bandwidth).chain(flows).filter(move |(_, _, own)| *own > link);
        idle.map(move |(key, out, own)| {
            format!(
                "`{key}` of the queue of {} lets {own} Mbit/s pass, more than the {link} that there are behind it, so that it holds \
                 nothing back; lower it, or leave {out} out",
                self.place
            )
        })
    }

    /// A fair scheduler with a policy that drops arriving packets; `flow`, as text, is unresponsive.
    pub(crate) fn undone_division(&self, flow: &str) -> Option<String> {
        let [scheduler, policy] = self.queue.undone_division()?;
        Some(format!(
            "`{scheduler}` of {} divides what `{policy}` lets into the buffer: if {flow} sends more than its share, it has more; write \
             drop = \"lqd\", or another that keeps shares",
            self.place
        ))
    }

    /// Weights behind equal shares; `flow`, as text, has a weight and is unresponsive.
    pub(crate) fn equal_in_front(&self, flow: &str) -> Option<String> {
        let behind = self.queue.equal_in_front()?;
        Some(format!(
            "`sffc` of {} holds flows that do not answer to drops to equal parts in front of `{behind}`, whatever the `weight` of {flow}; \
             write discipline = \"fq_codel\", or another that gives each flow its share",
            self.place
        ))
    }

    /// Labels of this form that cannot hold `rate` bits a second for a weight of 1, that of `flow`, as text.
    pub(crate) fn full_labels(&self, flow: &str, rate: f64, written: &RateLabelParams) -> Option<String> {
        let most = written.format().max();
        let wider =
            if written.bits < Label::BITS { format!("bits = {}, or ", Label::BITS) } else { String::new() };
        (rate > most).then(|| {
            format!(
                "labels of {flow} would say {:.0} Mbit/s for a weight of 1 in the queue of {}, and hold {:.0} (`bits` = {}), so that it is \
                 not held to its share; write {wider}larger weights for all",
                rate / 1e6,
                self.place,
                most / 1e6,
                written.bits
            )
        })
    }
}

/// The lowest rate by `most` of a class and its ancestors, with the name of the class that has it.
fn least_of<'a, T>(
    classes: &'a Classes<T>,
    from: Option<usize>,
    most: &impl Fn(&T) -> Option<Rate>,
) -> Option<(&'a str, Rate)> {
    let all = classes.all();
    let up = std::iter::successors(from, |at| all[*at].parent);
    let bounds = up.filter_map(|at| Some((all[at].name.as_str(), most(&all[at].params)?)));
    bounds.min_by_key(|(_, bound)| *bound)
}

/// Text for the ones of `all` that are not named.
pub(crate) fn and_more(all: usize) -> String {
    match all.saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    }
}
