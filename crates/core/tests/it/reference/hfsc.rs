//! H-FSC: Stoica, Zhang, Ng 1997, sections IV and V, with each curve as the minimum of all copies that ever
//! started: it reaches an amount at the latest time at which one of them does.
//!
//! For concave and straight curves; in whole nanoseconds and bytes, whose rounding the paper does not
//! specify.

/// A curve: bytes per nanosecond, nanoseconds, bytes per nanosecond.
pub type Curve = (u64, u64, u64);

/// A class; parents come before their children.
#[derive(Clone, Debug)]
pub struct Class {
    /// The parent.
    pub parent: Option<usize>,
    /// The real-time curve of a leaf.
    pub rt: Option<Curve>,
    /// The link-sharing curve.
    pub ls: Curve,
}

#[derive(Clone, Debug, Default)]
struct State {
    queue: Vec<(u32, u64)>,
    is_active: bool,
    /// Starts of D and of V, as (x, y).
    deadlines: Vec<(u64, u64)>,
    virtuals: Vec<(u64, u64)>,
    /// The paper's c and w.
    c: u64,
    w: u64,
    v: u64,
    /// The largest virtual time at which a child was served.
    latest: u64,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Hfsc {
    classes: Vec<Class>,
    states: Vec<State>,
    /// The largest virtual time at which a root was served.
    latest: u64,
}

/// The time at which the curve, with these starts, reaches `amount`.
fn reaches((m1, d, m2): Curve, starts: &[(u64, u64)], amount: u64) -> u64 {
    let of = |&(x, y): &(u64, u64)| match amount.saturating_sub(y) {
        0 => x,
        more if more <= m1 * d => x + more.div_ceil(m1),
        more => x + d + (more - m1 * d).div_ceil(m2),
    };
    starts.iter().map(of).max().unwrap_or(0)
}

impl Hfsc {
    /// No packets.
    #[must_use]
    pub fn new(classes: Vec<Class>) -> Self {
        Self { states: vec![State::default(); classes.len()], classes, latest: 0 }
    }

    fn siblings(&self, at: usize) -> Vec<usize> {
        let parent = self.classes[at].parent;
        (0..self.classes.len()).filter(|&other| self.classes[other].parent == parent).collect()
    }

    /// A packet of a leaf arrives.
    pub fn enqueue(&mut self, now: u64, leaf: usize, id: u32, size: u64) {
        self.states[leaf].queue.push((id, size));
        if self.states[leaf].queue.len() > 1 {
            return;
        }
        let c = self.states[leaf].c;
        self.states[leaf].deadlines.push((now, c));
        let mut class = Some(leaf);
        while let Some(at) = class.filter(|&at| !self.states[at].is_active) {
            let vs: Vec<u64> = self
                .siblings(at)
                .iter()
                .map(|&at| &self.states[at])
                .filter(|s| s.is_active)
                .map(|s| s.v)
                .collect();
            let start = match (vs.iter().min(), vs.iter().max()) {
                (Some(least), Some(largest)) => u64::midpoint(*least, *largest),
                _ => self.classes[at].parent.map_or(self.latest, |parent| self.states[parent].latest),
            };
            let state = &mut self.states[at];
            state.is_active = true;
            state.virtuals.push((start, state.w));
            state.v = reaches(self.classes[at].ls, &state.virtuals, state.w);
            class = self.classes[at].parent;
        }
    }

    /// The packet that is served.
    pub fn dequeue(&mut self, now: u64) -> Option<u32> {
        let deadline = |at: usize| {
            let (curve, state) = (self.classes[at].rt?, &self.states[at]);
            let &(_, size) = state.queue.first()?;
            let is_eligible = reaches(curve, &state.deadlines, state.c) <= now;
            is_eligible.then(|| reaches(curve, &state.deadlines, state.c + size))
        };
        let earliest = (0..self.classes.len()).filter_map(|at| Some((deadline(at)?, at))).min();
        let leaf = match earliest {
            Some((_, leaf)) => leaf,
            None => {
                let (mut parent, mut chosen) = (None, None);
                loop {
                    let children = (0..self.classes.len()).filter(|&at| self.classes[at].parent == parent);
                    let active = children.filter(|&at| self.states[at].is_active);
                    match active.min_by_key(|&at| (self.states[at].v, at)) {
                        Some(child) => (parent, chosen) = (Some(child), Some(child)),
                        None => break,
                    }
                }
                chosen?
            }
        };
        let (id, size) = self.states[leaf].queue.remove(0);
        if earliest.is_some() {
            self.states[leaf].c += size;
        }
        let mut class = Some(leaf);
        while let Some(at) = class {
            let is_active = !self.states[at].queue.is_empty()
                || (0..self.classes.len())
                    .any(|c| self.classes[c].parent == Some(at) && self.states[c].is_active);
            let state = &mut self.states[at];
            state.w += size;
            state.v = reaches(self.classes[at].ls, &state.virtuals, state.w);
            state.is_active = is_active;
            let v = state.v;
            class = self.classes[at].parent;
            let latest = class.map_or(&mut self.latest, |parent| &mut self.states[parent].latest);
            *latest = (*latest).max(v);
        }
        Some(id)
    }
}
