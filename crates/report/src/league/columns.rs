//! What tables show of a cell: a heading, the metric, and which end of it is good.

use super::{Cell, League, Played, Situation};
use crate::statistics::Estimate;

/// A column of a table of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) metric: String,
    /// Whether it is a share of one, shown in percent.
    pub(super) is_percent: bool,
}

/// Chosen: with more groups a table is wider than a screen, and the page of the cell has them all.
const MAX_GROUPS: usize = 4;

impl Column {
    fn new(heading: impl Into<String>, metric: impl Into<String>) -> Self {
        Self { heading: heading.into(), metric: metric.into(), is_percent: false }
    }

    fn percent(self) -> Self {
        Self { is_percent: true, ..self }
    }

    /// What it says of a cell.
    pub(super) fn of(&self, played: &Played) -> Option<Estimate> {
        let found = played.metric(&self.metric)?;
        let scale = if self.is_percent { 100.0 } else { 1.0 };
        let ci95 = found.ci95.map(|half| half * scale);
        Some(Estimate { mean: found.mean * scale, ci95, ..found })
    }
}

/// The columns that any situation has: shares, then the link, then losses.
pub(super) fn common(situation: &Situation) -> Vec<Column> {
    let mut all = vec![Column::new("worst share", "worst_share"), Column::new("best share", "best_share")];
    all.push(Column::new("Jain", "jain"));
    all.push(Column::new("R²", "r2"));
    if let Some(link) = &situation.link {
        all.push(Column::new("used, %", format!("utilisation/{link}")).percent());
        for share in ["50", "95", "99"] {
            all.push(Column::new(format!("queue p{share}, ms"), format!("queue_delay_p{share}_ms/{link}")));
        }
    }
    all.push(Column::new("lost, %", "lost").percent());
    all
}

/// The columns of a situation: the common ones, and for each group of flows how long its packets or transfers took. Columns of which no
/// cell has anything are left out.
pub(super) fn of(situation: &Situation) -> Vec<Column> {
    let mut all = common(situation);
    for group in situation.groups.iter().take(MAX_GROUPS) {
        let done = format!("completion_p95_s/{group}");
        let is_finite = played(&situation.cells).any(|played| played.metric(&done).is_some());
        if is_finite {
            all.push(Column::new(format!("{group} p50 done, s"), format!("completion_p50_s/{group}")));
            all.push(Column::new(format!("{group} p95 done, s"), done));
        } else {
            all.push(Column::new(format!("{group} share"), format!("share/{group}")));
            all.push(Column::new(format!("{group} p95, ms"), format!("delay_p95_ms/{group}")));
        }
    }
    all.retain(|column| played(&situation.cells).any(|played| column.of(played).is_some()));
    all
}

/// The heading of a table, and its column for a situation.
type Quantity = (&'static str, fn(&Situation) -> Option<Column>);

/// The quantities that are compared over all situations.
pub(super) fn across() -> [Quantity; 5] {
    [
        ("Worst share", |_| Some(Column::new("worst share", "worst_share"))),
        ("Jain's index", |_| Some(Column::new("Jain", "jain"))),
        ("Delay in the queue, 95 %, ms", |situation| {
            let link = situation.link.as_ref()?;
            Some(Column::new("p95", format!("queue_delay_p95_ms/{link}")))
        }),
        ("Link used, %", |situation| {
            let link = situation.link.as_ref()?;
            Some(Column::new("used", format!("utilisation/{link}")).percent())
        }),
        ("Packets lost, %", |_| Some(Column::new("lost", "lost").percent())),
    ]
}

/// The cells that are not empty.
pub(super) fn played(cells: &[Cell]) -> impl Iterator<Item = &Played> {
    cells.iter().filter_map(Cell::played)
}

/// A point of a front: what a discipline costs in delay, and what it gives the worst-off flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tradeoff {
    /// The place of the discipline.
    pub(super) at: usize,
    /// 95th percentile of the delay in the queue, ms.
    pub(super) delay: f64,
    pub(super) share: Estimate,
    /// Whether no other has less delay and a larger worst share, or one of them and as much of the other.
    pub(super) is_on_front: bool,
}

/// The cells of a situation in the plane of delay and worst share, by delay.
pub(super) fn tradeoffs(league: &League, situation: &Situation) -> Vec<Tradeoff> {
    let Some(link) = &situation.link else { return Vec::new() };
    let delay = format!("queue_delay_p95_ms/{link}");
    let of = |at: usize| {
        let played = situation.cells.get(at)?.played()?;
        let (delay, share) = (played.metric(&delay)?.mean, played.metric("worst_share")?);
        Some(Tradeoff { at, delay, share, is_on_front: false })
    };
    let mut all: Vec<Tradeoff> = (0..league.disciplines.len()).filter_map(of).collect();
    let beats = |a: &Tradeoff, b: &Tradeoff| {
        a.delay <= b.delay
            && a.share.mean >= b.share.mean
            && (a.delay < b.delay || a.share.mean > b.share.mean)
    };
    let fronts: Vec<bool> = all.iter().map(|one| !all.iter().any(|other| beats(other, one))).collect();
    all.iter_mut().zip(fronts).for_each(|(one, is_on_front)| one.is_on_front = is_on_front);
    all.sort_by(|a, b| a.delay.total_cmp(&b.delay).then(a.at.cmp(&b.at)));
    all
}
