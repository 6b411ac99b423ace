//! Figures of stored results as files, for papers: SVG and PDF, and their numbers as CSV.

use std::path::Path;
use std::str::FromStr;

use crate::figure::{Panel, compose};
use crate::panels::{Point, sweep_metrics};
use crate::shares::{FlowShare, Keys, shares_of};
use crate::statistics::Estimate;
use crate::store::{Contents, LoadError, StoredPoint, StoredRun, load, series};
use crate::units::round6;

mod over_time;
mod per_point;

/// Maximum of points in a figure; beyond it one can be chosen.
const MAX_POINTS: usize = 12;

/// The content of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Throughput and entitlement of each flow, for each point.
    Shares,
    /// Each quantity over the parameters of a sweep.
    Sweep,
    /// Throughput over time, for each point.
    Throughput,
    /// Delays of groups and of watched links, for each point.
    Delay,
    /// Packets in the queues of watched links over time, for each point.
    Queue,
    /// Congestion windows over time, for each point.
    Window,
    /// Drops by reason and marks, of groups and watched links.
    Drops,
}

impl Kind {
    /// Every kind, in the order in which they are listed.
    pub const ALL: [Self; 7] =
        [Self::Shares, Self::Sweep, Self::Throughput, Self::Delay, Self::Queue, Self::Window, Self::Drops];

    /// The kind's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shares => "shares",
            Self::Sweep => "sweep",
            Self::Throughput => "throughput",
            Self::Delay => "delay",
            Self::Queue => "queue",
            Self::Window => "window",
            Self::Drops => "drops",
        }
    }

    /// A description of the kind, in one line.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Shares => "throughput and entitlement of each flow",
            Self::Sweep => "each quantity over the parameters of a sweep",
            Self::Throughput => "throughput over time, of the first seed",
            Self::Delay => "delays of groups, and time in the queue of watched links",
            Self::Queue => "packets in the queue of watched links over time, of the first seed",
            Self::Window => "congestion windows over time, of the first seed",
            Self::Drops => "drops by reason and marks, of groups and watched links",
        }
    }

    /// Whether each point has a panel of its own.
    const fn is_per_point(self) -> bool {
        !matches!(self, Self::Sweep | Self::Drops)
    }
}

impl FromStr for Kind {
    type Err = PlotError;

    fn from_str(name: &str) -> Result<Self, PlotError> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| PlotError::Kind(name.to_owned()))
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A drawing for pages.
    Svg,
    /// A drawing for papers, with its font.
    Pdf,
    /// The numbers of the drawing, tidy: one number a row.
    Csv,
}

impl Format {
    /// The format by the ending of a file's name.
    ///
    /// # Errors
    /// The extension is none of `.svg`, `.pdf` and `.csv`.
    pub fn of(path: &Path) -> Result<Self, PlotError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Self::Svg),
            Some("pdf") => Ok(Self::Pdf),
            Some("csv") => Ok(Self::Csv),
            _ => Err(PlotError::Ending(path.display().to_string())),
        }
    }
}

/// A figure to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The content of the figure.
    pub kind: Kind,
    /// The label of the only point to draw; default: all.
    pub point: Option<String>,
    /// The only metric of a sweep to draw, for example `jain`, or `share` for that of each group; default:
    /// all.
    pub metric: Option<String>,
}

/// Why there is no figure, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The results cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// There is no such kind.
    #[error("`{0}` is no kind of figure; the kinds are {kinds}", kinds = Kind::ALL.map(Kind::name).join(", "))]
    Kind(String),
    /// The ending of a file names no format.
    #[error("`{0}` ends in none of .svg, .pdf and .csv, which say the format")]
    Ending(String),
    /// There is no such point.
    #[error("there is no point `{0}`; the points are {1}")]
    Point(String, String),
    /// Too many points for one figure.
    #[error(
        "there are {0} points, and `{1}` draws at most {MAX_POINTS}: choose one with --point LABEL, or draw all with --kind sweep"
    )]
    TooMany(usize, &'static str),
    /// Nothing to draw.
    #[error("nothing to draw as `{0}`: {1}")]
    Nothing(&'static str, &'static str),
    /// The results have no figure of a sweep for this metric; the second field lists those that they have.
    #[error("there is no metric `{0}` to draw; the metrics are {1}")]
    UnknownMetric(String, String),
    /// A metric was given for a kind other than a sweep.
    #[error("`{0}` has no choice of metrics: leave out --metric, or draw --kind sweep")]
    Metric(&'static str),
}

/// A figure with its numbers.
#[derive(Clone, Debug)]
pub struct Plotted {
    panels: Vec<Panel>,
    numbers: Numbers,
}

/// A table with one number a row.
#[derive(Clone, Debug, Default)]
struct Numbers {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Plotted {
    /// The figure or its numbers as the content of a file.
    #[must_use]
    pub fn content(&self, format: Format) -> Vec<u8> {
        match format {
            Format::Svg => compose(&self.panels).svg().into_bytes(),
            Format::Pdf => compose(&self.panels).pdf(),
            Format::Csv => self.numbers.csv(),
        }
    }
}

impl Numbers {
    /// A table with the columns point, settings, and `columns`.
    fn new(points: &[Drawn<'_>], columns: &[&str]) -> Self {
        let settings = points.first().map_or(&[][..], |drawn| drawn.point.settings);
        let mut head = vec!["point".to_owned()];
        head.extend(settings.iter().map(|(path, _)| path.clone()));
        head.extend(columns.iter().map(|column| (*column).to_owned()));
        Self { head, rows: Vec::new() }
    }

    fn add(&mut self, of: &Drawn<'_>, cells: Vec<String>) {
        let mut row = vec![of.label.to_owned()];
        row.extend(of.point.settings.iter().map(|(_, value)| value.clone()));
        row.extend(cells);
        self.rows.push(row);
    }

    fn csv(&self) -> Vec<u8> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        // Writing to memory does not fail, and rows are as long as the head.
        for row in std::iter::once(&self.head).chain(&self.rows) {
            csv.write_record(row).unwrap_or_default();
        }
        csv.into_inner().unwrap_or_default()
    }
}

/// The parts of a point that figures use.
struct Drawn<'a> {
    label: &'a str,
    point: Point<'a>,
    /// Flows in numeric order.
    flows: Vec<FlowShare>,
    /// Start of the measured part, in seconds.
    measure_from_s: f64,
}

/// Reads the results in `folder` and draws the figure.
///
/// # Errors
/// If the results cannot be read, or have no data for this kind.
pub fn plot(folder: &Path, request: &Request) -> Result<Plotted, PlotError> {
    let kind = request.kind;
    if kind != Kind::Sweep && request.metric.is_some() {
        return Err(PlotError::Metric(kind.name()));
    }
    let run = load(folder)?;
    let points = chosen(&run, request)?;
    if kind.is_per_point() && points.len() > MAX_POINTS {
        return Err(PlotError::TooMany(points.len(), kind.name()));
    }
    let flows = points.iter().flat_map(|drawn| &drawn.flows);
    let keys = Keys::of_names(flows.map(|flow| (flow.name.as_str(), flow.group.as_str())));
    let (plotted, missing) = match kind {
        Kind::Shares => (per_point::shares(&points, &keys), "no replication has finished"),
        Kind::Sweep => {
            known_metric(&points, request)?;
            let missing = match points.len() {
                0 | 1 => "there is a single point",
                _ => "the points are no sweep of parameters, or no replication has finished",
            };
            (per_point::sweep(&points, request.metric.as_deref()), missing)
        }
        Kind::Delay => (per_point::delays(&points), "no delay was measured"),
        Kind::Drops => (per_point::drops(&points), "nothing was dropped or marked"),
        Kind::Throughput | Kind::Queue | Kind::Window => {
            let series = series(&run, &points.iter().map(|drawn| drawn.label).collect::<Vec<_>>())?;
            let is_long = run.seeds.len().saturating_mul(run.points.len()) as u64 > Contents::LONG;
            let missing = match kind {
                _ if is_long && series.is_empty() => "a long run has series with --series alone",
                Kind::Queue => "no link is watched; write watch = true in one",
                Kind::Window => {
                    "no congestion window was recorded, which a flow of one TCP or QUIC connection has"
                }
                _ => {
                    "series of flows are recorded of at most 2000 flows; --kind shares draws more, in groups"
                }
            };
            (over_time::plot(kind, &points, &keys, &series), missing)
        }
    };
    if plotted.panels.is_empty() {
        return Err(PlotError::Nothing(kind.name(), missing));
    }
    Ok(plotted)
}

/// Refuses a metric without a figure of a sweep.
fn known_metric(points: &[Drawn<'_>], request: &Request) -> Result<(), PlotError> {
    let all: Vec<Point<'_>> = points.iter().map(|drawn| drawn.point).collect();
    let known = sweep_metrics(&all);
    match &request.metric {
        Some(wanted) if !known.is_empty() && !known.contains(wanted) => {
            Err(PlotError::UnknownMetric(wanted.clone(), known.join(", ")))
        }
        _ => Ok(()),
    }
}

/// The points to draw.
fn chosen<'a>(run: &'a StoredRun, request: &Request) -> Result<Vec<Drawn<'a>>, PlotError> {
    let is_chosen = |label: &str| request.point.as_deref().is_none_or(|wanted| wanted == label);
    let drawn = |point: &'a StoredPoint| Drawn {
        label: &point.label,
        point: Point { settings: &point.settings, metrics: &point.summary.metrics },
        flows: shares_of(&point.summary),
        measure_from_s: point.measure_from_s,
    };
    let all: Vec<_> = run.points.iter().filter(|point| is_chosen(&point.label)).map(drawn).collect();
    match &request.point {
        Some(wanted) if all.is_empty() => {
            let labels: Vec<String> =
                run.points.iter().take(MAX_POINTS).map(|point| format!("`{}`", point.label)).collect();
            let more = if run.points.len() > MAX_POINTS { " and others" } else { "" };
            Err(PlotError::Point(wanted.clone(), labels.join(", ") + more))
        }
        _ => Ok(all),
    }
}

/// A mean, half of its interval and the number of seeds as cells.
fn cells(estimate: &Estimate) -> [String; 3] {
    let half = estimate.ci95.filter(|half| half.is_finite());
    [
        estimate.mean.to_string(),
        half.map_or_else(String::new, |half| half.to_string()),
        estimate.n.to_string(),
    ]
}

/// A number as a cell: six decimals, as in tables.
fn cell(x: f64) -> String {
    round6(x).to_string()
}
