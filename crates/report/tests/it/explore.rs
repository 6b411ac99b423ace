//! The values that figures hold for scripts, against the tables. Each check must also fail on a page with other numbers.

use std::collections::BTreeMap;

use apportion_report::page;
use serde_json::Value;

use crate::figures::{of, shows, swept};
use crate::synthetic::{FIFO, Made, large, point, quickstart, run, ten_and_one, with_dues};

/// The data of a figure.
struct Held(Value);

impl Held {
    /// Those of the figure with this label in a page.
    fn of(html: &str, label: &str) -> Self {
        let (_, from) = html.split_once(&format!("aria-label=\"{label}\"")).expect(label);
        let (_, from) = from.split_once("<script type=\"application/json\">").expect("data");
        Self(serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap())
    }

    fn series(&self) -> &[Value] {
        self.0["series"].as_array().unwrap()
    }

    fn named(&self, name: &str) -> &Value {
        self.series().iter().find(|of| of["name"] == name).unwrap_or_else(|| panic!("{name}: {}", self.0))
    }

    /// The names of an axis.
    fn names(&self, axis: &str) -> Vec<String> {
        serde_json::from_value(self.0[axis]["names"].clone()).unwrap()
    }

    /// All marks of all series, by name of row: value and further values.
    fn by_row(&self) -> BTreeMap<String, (f64, Vec<f64>)> {
        let names = self.names("y");
        let of = |series: &Value| {
            let (x, y) = (numbers(&series["x"]), numbers(&series["y"]));
            let more =
                |i: usize| series["more"].as_array().into_iter().flatten().map(|of| numbers(of)[i]).collect();
            let mark = |i: usize| (names[y[i] as usize].clone(), (x[i], more(i)));
            (0..x.len()).map(mark).collect::<Vec<_>>()
        };
        self.series().iter().flat_map(of).collect()
    }
}

/// Numbers of an array, of equal steps and an array, or of whole numbers or their differences; NaN for null.
fn numbers(of: &Value) -> Vec<f64> {
    if let Some(e) = of["e"].as_i64() {
        let scale = 10_f64.powi(e as i32);
        let scaled = |of: &Value| numbers(of).iter().map(|x| x * scale).collect::<Vec<_>>();
        let add = |sum: &mut f64, x: f64| {
            *sum += x;
            Some(*sum)
        };
        return match &of["d"] {
            Value::Null => scaled(&of["n"]),
            differences => scaled(differences).into_iter().scan(0.0, add).collect(),
        };
    }
    if let Some(all) = of.as_array() {
        return all.iter().map(|x| x.as_f64().unwrap_or(f64::NAN)).collect();
    }
    let [from, step] = ["from", "step"].map(|name| of[name].as_f64().unwrap());
    let count = of["count"].as_u64().unwrap();
    (0..count).map(|k| from + k as f64 * step).chain(numbers(&of["rest"])).collect()
}

/// Checks values of five significant digits; the largest of many has four.
fn are(found: &[f64], wanted: &[f64], what: &str) -> Result<(), String> {
    let most = wanted.iter().copied().fold(0.0, f64::max);
    let within = |b: f64| if wanted.len() > 40 { 6e-4 * most } else { 1e-4 * b.abs() + 1e-9 };
    let is = |(a, b): (&f64, &f64)| (a - b).abs() <= within(*b) || (a.is_nan() && b.is_nan());
    let equal = found.len() == wanted.len() && found.iter().zip(wanted).all(is);
    if equal { Ok(()) } else { Err(format!("{what}: {found:?} instead of {wanted:?}")) }
}

#[test]
fn bars_hold_throughput_and_entitlement() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let held = Held::of(html, "Throughput and entitlement: queue=fifo");
            assert_eq!(held.0["x"]["name"], "throughput, Mb/s");
            let rows = held.by_row();
            for row in tables.flows_of("queue=fifo") {
                let (value, more) = &rows[&row["flow"]];
                are(&[*value], &[of(row, "throughput_mbps")], &row["flow"])?;
                are(&more[..1], &[of(row, "entitlement_mbps")], &row["flow"])?;
            }
            Ok(())
        },
    );
}

#[test]
fn ranges_hold_the_median_and_the_99th_percentile() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let rows = Held::of(html, "Queue delay at bottleneck").by_row();
            for row in tables.bottlenecks() {
                let (median, more) = &rows[&row["point"]];
                let wanted = ["queue_delay_p50_ms", "queue_delay_p99_ms"].map(|column| of(row, column));
                are(&[*median, more[3]], &wanted, &row["point"])?;
            }
            Ok(())
        },
    );
}

#[test]
fn stacks_hold_counts_of_reasons() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let held = Held::of(html, "Drops and marks at link bottleneck, packets");
            let overflow = held.named("dropped: overflow");
            let names = held.names("y");
            let place = |point: &str| names.iter().position(|name| name == point).unwrap() as f64;
            let wanted = tables.bottlenecks().filter(|row| of(row, "drops_overflow") > 0.0);
            let (rows, counts): (Vec<f64>, Vec<f64>) =
                wanted.map(|row| (place(&row["point"]), of(row, "drops_overflow"))).unzip();
            are(&numbers(&overflow["y"]), &rows, "rows")?;
            are(&numbers(&overflow["x"]), &counts, "counts")
        },
    );
}

#[test]
fn dots_and_lines_hold_the_means_of_groups() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let held = Held::of(html, "Throughput of a flow, Mb/s");
            assert_eq!(held.names("y"), ["fifo", "red", "drr", "fq_codel"]);
            let is = |name| are(&numbers(&held.named(name)["x"]), &tables.means(name), name);
            is("tcp").and(is("udp"))
        },
    );
    let settings = ["2Mbit", "5Mbit", "8Mbit"].map(|rate| [("link.x.rate", rate)]);
    shows(
        || swept(&settings.each_ref().map(|of| &of[..])),
        |html, tables| {
            let held = Held::of(html, "Throughput of a flow, Mb/s");
            assert_eq!(
                (&held.0["x"]["name"], &held.0["y"]["name"]),
                (&"rate, Mb/s".into(), &"Throughput of a flow, Mb/s".into())
            );
            are(&numbers(&held.named("tcp")["x"]), &[2.0, 5.0, 8.0], "rates")?;
            let is = |name| are(&numbers(&held.named(name)["y"]), &tables.means(name), name);
            is("tcp").and(is("udp"))
        },
    );
}

#[test]
fn heat_maps_hold_the_mean_of_each_point() {
    let both = |rate, delay| [("rate", rate), ("delay", delay)];
    let settings = [both("2Mbit", "5ms"), both("2Mbit", "9ms"), both("5Mbit", "5ms"), both("5Mbit", "9ms")];
    shows(
        || swept(&settings.each_ref().map(|of| &of[..])),
        |html, tables| {
            let held = Held::of(html, "Throughput of a flow, Mb/s: udp");
            assert_eq!(held.0["fields"][0], "Throughput of a flow, Mb/s");
            let means = tables.means("udp");
            // A series for each row of the figure, which is a delay.
            for (at, row) in held.series().iter().enumerate() {
                are(&numbers(&row["more"][0]), &[means[at], means[2 + at]], "a row")?;
            }
            Ok(())
        },
    );
}

#[test]
fn curves_hold_the_means_of_intervals() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            let held = Held::of(html, "Throughput of a flow, Mb/s: queue=drr");
            let of_flow =
                |row: &&BTreeMap<String, String>| row["point"] == "queue=drr" && row["name"] == "udp";
            let series: Vec<f64> =
                tables.series.iter().filter(of_flow).map(|row| of(row, "throughput_mbps")).collect();
            let bins: Vec<f64> =
                series.chunks(5).map(|bin| bin.iter().sum::<f64>() / bin.len() as f64).collect();
            let times: Vec<f64> = (0..bins.len()).map(|k| 0.25 + 0.5 * k as f64).collect();
            assert_eq!(held.0["warmUp"], 10);
            are(&numbers(&held.named("udp")["x"]), &times, "times")?;
            are(&numbers(&held.named("udp")["y"]), &bins, "means")
        },
    );
}

#[test]
fn distributions_hold_the_quantiles() {
    shows(
        || quickstart(&[7]),
        |html, tables| {
            for row in tables.bottlenecks() {
                let title = "Distribution of time in the queue at bottleneck (share of packets)";
                let held = Held::of(html, &format!("{title}: {}", row["point"]));
                let (delays, shares) = (numbers(&held.series()[0]["x"]), numbers(&held.series()[0]["y"]));
                let at = shares.iter().position(|share| *share == 0.5).unwrap();
                are(&[delays[at]], &[of(row, "queue_delay_p50_ms")], &row["point"])?;
            }
            Ok(())
        },
    );
}

#[test]
fn histograms_hold_the_number_of_flows() {
    let made = |k: u64| Made {
        name: format!("tcp.{k}"),
        got_kbit: 300 + 20 * k,
        ..ten_and_one(900, 0.0, 0.1, 5.0)[0].clone()
    };
    let flows: Vec<Made> = (1..=50).map(made).collect();
    shows(
        || run("many", &[7], vec![point(&FIFO, &flows, &[7])]),
        |html, tables| {
            let held = Held::of(html, "Flows by throughput over entitlement");
            let (counts, more) = (numbers(&held.series()[0]["y"]), &held.series()[0]["more"]);
            let shares: Vec<f64> = tables
                .flows
                .iter()
                .map(|row| of(row, "throughput_mbps") / of(row, "entitlement_mbps"))
                .collect();
            for ((from, to), count) in numbers(&more[0]).iter().zip(numbers(&more[1])).zip(&counts) {
                let found = shares.iter().filter(|share| (*from..to).contains(*share)).count();
                // A share may be at a rounded end of its bin.
                if (found as f64 - count).abs() > 1.0 {
                    return Err(format!("{found} flows from {from} to {to} instead of {count}"));
                }
            }
            are(&[counts.iter().sum()], &[50.0], "all flows")
        },
    );
}

#[test]
fn shares_above_the_axis_are_held_as_they_are() {
    let html = page(&with_dues(quickstart(&[7])));
    let held =
        Held::of(&html, "Throughput over entitlement at the time (cut at 2; thin lines: events): queue=fifo");
    let all: Vec<f64> = held.series().iter().flat_map(|of| numbers(&of["y"])).collect();
    assert_eq!(held.0["y"]["ends"][1], 2);
    assert!(all.iter().any(|share| *share > 2.0) && !held.0["events"].as_array().unwrap().is_empty());
}

#[test]
fn every_figure_holds_its_data_and_its_series_have_groups() {
    let html = page(&large(&[7, 8]));
    let figures: Vec<&str> = html.split("<svg").skip(1).collect();
    assert!(figures.len() > 50);
    for figure in figures {
        let (drawing, after) = figure.split_once("</svg>\n").unwrap();
        let (_, data) = after.split_once("<script type=\"application/json\">").unwrap();
        assert!(after.starts_with("<script"), "{after:.100}");
        let held = Held(serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap());
        for group in drawing.split("<g data-s=\"").skip(1) {
            let place: usize = group.split_once('"').unwrap().0.parse().unwrap();
            assert!(place < held.series().len());
        }
        assert_eq!(drawing.matches("<g ").count(), drawing.matches("</g>").count());
    }
}
