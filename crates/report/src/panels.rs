//! Figures that the report and files share: each quantity over the parameters of a sweep, shares, and drops.
//!
//! They only need settings, metrics and shares of points, so a stored run has the same figures as one in
//! memory.

use apportion_core::queue::DropReason;

use crate::figure::{
    Across, Bar, COLOURS, DotRow, Drawing, Heat, Line, Panel, Stack, dots, heat, lines, stacks,
};
use crate::metrics::Metrics;
use crate::quantities::{
    BITRATE, COMPLETION_P95, DELAY_P95, GROUP_DROPS, JAIN, LINK_DROPS, MOS, MOUTH_TO_EAR, QUEUE_DELAY_P95,
    Quantity, RPM, SHARE, STALL_RATIO, THROUGHPUT, TOTAL_DROPS, TOTAL_MARKED, UTILISATION,
};
use crate::shares::{FlowShare, GroupShare, Keys, group_shares, in_order};
use crate::statistics::{Estimate, number};
use crate::sweep::{Axis, Numbers, Sweep};

/// Maximum of figures of a quantity; more combinations of the parameters that are on no axis are left to the
/// tables.
const MAX_PANELS: usize = 24;
/// Maximum of bars of flows; with more flows the bars are of groups.
pub(crate) const MAX_BARS: usize = 40;
/// Maximum of rows. Chosen: as many as fit a figure of a screen's height.
const MAX_ROWS: usize = 32;
/// Maximum of figures of drops; other groups and links are in the tables.
const MAX_DROP_PANELS: usize = 12;
/// Maximum of groups or links in a figure. Chosen: as many as can be distinguished.
const MAX_NAMES: usize = 6;

/// The first names, and a note of how many of all groups or links these are, unless all.
fn first(mut names: Vec<String>, most: usize, what: &str) -> (Vec<String>, Option<String>) {
    let all = names.len();
    names.truncate(most);
    (names, (all > most).then(|| format!("{most} of {all} {what} are drawn")))
}

/// The content of a figure: a metric, or the same metric of each group or link.
struct Drawn {
    title: &'static str,
    /// Name for `--metric`.
    name: &'static str,
    /// (group or link, metric); the group or link is empty for a metric of the whole point.
    metrics: Vec<(String, String)>,
    /// A note of how many of the groups or links these are, unless all.
    cut: Option<String>,
    /// The height of a dashed line.
    level: Option<f64>,
}

impl Drawn {
    /// The quantities that at least one of the points measured, the most important first.
    fn all(metrics: &[&Metrics]) -> Vec<Self> {
        let each = |title, quantity: Quantity, what, level| {
            let found = metrics.iter().flat_map(|metrics| metrics.of_each(quantity));
            let (found, cut) = first(in_order(found.map(|(part, _)| part.to_owned())), MAX_NAMES, what);
            let metrics = found.into_iter().map(|part| (part.clone(), quantity.at(&part))).collect();
            Self { title, name: quantity.name, metrics, cut, level }
        };
        let whole = |title, Quantity { name, .. }, level| {
            let is_any = |metrics: &&Metrics| metrics.get(name).is_some_and(|estimate| estimate.mean != 0.0);
            let metrics =
                if metrics.iter().any(is_any) { vec![(String::new(), name.to_owned())] } else { Vec::new() };
            Self { title, name, metrics, cut: None, level }
        };
        let all = [
            each("Throughput over entitlement", SHARE, "groups", Some(1.0)),
            each("Throughput of a flow, Mb/s", THROUGHPUT, "groups", None),
            each("Completion time (95th percentile), s", COMPLETION_P95, "groups", None),
            each("Round trips in a minute", RPM, "groups", None),
            each("Stall time of video, share", STALL_RATIO, "groups", None),
            each("Bit rate of video and calls, Mb/s", BITRATE, "groups", None),
            each("Mean opinion score of calls", MOS, "groups", None),
            each("Mouth-to-ear delay, ms", MOUTH_TO_EAR, "groups", None),
            each("One-way delay (95th percentile), ms", DELAY_P95, "groups", None),
            each("Queue delay (95th percentile), ms", QUEUE_DELAY_P95, "links", None),
            each("Utilisation", UTILISATION, "links", Some(1.0)),
            whole("Jain index", JAIN, Some(1.0)),
            whole("Dropped packets", TOTAL_DROPS, None),
            whole("Marked packets", TOTAL_MARKED, None),
        ];
        all.into_iter().filter(|drawn| !drawn.metrics.is_empty()).collect()
    }
}

/// A point of a sweep.
#[derive(Clone, Copy)]
pub(crate) struct Point<'a> {
    /// Paths and values.
    pub(crate) settings: &'a [(String, String)],
    pub(crate) metrics: &'a Metrics,
}

/// The axes of a sweep in a figure.
enum Arrangement {
    /// A number on the horizontal axis; lines are the values of the second axis, or groups and links.
    Lines { x: usize, names: Option<usize> },
    /// Two numbers.
    Heat { x: usize, y: usize },
    /// Rows are names; dots in a row are the values of the second axis, or groups and links.
    Dots { rows: usize, names: Option<usize> },
}

impl Arrangement {
    /// The arrangement, with the values of the parameter `coloured` as colours, if one is named.
    fn of(sweep: &Sweep, coloured: Option<&str>) -> Option<Self> {
        if let Some(run) = coloured.and_then(|name| sweep.axes.iter().position(|axis| axis.name == name)) {
            let names = Some(run).filter(|&run| sweep.axes[run].values.len() <= COLOURS);
            let x = sweep.longest_numbers(&[run]).map(|x| Self::Lines { x, names });
            let rows = || sweep.longest_names(&[run]).map(|rows| Self::Dots { rows, names });
            return x.or_else(rows).or(Some(Self::Dots { rows: run, names: None }));
        }
        let few = |axis: &usize| sweep.axes[*axis].values.len() <= COLOURS;
        if let Some(x) = sweep.longest_numbers(&[]) {
            let names = sweep.longest_names(&[]).filter(few);
            return Some(match (names, sweep.longest_numbers(&[x])) {
                (None, Some(y)) => Self::Heat { x, y },
                _ => Self::Lines { x, names },
            });
        }
        let rows = sweep.longest_names(&[])?;
        Some(Self::Dots { rows, names: sweep.longest_names(&[rows]).filter(few) })
    }

    /// The axes that are in the figure.
    fn axes(&self) -> Vec<usize> {
        match *self {
            Self::Lines { x: first, names: second } | Self::Dots { rows: first, names: second } => {
                [first].into_iter().chain(second).collect()
            }
            Self::Heat { x, y } => vec![x, y],
        }
    }

    const fn names(&self) -> Option<usize> {
        match *self {
            Self::Lines { names, .. } | Self::Dots { names, .. } => names,
            Self::Heat { .. } => None,
        }
    }
}

/// The metrics that have figures of a sweep, by the names that choose them.
pub(crate) fn sweep_metrics(points: &[Point<'_>]) -> Vec<String> {
    let all: Vec<&Metrics> = points.iter().map(|point| point.metrics).collect();
    Drawn::all(&all).iter().map(|drawn| drawn.name.to_owned()).collect()
}

/// The figures of a sweep.
#[derive(Default)]
pub(crate) struct SweepPanels {
    pub(crate) panels: Vec<Panel>,
    /// Number of combinations of parameters that are not drawn, for each quantity.
    pub(crate) left_out: usize,
    /// Whether the figures show means as colours, without intervals and levels.
    pub(crate) are_heat_maps: bool,
}

/// The figures of a sweep, or of one metric if it is named. Empty without a sweep.
pub(crate) fn sweep_panels(points: &[Point<'_>], metric: Option<&str>) -> SweepPanels {
    panels_of(points, metric, None)
}

/// The figures of a sweep with one parameter as colours.
pub(crate) fn sweep_panels_by(points: &[Point<'_>], coloured: &str) -> SweepPanels {
    panels_of(points, None, Some(coloured))
}

fn panels_of(points: &[Point<'_>], metric: Option<&str>, coloured: Option<&str>) -> SweepPanels {
    let settings: Vec<&[(String, String)]> = points.iter().map(|point| point.settings).collect();
    let Some(sweep) = Sweep::of(&settings) else { return SweepPanels::default() };
    let Some(arrangement) = Arrangement::of(&sweep, coloured) else { return SweepPanels::default() };
    let taken = arrangement.axes();
    let fixed: Vec<usize> = (0..sweep.axes.len()).filter(|axis| !taken.contains(axis)).collect();
    let mut combinations: Vec<Vec<usize>> =
        sweep.at.iter().map(|at| fixed.iter().map(|axis| at[*axis]).collect()).collect();
    combinations.sort();
    combinations.dedup();
    let left_out = combinations.len().saturating_sub(MAX_PANELS);
    combinations.truncate(MAX_PANELS);

    let mut panels = Vec::new();
    let all: Vec<&Metrics> = points.iter().map(|point| point.metrics).collect();
    let is_wanted = |drawn: &Drawn| metric.is_none_or(|wanted| drawn.name == wanted);
    for drawn in Drawn::all(&all).into_iter().filter(is_wanted) {
        // A figure for each group or link, unless these are the colours.
        let parts: Vec<&[(String, String)]> = match &arrangement {
            Arrangement::Heat { .. } => drawn.metrics.chunks(1).collect(),
            _ if arrangement.names().is_some() => drawn.metrics.chunks(1).collect(),
            _ => vec![&drawn.metrics],
        };
        for part in parts {
            let title = match part {
                [(name, _)] if !name.is_empty() => format!("{}: {name}", drawn.title),
                _ => drawn.title.to_owned(),
            };
            let marks = Marks::of(points, &sweep, arrangement.names(), part);
            for combination in &combinations {
                let note =
                    fixed.iter().zip(combination).map(|(axis, value)| sweep.axes[*axis].setting(*value));
                let note = note.chain(drawn.cut.clone());
                let is_here =
                    |at: &[usize]| fixed.iter().map(|axis| at[*axis]).eq(combination.iter().copied());
                let legend = legend(&sweep, &arrangement, part);
                let names: Vec<String> = match legend.is_empty() {
                    true => part.iter().map(|(name, _)| name.clone()).collect(),
                    false => legend.iter().map(|(_, name)| name.clone()).collect(),
                };
                // Lines are metrics, or the same metric for several values.
                let row = |key: Option<usize>| {
                    let found = if part.len() > 1 { key.and_then(|key| part.get(key)) } else { part.first() };
                    found.map_or_else(String::new, |(_, metric)| metric.clone())
                };
                let drawing = marks.draw(&sweep, &arrangement, is_here, &drawn);
                panels.push(Panel {
                    title: title.clone(),
                    note: note.collect::<Vec<_>>().join(", "),
                    legend,
                    drawing: drawing.of(drawn.title, &names).with_rows(row),
                });
            }
        }
    }
    SweepPanels { panels, left_out, are_heat_maps: matches!(arrangement, Arrangement::Heat { .. }) }
}

impl Axis {
    /// The setting of one value, with the parameter's name.
    fn setting(&self, value: usize) -> String {
        format!("{} = {}", self.name, self.values[value])
    }
}

fn legend(sweep: &Sweep, arrangement: &Arrangement, part: &[(String, String)]) -> Vec<(usize, String)> {
    match (arrangement, arrangement.names()) {
        (Arrangement::Heat { .. }, _) => Vec::new(),
        (_, Some(axis)) => sweep.axes[axis].values.iter().cloned().enumerate().collect(),
        (_, None) if part.len() < 2 => Vec::new(),
        (_, None) => part.iter().map(|(name, _)| name.clone()).enumerate().collect(),
    }
}

/// The measured values of one or several metrics: for each the index of its point, and the key of its colour.
struct Marks<'a> {
    all: Vec<(&'a [usize], usize, Estimate)>,
    /// The highest value, intervals included.
    high: f64,
    /// The lowest and the highest mean.
    ends: (f64, f64),
}

impl<'a> Marks<'a> {
    fn of(points: &[Point<'_>], sweep: &'a Sweep, names: Option<usize>, part: &[(String, String)]) -> Self {
        let of_point = |(point, at): (&Point<'_>, &'a Vec<usize>)| {
            let mark = |(key, (_, metric)): (usize, &(String, String))| {
                Some((at.as_slice(), names.map_or(key, |axis| at[axis]), point.metrics.get(metric)?))
            };
            part.iter().enumerate().filter_map(mark).collect::<Vec<_>>()
        };
        let all: Vec<_> = points.iter().zip(&sweep.at).flat_map(of_point).collect();
        let values = || all.iter().map(|(_, _, estimate)| estimate.mean);
        // Intervals over two or three seeds are wide: they may exceed the figure.
        let reach =
            |estimate: &Estimate| estimate.mean + estimate.ci95.unwrap_or(0.0).min(0.5 * estimate.mean);
        let most = values().fold(0.0, f64::max);
        Self {
            // Differences below a twentieth get no colour.
            ends: (values().fold(f64::INFINITY, f64::min).min(0.95 * most), most),
            high: all.iter().map(|(_, _, estimate)| reach(estimate)).fold(0.0, f64::max),
            all,
        }
    }

    fn draw(
        &self,
        sweep: &Sweep,
        arrangement: &Arrangement,
        is_here: impl Fn(&[usize]) -> bool,
        &Drawn { title, level, .. }: &Drawn,
    ) -> Drawing {
        let here = || self.all.iter().filter(|(at, _, _)| is_here(at));
        let top = self.high.max(level.unwrap_or(0.0)) * 1.06;
        match *arrangement {
            Arrangement::Lines { x, .. } => {
                let axis = &sweep.axes[x];
                let numbers = axis.numbers.as_ref().map_or(&[][..], |numbers| &numbers.values);
                let mut all: Vec<Line> = Vec::new();
                let mut places: Vec<_> = here().collect();
                places.sort_by_key(|(at, key, _)| (*key, at[x]));
                for (at, key, estimate) in places {
                    if all.last().is_none_or(|line| line.key != *key) {
                        all.push(Line { key: *key, points: Vec::new() });
                    }
                    let point = (numbers[at[x]], estimate.mean, estimate.ci95);
                    all.iter_mut().last().into_iter().for_each(|line| line.points.push(point));
                }
                let ticks = numbers.iter().copied().zip(axis.labels()).collect();
                let is_log = axis.numbers.as_ref().is_some_and(Numbers::is_log);
                lines(&Across { name: axis.title(), ticks, is_log, y_max: top, level }, &all)
            }
            Arrangement::Heat { x, y } => {
                let (across, down) = (&sweep.axes[x], &sweep.axes[y]);
                heat(&Heat {
                    x: (across.title(), across.labels()),
                    y: (down.title(), down.labels()),
                    cells: here().map(|(at, _, estimate)| (at[y], at[x], estimate.mean)).collect(),
                    of: title.to_owned(),
                    ends: self.ends,
                })
            }
            Arrangement::Dots { rows, .. } => {
                let row = |(value, label): (usize, &String)| {
                    let of_row = here().filter(|(at, _, _)| at[rows] == value);
                    let dots = of_row.map(|(_, key, estimate)| (*key, estimate.mean, estimate.ci95));
                    DotRow { label: label.clone(), dots: dots.collect() }
                };
                let all: Vec<DotRow> = sweep.axes[rows].values.iter().enumerate().map(row).collect();
                dots(&all, top, level)
            }
        }
    }
}

/// Throughput and entitlement of flows, or of their groups, which are at most [`MAX_BARS`].
pub(crate) fn share_bars(flows: &[FlowShare], keys: &Keys, by_group: bool) -> Vec<Bar> {
    if by_group {
        group_shares(flows).iter().take(MAX_BARS).map(|g| group_bar(g, keys)).collect()
    } else {
        flows.iter().map(|f| flow_bar(f, keys)).collect()
    }
}

fn flow_bar(flow: &FlowShare, keys: &Keys) -> Bar {
    let Estimate { mean, ci95, .. } = flow.throughput;
    Bar {
        label: flow.name.clone(),
        key: keys.of_flow(&flow.name, &flow.group),
        value: mean,
        whisker: ci95.map(|half| (mean - half, mean + half)),
        entitlement: flow.entitlement,
        note: number(mean),
    }
}

fn group_bar(group: &GroupShare, keys: &Keys) -> Bar {
    Bar {
        label: match group.members {
            1 => group.name.clone(),
            n => format!("{} ×{n}", group.name),
        },
        key: keys.of_flow(&group.name, &group.name),
        value: group.throughput,
        whisker: (group.members > 1).then_some(group.range),
        entitlement: group.entitlement,
        note: number(group.throughput),
    }
}

/// Names of the [reasons](GROUP_DROPS) in figures.
fn reasons() -> Vec<String> {
    let drops = DropReason::ALL.map(|reason| format!("dropped: {}", reason.name().replace('_', "-")));
    drops.into_iter().chain(["marked".to_owned()]).collect()
}

/// Drops by reason and marks at each watched link, then of each group, with a row for each of these points,
/// by name; groups and links without drops and marks are left out.
pub(crate) fn drop_panels(points: &[(&str, &Metrics)]) -> Vec<Panel> {
    let mut panels = Vec::new();
    let reasons = reasons();
    for (what, all, by_reason) in [("at link", "links", LINK_DROPS), ("of group", "groups", GROUP_DROPS)] {
        let found = by_reason.iter().flat_map(|of| points.iter().flat_map(|(_, all)| all.of_each(*of)));
        let names = in_order(found.map(|(name, _)| name.to_owned()));
        let (names, cut) = first(names, MAX_DROP_PANELS, all);
        let points_cut = match points.len() {
            all if all > MAX_ROWS => Some(format!("{MAX_ROWS} of {all} points are drawn")),
            _ => None,
        };
        let note = points_cut.into_iter().chain(cut).collect::<Vec<_>>().join(", ");
        for name in names {
            let row = |(label, metrics): &(&str, &Metrics)| {
                let count = |of: &Quantity| Some(metrics.get(&of.at(&name))?.mean);
                let parts = by_reason.iter().enumerate().filter_map(|(key, of)| Some((key, count(of)?)));
                Stack { label: (*label).to_owned(), parts: parts.collect() }
            };
            let rows: Vec<Stack> = points.iter().take(MAX_ROWS).map(row).collect();
            let occurs =
                |key: usize| rows.iter().flat_map(|row| &row.parts).any(|part| part.0 == key && part.1 > 0.0);
            let keys = reasons.iter().enumerate().filter(|(key, _)| occurs(*key));
            panels.push(Panel {
                title: format!("Drops and marks {what} {name}, packets"),
                note: note.clone(),
                legend: keys.map(|(key, reason)| (key, reason.clone())).collect(),
                drawing: stacks(&rows).of("packets", &reasons),
            });
        }
    }
    panels
}
