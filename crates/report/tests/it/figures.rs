//! Checks the figures of pages against the tables: values are read back from shapes, by the labels of axes.
//! Each check must also fail on a page with other numbers.

use std::collections::BTreeMap;

use apportion_core::units::{Bytes, Span};
use apportion_report::figure::{Group, Scatter, groups, scatter};
use apportion_report::statistics::number;
use apportion_report::{Contents, Provenance, RunResults, export, page};

use crate::synthetic::{DRR, FIFO, Made, point, quickstart, run, ten_and_one};

/// A drawing, read back.
#[derive(Default)]
struct Svg {
    texts: Vec<Text>,
    /// Opaque rectangles: left, top, width, height.
    boxes: Vec<[f64; 4]>,
    dots: Vec<(f64, f64)>,
    /// Lines with their colours.
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

struct Text {
    x: f64,
    y: f64,
    anchor: String,
    fill: String,
    text: String,
}

fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    Some(line.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0)
}

impl Svg {
    /// The figure with this label in a page.
    fn of(html: &str, label: &str) -> Self {
        let label = format!("aria-label=\"{label}\"");
        let (_, from) = html.split_once(&label).unwrap_or_else(|| panic!("no figure {label}"));
        Self::read(from.split_once("</svg>").expect("a drawing").0)
    }

    fn read(text: &str) -> Self {
        let mut svg = Self::default();
        // Groups of series begin and end on lines of their shapes.
        let lines = text.lines().map(|line| {
            line.rsplit_once("<g data-s=").map_or(line, |(_, of)| &of[of.find('>').unwrap() + 1..])
        });
        let mut group = "";
        for line in lines {
            // Texts of one style are in a group.
            match line {
                line if line.starts_with("<g fill") => group = line,
                "</g>" => group = "",
                _ => {}
            }
            let number = |name: &str| attribute(line, name).and_then(|text| text.parse::<f64>().ok());
            let word =
                |name: &str| attribute(line, name).or(attribute(group, name)).unwrap_or_default().to_owned();
            if line.starts_with("<text") {
                let content = line.split_once('>').and_then(|(_, rest)| rest.split_once('<')).unwrap().0;
                let (x, y) = (number("x").unwrap(), number("y").unwrap());
                svg.texts.push(Text {
                    x,
                    y,
                    anchor: word("text-anchor"),
                    fill: word("fill"),
                    text: content.to_owned(),
                });
            } else if line.starts_with("<rect") && attribute(line, "opacity").is_none() {
                svg.boxes.push(["x", "y", "width", "height"].map(|name| number(name).unwrap()));
            } else if line.starts_with("<circle") {
                svg.dots.push((number("cx").unwrap(), number("cy").unwrap()));
            } else if line.contains("<path") {
                svg.lines.extend(word("d").split('M').skip(1).map(|part| (word("stroke"), path(part))));
            } else if line.starts_with("<polyline") {
                let pair =
                    |pair: &str| pair.split_once(',').map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()));
                let points = word("points").split_whitespace().filter_map(pair).collect();
                svg.lines.push((word("stroke"), points));
            }
        }
        svg
    }

    /// The horizontal axis: the lowest labels that are numbers.
    fn across(&self, is_log: bool) -> Axis {
        let all = self.texts.iter().filter(|text| text.anchor == "middle");
        let all: Vec<_> = all.filter_map(|text| Some((text.y, text.x, tick(&text.text)?))).collect();
        let low = all.iter().map(|of| of.0).fold(0.0, f64::max);
        let labels: Vec<_> = all.iter().filter(|of| of.0 == low).map(|of| (of.1, of.2)).collect();
        Axis::of(&labels, is_log)
    }

    /// The vertical axis. The base line of a label is 0.35 of its 22 pixels below its middle.
    fn up(&self) -> Axis {
        let labels = self.texts.iter().filter(|text| text.anchor == "end");
        let label = |text: &Text| Some((text.y - 0.35 * 22.0, tick(&text.text)?));
        Axis::of(&labels.filter_map(label).collect::<Vec<_>>(), false)
    }

    fn has(&self, wanted: &str) -> Result<(), String> {
        let found = self.texts.iter().any(|text| text.text == wanted);
        if found { Ok(()) } else { Err(format!("`{wanted}` is not written")) }
    }

    /// Whether these names stand below each other.
    fn are_named(&self, names: &[String]) -> Result<(), String> {
        let place = |name: &String| self.texts.iter().find(|text| text.text == *name).map(|text| text.y);
        let places: Option<Vec<f64>> = names.iter().map(place).collect();
        let is_ordered = places.is_some_and(|all| all.windows(2).all(|pair| pair[0] < pair[1]));
        if is_ordered { Ok(()) } else { Err(format!("rows are not called {names:?}")) }
    }
}

/// The points of a path: its start, then relative steps. A sign separates numbers too.
fn path(d: &str) -> Vec<(f64, f64)> {
    let spaced = d.trim_end_matches('z').replace('-', " -").replace('l', " ");
    let numbers: Vec<f64> = spaced.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let add = |at: &mut (f64, f64), by: &[f64]| {
        *at = (at.0 + by[0], at.1 + by[1]);
        Some(*at)
    };
    numbers.chunks(2).scan((0.0, 0.0), add).collect()
}

/// The value of an axis label.
fn tick(text: &str) -> Option<f64> {
    let text = text.trim_end_matches(" ms").trim_end_matches(" s");
    let (digits, factor) = text.strip_suffix('k').map_or((text, 1.0), |digits| (digits, 1e3));
    Some(digits.parse::<f64>().ok()? * factor)
}

/// Two labels of an axis: their places and values.
struct Axis {
    first: (f64, f64),
    last: (f64, f64),
    is_log: bool,
}

impl Axis {
    fn of(labels: &[(f64, f64)], is_log: bool) -> Self {
        let least = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (first, last) = (*labels.iter().min_by(least).unwrap(), *labels.iter().max_by(least).unwrap());
        assert!(last.1 > first.1, "an axis has two labels: {labels:?}");
        Self { first, last, is_log }
    }

    fn value(&self, at: f64) -> f64 {
        let part = (at - self.first.0) / (self.last.0 - self.first.0);
        match self.is_log {
            true => self.first.1 * (self.last.1 / self.first.1).powf(part),
            false => self.first.1 + part * (self.last.1 - self.first.1),
        }
    }

    /// Checks that a place means `value`, within two pixels.
    fn is(&self, at: f64, value: f64, what: &str) -> Result<(), String> {
        let ends = [self.value(at - 2.0), self.value(at + 2.0)];
        let (low, high) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        if (low..=high).contains(&value) {
            Ok(())
        } else {
            Err(format!("{what}: {value} is drawn as {low} to {high}"))
        }
    }
}

/// A table of a run.
pub type Rows = Vec<BTreeMap<String, String>>;

pub struct Tables {
    pub flows: Rows,
    pub links: Rows,
    pub series: Rows,
}

impl Tables {
    fn of(run: &RunResults) -> Self {
        let dir = tempfile::tempdir().unwrap();
        apportion_report::write(dir.path(), run, Contents::of(1), &Provenance::default()).unwrap();
        let table = |name: &str| {
            let mut text = Vec::new();
            export(dir.path(), name, &mut text).unwrap();
            csv::Reader::from_reader(&text[..]).deserialize().map(Result::unwrap).collect()
        };
        Self { flows: table("flows"), links: table("links"), series: table("series") }
    }

    /// The rows of flows of a point, `tcp.2` before `tcp.10`.
    pub fn flows_of(&self, point: &str) -> Vec<&BTreeMap<String, String>> {
        let mut rows: Vec<_> = self.flows.iter().filter(|row| row["point"] == point).collect();
        rows.sort_by_key(|row| (row["group"].clone(), row["flow"].len(), row["flow"].clone()));
        rows
    }

    /// The mean of the throughputs of a group, for each point in turn.
    pub fn means(&self, group: &str) -> Vec<f64> {
        let rows: Vec<_> = self.flows.iter().filter(|row| row["group"] == group).collect();
        let points = rows.chunk_by(|a, b| a["point"] == b["point"]);
        points
            .map(|rows| rows.iter().map(|row| of(row, "throughput_mbps")).sum::<f64>() / rows.len() as f64)
            .collect()
    }

    /// The watched link at each point.
    pub fn bottlenecks(&self) -> impl Iterator<Item = &BTreeMap<String, String>> {
        self.links.iter().filter(|row| row["link"] == "bottleneck")
    }
}

pub fn of(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {}", row[column]))
}

/// The same run with other numbers.
fn altered(mut run: RunResults) -> RunResults {
    let more = |bytes: &mut Bytes| *bytes = Bytes::new(bytes.get() * 5 / 4);
    let longer = |span: &mut Span| *span = Span::from_nanos(span.as_nanos() * 5 / 4);
    for outcome in run.points.iter_mut().flat_map(|point| &mut point.outcomes) {
        for flow in &mut outcome.flows {
            more(&mut flow.delivered.bytes);
            flow.series.iter_mut().for_each(more);
        }
        // The largest flow gets less, so that a scale of its own cannot hide it.
        outcome.flows[0].delivered.bytes = Bytes::new(1_000_000);
        for link in &mut outcome.links {
            link.queue_delay.quantiles.iter_mut().for_each(|(_, delay)| longer(delay));
            link.dropped.values_mut().for_each(|count| *count += *count / 4);
        }
    }
    run
}

/// A run with other numbers of each point, and these settings of it.
pub fn swept(settings: &[&[(&str, &str)]]) -> RunResults {
    let made = |(k, settings): (u64, &&[(&str, &str)])| {
        let mut made = point(&DRR, &ten_and_one(700 + 300 * k, 0.1, 0.1, 5.0), &[7]);
        made.settings = settings.iter().map(|&(path, value)| (path.to_owned(), value.to_owned())).collect();
        made.label = settings.iter().map(|(_, value)| *value).collect::<Vec<_>>().join(", ");
        made
    };
    run("swept", &[7], (0..).zip(settings).map(made).collect())
}

/// Checks that the page of a run shows the numbers of its tables, and that the page of another run fails the
/// check.
pub fn shows(make: impl Fn() -> RunResults, check: impl Fn(&str, &Tables) -> Result<(), String>) {
    let tables = Tables::of(&make());
    check(&page(&make()), &tables).unwrap();
    check(&page(&altered(make())), &tables).expect_err("other numbers are drawn");
}

#[test]
fn bars_are_the_throughputs_of_the_table_of_flows() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let svg = Svg::of(html, "Throughput and entitlement: queue=fifo");
            let rows = tables.flows_of("queue=fifo");
            svg.are_named(&rows.iter().map(|row| row["flow"].clone()).collect::<Vec<_>>())?;
            let (axis, mut boxes) = (svg.across(false), svg.boxes.clone());
            boxes.sort_by(|a, b| a[1].total_cmp(&b[1]));
            let dues =
                svg.lines.iter().filter(|(colour, _)| colour == "#1F2328").map(|(_, points)| points[0].0);
            let dues: Vec<f64> = dues.collect();
            assert_eq!((boxes.len(), dues.len()), (rows.len(), rows.len()));
            for ((row, [x, _, width, _]), due) in rows.iter().zip(boxes).zip(dues) {
                let throughput = of(row, "throughput_mbps");
                axis.is(x + width, throughput, &row["flow"])?;
                axis.is(due, of(row, "entitlement_mbps"), &row["flow"])?;
                svg.has(&number(throughput))?;
            }
            Ok(())
        },
    );
}

#[test]
fn ranges_are_the_queue_delays_of_the_table_of_links() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let svg = Svg::of(html, "Queue delay at bottleneck");
            svg.are_named(&tables.bottlenecks().map(|row| row["point"].clone()).collect::<Vec<_>>())?;
            let axis = svg.across(false);
            assert_eq!(svg.dots.len(), 4);
            for (row, dot) in tables.bottlenecks().zip(&svg.dots) {
                axis.is(dot.0, of(row, "queue_delay_p50_ms"), &row["point"])?;
                svg.has(&format!("{} ms", number(of(row, "queue_delay_p99_ms"))))?;
            }
            Ok(())
        },
    );
}

#[test]
fn stacks_are_the_drops_and_marks_of_the_table_of_links() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let svg = Svg::of(html, "Drops and marks at link bottleneck, packets");
            let axis = svg.across(false);
            let mut boxes = svg.boxes.clone();
            boxes.retain(|of| of[2] > 0.0);
            let mut parts = boxes.chunk_by(|a, b| a[1] == b[1]);
            let columns = [
                "drops_early",
                "drops_forced",
                "drops_overflow",
                "drops_policy",
                "drops_push_out",
                "marked_packets",
            ];
            svg.are_named(&tables.bottlenecks().map(|row| row["point"].clone()).collect::<Vec<_>>())?;
            for row in tables.bottlenecks() {
                let mut sum = 0.0;
                // A part of less than a pixel cannot be read back.
                let drawn = parts.next().ok_or("a row is missing")?;
                let counts = columns.map(|column| of(row, column));
                let is_seen = |count: &&f64| **count > axis.value(axis.first.0 + 2.0) - axis.first.1;
                let mut drawn = drawn.iter();
                for count in counts.iter().filter(is_seen) {
                    let [x, _, width, _] = drawn.next().ok_or("a part is missing")?;
                    sum = axis.value(x + width);
                    axis.is(x + width, axis.value(*x) + count, &row["point"])?;
                }
                let total: f64 = counts.iter().sum();
                svg.has(&number(total)).map_err(|error| format!("{error}, {sum}"))?;
            }
            Ok(())
        },
    );
}

#[test]
fn dots_are_the_means_of_groups_at_each_point() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let svg = Svg::of(html, "Throughput of a flow, Mb/s");
            svg.are_named(&["fifo", "red", "drr", "fq_codel"].map(str::to_owned))?;
            let means = [tables.means("tcp"), tables.means("udp")];
            let expected: Vec<f64> = (0..4).flat_map(|at| means.each_ref().map(|of| of[at])).collect();
            assert_eq!(svg.dots.len(), expected.len());
            svg.dots
                .iter()
                .zip(expected)
                .try_for_each(|(dot, mean)| svg.across(false).is(dot.0, mean, "a mean"))
        },
    );
}

#[test]
fn lines_are_the_means_of_groups_over_the_parameter() {
    let rates = ["2Mbit", "5Mbit", "8Mbit"];
    let settings = rates.map(|rate| [("link.x.rate", rate)]);
    shows(
        || swept(&settings.each_ref().map(|of| &of[..])),
        |html, tables| {
            let svg = Svg::of(html, "Throughput of a flow, Mb/s");
            svg.has("rate, Mb/s")?;
            let expected = [tables.means("tcp"), tables.means("udp")].concat();
            assert_eq!(svg.dots.len(), 6);
            for ((dot, mean), rate) in svg.dots.iter().zip(expected).zip([2.0, 5.0, 8.0].repeat(2)) {
                svg.across(false).is(dot.0, rate, "a rate")?;
                svg.up().is(dot.1, mean, "a mean")?;
            }
            Ok(())
        },
    );
}

#[test]
fn cells_of_heat_maps_are_the_means_of_their_points() {
    let both = |rate, delay| [("rate", rate), ("delay", delay)];
    let settings = [both("2Mbit", "5ms"), both("2Mbit", "9ms"), both("5Mbit", "5ms"), both("5Mbit", "9ms")];
    shows(
        || swept(&settings.each_ref().map(|of| &of[..])),
        |html, tables| {
            let svg = Svg::of(html, "Throughput of a flow, Mb/s: udp");
            let cells: Vec<&Text> =
                svg.texts.iter().filter(|text| text.fill == "#000000" || text.fill == "#FFFFFF").collect();
            let means = tables.means("udp");
            let wanted: Vec<String> = means.iter().map(|mean| number(*mean)).collect();
            let found: Vec<String> = cells.iter().map(|cell| cell.text.clone()).collect();
            // The first parameter is across, and the second down.
            assert!(cells[0].x == cells[1].x && cells[0].y < cells[1].y && cells[0].x < cells[2].x);
            let ends = [
                means.iter().copied().fold(f64::INFINITY, f64::min),
                means.iter().copied().fold(0.0, f64::max),
            ];
            ends.iter().try_for_each(|end| svg.has(&number(*end)))?;
            if found == wanted { Ok(()) } else { Err(format!("{found:?} are drawn of {wanted:?}")) }
        },
    );
}

#[test]
fn curves_over_time_are_the_series_of_the_table() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let svg = Svg::of(html, "Throughput of a flow, Mb/s: queue=drr");
            let of_flow =
                |row: &&BTreeMap<String, String>| row["point"] == "queue=drr" && row["name"] == "udp";
            let series: Vec<f64> =
                tables.series.iter().filter(of_flow).map(|row| of(row, "throughput_mbps")).collect();
            // 600 samples of 0.1 s, five in a bin.
            let bins: Vec<f64> =
                series.chunks(5).map(|bin| bin.iter().sum::<f64>() / bin.len() as f64).collect();
            let (_, line) =
                svg.lines.iter().find(|(colour, of)| colour == "#D55E00" && of.len() == bins.len()).unwrap();
            for (at, (point, mean)) in line.iter().zip(bins).enumerate() {
                svg.across(false).is(point.0, 0.5 * at as f64 + 0.3, "a time")?;
                svg.up().is(point.1, mean, "a mean")?;
            }
            Ok(())
        },
    );
}

#[test]
fn distributions_pass_the_quantiles_of_the_table_of_links() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            for row in tables.bottlenecks() {
                let title = "Distribution of time in the queue at bottleneck (share of packets)";
                let svg = Svg::of(html, &format!("{title}: {}", row["point"]));
                let (_, line) =
                    svg.lines.iter().find(|(colour, of)| colour == "#1F2328" && of.len() > 2).unwrap();
                for (share, column) in [(0.5, "queue_delay_p50_ms"), (0.95, "queue_delay_p95_ms")] {
                    let near = |point: &&(f64, f64)| (svg.up().value(point.1) - share).abs();
                    let at = line.iter().min_by(|a, b| near(a).total_cmp(&near(b))).unwrap();
                    svg.across(true).is(at.0, of(row, column), column)?;
                }
            }
            Ok(())
        },
    );
}

#[test]
fn histograms_count_the_flows_of_the_table() {
    let made = |k: u64| Made {
        name: format!("tcp.{k}"),
        got_kbit: 300 + 20 * k,
        ..ten_and_one(900, 0.0, 0.1, 5.0)[0].clone()
    };
    let flows: Vec<Made> = (1..=50).map(made).collect();
    shows(
        || run("many", &[7], vec![point(&FIFO, &flows, &[7])]),
        |html, tables| {
            let svg = Svg::of(html, "Flows by throughput over entitlement");
            let share =
                |row: &BTreeMap<String, String>| of(row, "throughput_mbps") / of(row, "entitlement_mbps");
            let shares: Vec<f64> = tables.flows.iter().map(share).collect();
            let (across, up) = (svg.across(false), svg.up());
            let mut counted = 0.0;
            for [x, y, width, _] in &svg.boxes {
                // A bar is 0.92 of its bin wide.
                let ends = across.value(*x)..across.value(x + width / 0.92);
                let count = shares.iter().filter(|share| ends.contains(share)).count() as f64;
                let drawn = up.value(*y).round();
                counted += drawn;
                // A share within a pixel of an end may be in the adjacent bin.
                if (drawn - count).abs() > 1.0 {
                    return Err(format!("{count} flows of {ends:?} are drawn as {drawn}"));
                }
            }
            if counted == shares.len() as f64 {
                Ok(())
            } else {
                Err(format!("{counted} of {} flows", shares.len()))
            }
        },
    );
}

#[test]
fn marks_and_bars_of_groups_are_where_their_numbers_are() {
    let values = [(20.0, 0.9), (150.0, 0.35), (390.0, 1.0)];
    let marks = values.map(|(x, y)| (x, y, None)).to_vec();
    let names = ["cake", "fifo", "fq_pie"].map(str::to_owned).to_vec();
    let svg = Svg::read(&scatter(&[Scatter { key: 0, marks, ideal: Vec::new(), names }], "delay, ms").svg());
    for (dot, (x, y)) in svg.dots.iter().zip(values) {
        svg.across(false).is(dot.0, x, "across").unwrap();
        svg.up().is(dot.1, y, "up").unwrap();
        svg.up().is(dot.1, 0.8 * y, "up").unwrap_err();
    }
    let nearest = |name: &str| {
        let text = svg.texts.iter().find(|text| text.text == name).unwrap();
        let away = |dot: &(f64, f64)| (dot.0 - text.x).hypot(dot.1 - text.y);
        (0..3).min_by(|a, b| away(&svg.dots[*a]).total_cmp(&away(&svg.dots[*b]))).unwrap()
    };
    assert_eq!(["cake", "fifo", "fq_pie"].map(nearest), [0, 1, 2]);

    let group =
        |name: &str, height| Group { name: name.to_owned(), bars: vec![Some((height, None))], ideal: None };
    let svg = Svg::read(&groups(&[group("one", 3.0), group("two", 7.5)]).svg());
    for (of, height) in svg.boxes.iter().zip([3.0, 7.5]) {
        svg.up().is(of[1], height, "a bar").unwrap();
        svg.up().is(of[1], 0.8 * height, "a bar").unwrap_err();
    }
    assert!(svg.has("one").is_ok() && svg.has("two").is_ok());
}
