//! HTB as a fluid: the rates defined in Devera's "Hierarchical token bucket theory" (2002), eq. 1 to 3, level
//! by level.
//!
//! Each leaf with demand gets its assured rate. Then, from the lowest level up, a class lends the unused part
//! of its own rate to those below it that ask, the lowest priority number first, by quantum, and no class
//! gets more than its ceiling. The link is last.

/// A class; parents come before their children.
#[derive(Clone, Debug)]
pub struct Class {
    /// The parent.
    pub parent: Option<usize>,
    /// AR.
    pub rate: f64,
    /// CR.
    pub ceil: f64,
    /// P of a leaf.
    pub prio: u64,
    /// Q.
    pub quantum: f64,
    /// Whether a leaf has demand, which is then unlimited.
    pub demands: bool,
}

struct Fluid<'a> {
    classes: &'a [Class],
    children: Vec<Vec<usize>>,
    /// The R of each class.
    rates: Vec<f64>,
}

/// The rates of all classes over a link of rate `link`.
#[must_use]
pub fn rates(classes: &[Class], link: f64) -> Vec<f64> {
    let mut children = vec![Vec::new(); classes.len()];
    let mut depth = vec![0; classes.len()];
    for (at, class) in classes.iter().enumerate() {
        if let Some(parent) = class.parent {
            children[parent].push(at);
            depth[at] = depth[parent] + 1;
        }
    }
    let top = depth.iter().copied().max().unwrap_or(0);
    let mut fluid = Fluid { classes, children, rates: vec![0.0; classes.len()] };
    let mut left = link;
    for level in 0..=top {
        let of_level = |at: usize, fluid: &Fluid<'_>| match fluid.children[at].is_empty() {
            true => level == 0,
            false => level == top - depth[at],
        };
        for prio in 0..8 {
            let lenders: Vec<usize> = (0..classes.len()).filter(|&at| of_level(at, &fluid)).collect();
            // The amount that each class can lend of its own rate.
            let own: Vec<f64> =
                lenders.iter().map(|&at| (classes[at].rate - fluid.rates[at]).max(0.0)).collect();
            let wants: Vec<f64> =
                lenders.iter().zip(&own).map(|(&at, &own)| fluid.wants(at, prio).min(own)).collect();
            let weights: Vec<f64> = lenders.iter().map(|&at| classes[at].quantum).collect();
            for (&at, amount) in lenders.iter().zip(fill(left, &wants, &weights)) {
                fluid.give(at, prio, amount);
                left -= amount;
                let mut above = classes[at].parent;
                while let Some(parent) = above {
                    fluid.rates[parent] += amount;
                    above = classes[parent].parent;
                }
            }
        }
    }
    fluid.rates
}

impl Fluid<'_> {
    /// The additional amount that the class and those below it could use, at this priority.
    fn wants(&self, at: usize, prio: u64) -> f64 {
        let Class { ceil, prio: own, demands, .. } = self.classes[at];
        let room = (ceil - self.rates[at]).max(0.0);
        if self.children[at].is_empty() {
            return if demands && own == prio { room } else { 0.0 };
        }
        room.min(self.children[at].iter().map(|&child| self.wants(child, prio)).sum())
    }

    fn give(&mut self, at: usize, prio: u64, amount: f64) {
        self.rates[at] += amount;
        let children = self.children[at].clone();
        let wants: Vec<f64> = children.iter().map(|&child| self.wants(child, prio)).collect();
        let weights: Vec<f64> = children.iter().map(|&child| self.classes[child].quantum).collect();
        for (&child, part) in children.iter().zip(fill(amount, &wants, &weights)) {
            self.give(child, prio, part);
        }
    }
}

/// Divides `amount` in proportion to `weights`, at most `wants` for each, by bisection.
fn fill(amount: f64, wants: &[f64], weights: &[f64]) -> Vec<f64> {
    let at = |level: f64| -> Vec<f64> {
        wants.iter().zip(weights).map(|(want, weight)| want.min(weight * level)).collect()
    };
    if wants.iter().sum::<f64>() <= amount {
        return wants.to_vec();
    }
    let (mut low, mut high) = (0.0, amount / weights.iter().copied().fold(f64::INFINITY, f64::min));
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if at(middle).iter().sum::<f64>() <= amount { low = middle } else { high = middle }
    }
    at(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3 of the user guide: A (40) and B (60 of 100) with two services each; A's WWW 30, SMTP 10.
    #[test]
    fn the_example_of_the_user_guide() {
        let class =
            |parent, rate, demands| Class { parent, rate, ceil: 100.0, prio: 0, quantum: rate, demands };
        let tree = |smtp, b| {
            vec![
                class(None, 100.0, false),
                class(Some(0), 40.0, false),
                class(Some(0), 60.0, b),
                class(Some(1), 30.0, true),
                class(Some(1), 10.0, smtp),
            ]
        };
        let of = |tree: &[Class]| rates(tree, 100.0).into_iter().map(f64::round).collect::<Vec<_>>();
        assert_eq!(of(&tree(true, true)), [100.0, 40.0, 60.0, 30.0, 10.0]);
        // SMTP's unused part goes to WWW, its sibling.
        assert_eq!(of(&tree(false, true)), [100.0, 40.0, 60.0, 40.0, 0.0]);
        // B's unused part goes to A's services by their quanta, 3 : 1.
        assert_eq!(of(&tree(true, false)), [100.0, 100.0, 0.0, 75.0, 25.0]);
    }
}
