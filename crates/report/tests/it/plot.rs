//! Figures of stored runs as files.

use std::path::{Path, PathBuf};

use apportion_report::plot::{Format, Kind, PlotError, Plotted, Request, plot};
use apportion_report::{Contents, Provenance, RunResults};

use crate::synthetic::{large, long_sweep, numbered, quickstart, weighted};

fn stored(run: &RunResults) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = apportion_report::write(dir.path(), run, Contents::of(1), &Provenance::default()).unwrap();
    (dir, folder)
}

fn request(kind: Kind) -> Request {
    Request { kind, point: None, metric: None }
}

fn text(plotted: &Plotted, format: Format) -> String {
    String::from_utf8(plotted.content(format)).unwrap()
}

/// The cells of the tidy numbers, the head first.
fn numbers(plotted: &Plotted) -> Vec<Vec<String>> {
    let text = text(plotted, Format::Csv);
    let mut csv = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    csv.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
}

#[test]
fn every_kind_is_drawn_in_every_format() {
    let (_dir, folder) = stored(&quickstart(&[7, 8]));
    for kind in Kind::ALL {
        assert_eq!(kind.name().parse::<Kind>().unwrap(), kind);
        let plotted = plot(&folder, &request(kind)).unwrap();
        let svg = text(&plotted, Format::Svg);
        assert!(svg.starts_with("<svg") && svg.contains("</text>") && !svg.contains("NaN"), "{kind:?}");
        let pdf = plotted.content(Format::Pdf);
        assert!(pdf.starts_with(b"%PDF-"), "{kind:?}");
        let rows = numbers(&plotted);
        assert_eq!(rows[0][..2], ["point", "bottleneck.queue"].map(str::to_owned), "{kind:?}");
        assert!(rows.len() > 4 && rows.iter().all(|row| row.len() == rows[0].len()), "{kind:?}");
        // The same results give the same bytes.
        assert_eq!(plot(&folder, &request(kind)).unwrap().content(Format::Pdf), pdf);
    }
}

#[test]
fn the_numbers_of_shares_are_those_of_the_table_of_flows() {
    let run = quickstart(&[7]);
    let (_dir, folder) = stored(&run);
    let plotted =
        plot(&folder, &Request { point: Some("queue=drr".into()), ..request(Kind::Shares) }).unwrap();
    let rows = numbers(&plotted);
    let flows = run.points.iter().find(|point| point.label == "queue=drr").unwrap().flows.len();
    assert_eq!(rows.len(), 1 + flows);
    let mut out = Vec::new();
    apportion_report::export(&folder, "flows", &mut out).unwrap();
    let mut csv = csv::Reader::from_reader(&out[..]);
    let head = csv.headers().unwrap().clone();
    let column = |name: &str| head.iter().position(|column| column == name).unwrap();
    for record in csv.records().map(Result::unwrap).filter(|record| &record[0] == "queue=drr") {
        let row = rows.iter().find(|row| row[2] == record[column("flow")]).unwrap();
        assert_eq!(row[4], record[column("throughput_mbps")]);
        assert_eq!(row[7], record[column("entitlement_mbps")]);
    }
}

#[test]
fn a_metric_of_a_sweep_is_drawn_alone() {
    let (_dir, folder) = stored(&quickstart(&[7]));
    let plotted = plot(&folder, &Request { metric: Some("jain".into()), ..request(Kind::Sweep) }).unwrap();
    assert!(text(&plotted, Format::Svg).contains(">Jain index</text>"));
    assert!(numbers(&plotted)[1..].iter().all(|row| row[2] == "jain"));
    assert_eq!(numbers(&plotted).len(), 1 + 4);
}

#[test]
fn a_sweep_draws_six_groups_by_number_and_says_how_many_there_are() {
    let mut run = large(&[7]);
    for point in &mut run.points {
        let infos = point.flows.iter_mut().map(|flow| &mut flow.group);
        let outcomes = point.outcomes.iter_mut().flat_map(|outcome| &mut outcome.flows);
        for group in infos.chain(outcomes.map(|flow| &mut flow.group)) {
            *group = group.replace('0', "10");
        }
    }
    let (_dir, folder) = stored(&run);
    let plotted = plot(&folder, &Request { metric: Some("share".into()), ..request(Kind::Sweep) }).unwrap();
    let svg = text(&plotted, Format::Svg);
    assert!(svg.contains(">6 of 9 groups are drawn</text>"), "{svg}");
    assert!(svg.contains(">group6</text>") && !svg.contains(">group10</text>"), "{svg}");
}

#[test]
fn windows_over_time_are_those_of_the_series() {
    let mut run = quickstart(&[7]);
    let (_dir, folder) = stored(&run);
    let rows = numbers(&plot(&folder, &request(Kind::Window)).unwrap());
    assert_eq!(rows[0][5..], ["mean_segments", "low_segments", "high_segments"]);
    let mut out = Vec::new();
    apportion_report::export(&folder, "series", &mut out).unwrap();
    let series = String::from_utf8(out).unwrap();
    let of_flow = |line: &&str| line.starts_with("queue=drr,7,flow,udp,");
    let windows: Vec<f64> = series
        .lines()
        .filter(of_flow)
        .map(|line| line.rsplit(',').nth(1).unwrap().parse().unwrap())
        .collect();
    let drawn = rows.iter().filter(|row| row[0] == "queue=drr" && row[3] == "udp");
    let bins: Vec<[f64; 3]> = drawn.map(|row| [5, 6, 7].map(|cell| row[cell].parse().unwrap())).collect();
    // 600 samples, five in a bin.
    assert_eq!((windows.len(), bins.len()), (600, 120));
    for (bin, five) in bins.iter().zip(windows.chunks(5)) {
        let ends =
            [five.iter().copied().fold(f64::INFINITY, f64::min), five.iter().copied().fold(0.0, f64::max)];
        assert!((bin[0] - five.iter().sum::<f64>() / 5.0).abs() < 1e-5, "{bin:?} of {five:?}");
        assert_eq!(bin[1..], ends);
    }

    let points = run.points.iter_mut();
    points.for_each(|point| point.outcomes[0].flows.iter_mut().for_each(|flow| flow.tcp.clear()));
    let (_dir, folder) = stored(&run);
    let text = plot(&folder, &request(Kind::Window)).unwrap_err().to_string();
    assert!(text.starts_with("nothing to draw as `window`: no congestion window was recorded"), "{text}");
}

#[test]
fn what_cannot_be_drawn_is_refused_with_its_reason() {
    let (_dir, folder) = stored(&weighted(&[7]));
    let refused = |folder: &Path, request: &Request| plot(folder, request).unwrap_err().to_string();
    let point = Request { point: Some("queue=nothing".into()), ..request(Kind::Shares) };
    let text = refused(&folder, &point);
    assert!(text.starts_with("there is no point `queue=nothing`; the points are `"), "{text}");
    let metric = Request { metric: Some("jain".into()), ..request(Kind::Delay) };
    assert_eq!(
        refused(&folder, &metric),
        "`delay` has no choice of metrics: leave out --metric, or draw --kind sweep"
    );
    let metric = Request { metric: Some("no".into()), ..request(Kind::Sweep) };
    let text = refused(&folder, &metric);
    let start = "there is no metric `no` to draw; the metrics are share, throughput_mbps, ";
    assert!(text.starts_with(start) && text.contains(", jain"), "{text}");
    let text = refused(&folder, &request(Kind::Sweep));
    assert_eq!(text, "nothing to draw as `sweep`: there is a single point");
    let (missing, file) = (folder.join("no"), folder.join("run.json"));
    let end = "; name a folder that `apportion run` wrote, such as results/quickstart";
    for (path, cause) in
        [(missing, "there is no such folder"), (file, "it is a file, not the folder of a run")]
    {
        let text = format!("cannot read results from `{}`: {cause}{end}", path.display());
        assert_eq!(refused(&path, &request(Kind::Sweep)), text);
    }

    // Each kind of missing data has its own reason: flows without series, links that are not watched, a long
    // run without series.
    let mut crowd = weighted(&[7]);
    crowd.points[0].outcomes[0].flows.iter_mut().for_each(|flow| flow.series.clear());
    for link in &mut crowd.points[0].outcomes[0].links {
        (link.watched, link.backlog, link.series) = (false, Vec::new(), Vec::new());
    }
    let (_dir, folder) = stored(&crowd);
    let text = refused(&folder, &request(Kind::Throughput));
    assert!(text.ends_with("of at most 2000 flows; --kind shares draws more, in groups"), "{text}");
    assert!(
        refused(&folder, &request(Kind::Queue)).ends_with("no link is watched; write watch = true in one")
    );
    crowd.seeds = (0..1001).collect();
    let (_dir, folder) = stored(&crowd);
    for kind in [Kind::Throughput, Kind::Queue, Kind::Window] {
        assert!(refused(&folder, &request(kind)).ends_with("a long run has series with --series alone"));
    }

    let (_dir, folder) = stored(&long_sweep(13));
    let text = refused(&folder, &request(Kind::Shares));
    assert!(
        text.starts_with("there are 13 points, and `shares` draws at most 12: choose one with --point"),
        "{text}"
    );
    assert!(plot(&folder, &request(Kind::Sweep)).is_ok());

    for name in ["figure", "figure.png", ".svg", "figure.SVG"] {
        assert!(matches!(Format::of(Path::new(name)), Err(PlotError::Ending(_))), "{name}");
    }
    assert_eq!(Format::of(Path::new("a.b/c.pdf")).unwrap(), Format::Pdf);
}

#[test]
fn rows_and_panels_are_in_numeric_order() {
    let (_dir, folder) = stored(&numbered(&[7]));
    for (kind, part) in
        [(Kind::Delay, ">flow#</text>"), (Kind::Drops, ">Drops and marks of group flow#, packets</text>")]
    {
        let svg = text(&plot(&folder, &request(kind)).unwrap(), Format::Svg);
        let at = |number: &str| svg.find(&part.replace('#', number)).unwrap();
        assert!(at("2") < at("10"), "{kind:?}");
    }
    let svg = text(&plot(&folder, &request(Kind::Drops)).unwrap(), Format::Svg);
    assert!(svg.contains(">12 of 14 groups are drawn</text>"), "{svg}");
}
