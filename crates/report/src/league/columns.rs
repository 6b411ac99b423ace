//! Columns of tables of cells: a heading, the metric, and which end of it is good.

use super::{Cell, Counted, League, Played, Situation};
use crate::quantities::{
    BEST_SHARE, BITRATE, COMPLETION_P50, COMPLETION_P95, DELAY_P95, JAIN, LOST, MOS, MOUTH_TO_EAR,
    QUEUE_DELAY_P50, QUEUE_DELAY_P95, QUEUE_DELAY_P99, Quantity, R2, RPM, SHARE, STALL_RATIO, UTILISATION,
    WORST_SHARE,
};
use crate::statistics::Estimate;

/// A column of a table of cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) metric: String,
    /// Whether the value is a ratio, shown in percent.
    pub(super) is_percent: bool,
}

/// Maximum of columns of groups. Chosen: more make a table wider than a screen, and the page of the cell has
/// them all.
const MAX_OF_GROUPS: usize = 10;

impl Column {
    fn new(heading: impl Into<String>, metric: impl Into<String>) -> Self {
        Self { heading: heading.into(), metric: metric.into(), is_percent: false }
    }

    fn percent(self) -> Self {
        Self { is_percent: true, ..self }
    }

    /// Whether any cell has a value.
    fn is_known(&self, cells: &[Cell]) -> bool {
        played(cells).any(|played| played.metric(&self.metric).is_some())
    }

    /// Whether the values are known and differ: for example, a voice flow has the same rate with any queue. A
    /// single cell always passes.
    fn tells(&self, cells: &[Cell]) -> bool {
        let means: Vec<f64> =
            played(cells).filter_map(|played| Some(played.metric(&self.metric)?.mean)).collect();
        match means.as_slice() {
            [] => false,
            [first, rest @ ..] => {
                rest.is_empty()
                    || BITRATE.part(&self.metric).is_none()
                    || rest.iter().any(|mean| mean != first)
            }
        }
    }

    /// The value of a cell.
    pub(super) fn of(&self, played: &Played) -> Option<Estimate> {
        let found = played.metric(&self.metric)?;
        let scale = if self.is_percent { 100.0 } else { 1.0 };
        let ci95 = found.ci95.map(|half| half * scale);
        Some(Estimate { mean: found.mean * scale, ci95, ..found })
    }
}

/// The columns of every situation: shares, then the link, then losses.
pub(super) fn common(situation: &Situation) -> Vec<Column> {
    let mut all =
        vec![Column::new("worst share", WORST_SHARE.name), Column::new("best share", BEST_SHARE.name)];
    all.push(Column::new("Jain", JAIN.name));
    all.push(Column::new("R²", R2.name));
    if let Some(link) = &situation.link {
        all.push(Column::new("used, %", UTILISATION.at(link)).percent());
        for (share, delay) in [("50", QUEUE_DELAY_P50), ("95", QUEUE_DELAY_P95), ("99", QUEUE_DELAY_P99)] {
            all.push(Column::new(format!("queue p{share}, ms"), delay.at(link)));
        }
    }
    all.push(Column::new("lost, %", LOST.name).percent());
    all
}

/// The columns of a situation: the common ones, and those that matter for each group of flows. Columns
/// without values are left out.
pub(super) fn of(situation: &Situation) -> Vec<Column> {
    let cells = &situation.cells;
    let mut all = common(situation);
    let mut of_groups = Vec::new();
    for group in &situation.groups {
        let columns = of_group(group, cells);
        if of_groups.len() + columns.len() <= MAX_OF_GROUPS {
            of_groups.extend(columns);
        }
    }
    all.append(&mut of_groups);
    all.retain(|column| column.is_known(cells));
    all
}

/// The columns that matter for a group: the quality of media, the times of its transfers, or else its share
/// and its delay.
fn of_group(group: &str, cells: &[Cell]) -> Vec<Column> {
    let column =
        |heading: &str, quantity: Quantity| Column::new(format!("{group} {heading}"), quantity.at(group));
    let felt = [
        column("stalled, %", STALL_RATIO).percent(),
        column("to ear, ms", MOUTH_TO_EAR),
        column("MOS", MOS),
        column("Mb/s", BITRATE),
        column("RPM", RPM),
    ];
    let felt: Vec<Column> = felt.into_iter().filter(|column| column.tells(cells)).collect();
    let done = [column("p50 done, s", COMPLETION_P50), column("p95 done, s", COMPLETION_P95)];
    match felt.is_empty() {
        false => felt,
        true if done[0].is_known(cells) => done.into(),
        true => vec![column("share", SHARE), column("p95, ms", DELAY_P95)],
    }
}

/// The heading of a table, and its column for a situation.
type Compared = (&'static str, fn(&Situation) -> Option<Column>);

/// The quantities that are compared over all situations.
pub(super) fn across() -> [Compared; 5] {
    [
        ("Worst share", |_| Some(Column::new("worst share", WORST_SHARE.name))),
        ("Jain's index", |_| Some(Column::new("Jain", JAIN.name))),
        ("Delay in the queue, 95 %, ms", |situation| {
            let link = situation.link.as_ref()?;
            Some(Column::new("p95", QUEUE_DELAY_P95.at(link)))
        }),
        ("Link used, %", |situation| {
            let link = situation.link.as_ref()?;
            Some(Column::new("used", UTILISATION.at(link)).percent())
        }),
        ("Packets lost, %", |_| Some(Column::new("lost", LOST.name).percent())),
    ]
}

/// The cells of disciplines that ran.
pub(super) fn played(cells: &[Cell]) -> impl Iterator<Item = &Played> {
    cells.iter().filter_map(Cell::played)
}

/// A point of a front: a discipline's delay, and the share of its worst-off flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tradeoff {
    /// Index of the discipline.
    pub(super) at: usize,
    /// 95th percentile of the delay in the queue, ms.
    pub(super) delay: f64,
    pub(super) share: Estimate,
    /// Whether no other discipline is better in delay or worst share without being worse in the other.
    pub(super) is_on_front: bool,
}

/// The cells of a situation in the plane of delay and worst share, by delay.
pub(super) fn tradeoffs(league: &League, situation: &Situation) -> Vec<Tradeoff> {
    let Some(link) = &situation.link else { return Vec::new() };
    let delay = QUEUE_DELAY_P95.at(link);
    let of = |at: usize| {
        let played = situation.cells.get(at)?.played()?;
        let (delay, share) = (played.metric(&delay)?.mean, played.metric(WORST_SHARE.name)?);
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

/// A heading, and its number.
type Cost = (&'static str, fn(&Counted) -> Option<u64>);

/// The counted costs of disciplines.
pub(super) const COSTS: [Cost; 3] = [
    ("Instructions, 1,000 flows", |counted| counted.few),
    ("Instructions, 100,000 flows", |counted| counted.many),
    ("Bytes a flow", |counted| counted.bytes),
];
