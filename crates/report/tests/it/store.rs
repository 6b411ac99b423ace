//! The results folder: its content, replacements, and refusals.

use std::fs;
use std::path::{Path, PathBuf};

use apportion_core::queue::DropReason;
use apportion_core::units::Bytes;
use apportion_report::{
    Comparison, Contents, PointSummary, Provenance, ReplicationRows, RunResults, WriteError, compare, export,
    latex, load,
};
use sha2::{Digest as _, Sha256};

use crate::synthetic::{DRR, FIFO, point, quickstart, run, ten_and_one, weighted};

const TABLES: [&str; 9] = [
    "allocations",
    "completions",
    "flows",
    "links",
    "media",
    "phase_sensitivity",
    "responses",
    "series",
    "statistics",
];
const CSV: [&str; 5] = ["completions.csv", "flows.csv", "links.csv", "media.csv", "statistics.csv"];

/// The files of a run, sorted.
fn files() -> Vec<String> {
    let parquet = TABLES.iter().map(|table| format!("{table}.parquet"));
    let mut all: Vec<String> = parquet.chain(CSV.map(str::to_owned)).collect();
    all.extend(["report.html", "run.json"].map(str::to_owned));
    all.sort();
    all
}

/// Writes a run and returns its folder.
fn write(out: &Path, run: &RunResults) -> PathBuf {
    try_write(out, run).expect("a folder")
}

fn try_write(out: &Path, run: &RunResults) -> Result<PathBuf, WriteError> {
    apportion_report::write(out, run, Contents::of(1), &Provenance::default())
}

/// A table of a run as CSV.
fn table(dir: &Path, name: &str) -> String {
    let mut out = Vec::new();
    export(dir, name, &mut out).expect("a table");
    String::from_utf8(out).expect("text")
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_is_a_folder_with_every_file_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/folder");
    let run = write(&out, &weighted(&[7]));
    assert_eq!((run.as_path(), names(&run)), (out.join("1").as_path(), files()));
    assert_eq!(names(&out), ["1", "latest"]);
}

#[test]
fn tables_have_units_in_their_columns() {
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &weighted(&[7]));
    let first = |name: &&str| {
        let text = table(&run, name);
        format!("# {name}\n{}\n", text.lines().take(4).collect::<Vec<_>>().join("\n"))
    };
    insta::assert_snapshot!(TABLES.iter().map(first).collect::<String>());
    insta::assert_snapshot!(fs::read_to_string(run.join("run.json")).unwrap());
}

#[test]
fn a_csv_file_is_what_is_exported() {
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &weighted(&[7, 8]));
    for file in CSV {
        let name = file.strip_suffix(".csv").unwrap();
        assert_eq!(fs::read_to_string(run.join(file)).unwrap(), table(&run, name), "{name}");
    }
    let unknown = |name| export(&run, name, &mut Vec::new()).unwrap_err().to_string();
    let near = unknown("flow");
    assert!(
        near.starts_with("`flow` is no table (did you mean `flows`?); the tables are flows, links,"),
        "{near}"
    );
    assert!(unknown("phases").contains(" (it is called `phase_sensitivity`); "));
}

#[test]
fn a_long_run_has_no_csv_files_and_no_tables_over_time() {
    let dir = tempfile::tempdir().unwrap();
    let write = |contents| {
        apportion_report::write(dir.path(), &weighted(&[7]), contents, &Provenance::default()).unwrap()
    };
    assert_eq!(Contents::of(1_000), Contents { csv: true, intervals: true });
    let long = write(Contents::of(1_001));
    assert!(CSV.iter().all(|file| !long.join(file).exists()));
    assert_eq!(table(&long, "series").lines().count(), 1, "columns alone");
    let with_series = write(Contents { csv: false, intervals: true });
    assert!(table(&with_series, "series").lines().count() > 1_000);
    assert_eq!(table(&long, "flows"), table(&with_series, "flows"));
}

/// More rows than a row group of a file has.
#[test]
fn a_large_table_reads_back_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let seeds: Vec<u64> = (0..150).map(|k| u64::MAX - k).collect();
    let run = write(dir.path(), &weighted(&seeds));
    let text = table(&run, "series");
    assert!(text.lines().count() > 1 << 16, "{}", text.lines().count());
    let mut seen: Vec<&str> = text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    seen.dedup();
    assert_eq!(seen, seeds.iter().map(u64::to_string).collect::<Vec<_>>(), "seeds above 2^53 are whole");
}

#[test]
fn what_was_not_measured_is_empty_and_no_zero() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = weighted(&[7]);
    let flows = &mut run.points[0].outcomes[0].flows;
    for (flow, count) in flows.iter_mut().zip([None, Some(0)]) {
        [flow.retransmits, flow.timeouts, flow.fast_retransmits] = [count; 3];
        flow.goodput = count.map(Bytes::new);
    }
    let written = write(dir.path(), &run);
    let text = table(&written, "flows");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let rows: Vec<_> = lines.take(2).collect();
    let zeros = [("goodput_mbps", "0.0"), ("goodput_bytes", "0"), ("retransmits", "0"), ("timeouts", "0")];
    for (name, zero) in zeros.into_iter().chain([("fast_retransmits", "0")]) {
        let column = names.iter().position(|column| *column == name).unwrap();
        assert_eq!([rows[0][column], rows[1][column]], ["", zero], "{name}");
    }
    // Such a table can be read.
    assert!(load(dir.path()).is_ok());
}

#[test]
fn an_empty_run_still_has_headers_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut empty = run("nothing yet", &[7], vec![]);
    empty.complete = false;
    let written = write(dir.path(), &empty);
    let columns = "point,seed,flow,group,customer,entitlement_mbps,throughput_mbps";
    assert!(table(&written, "flows").starts_with(columns));
    assert!(!load(dir.path()).unwrap().complete);
}

#[test]
fn the_same_run_writes_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (write(dir.path(), &quickstart(&[7, 8])), write(dir.path(), &quickstart(&[7, 8])));
    assert_ne!(a, b);
    for file in files() {
        assert!(fs::read(a.join(&file)).unwrap() == fs::read(b.join(&file)).unwrap(), "{file}");
    }
}

#[test]
fn a_later_run_leaves_an_earlier_one_and_other_files() {
    let dir = tempfile::tempdir().unwrap();
    let first = write(dir.path(), &quickstart(&[7]));
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    let second = write(dir.path(), &weighted(&[7]));
    assert!(table(&first, "flows").contains("queue=fifo") && !table(&second, "flows").contains("queue=fifo"));
    assert_eq!(names(dir.path()), ["1", "2", "latest", "notes.txt"]);
    assert_eq!(load(dir.path()).unwrap().folder, second);
}

#[test]
fn a_file_in_the_way_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("results");
    fs::write(&file, "").unwrap();
    let message = try_write(&file, &weighted(&[7])).unwrap_err().to_string();
    assert!(message.contains("results`: it is a file, not a folder"), "{message}");
    let message = try_write(&file.join("below"), &weighted(&[7])).unwrap_err().to_string();
    assert!(message.contains("a file is where a folder is needed"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_folder_without_write_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write anyway; then there is nothing to test.
    if fs::write(dir.path().join("probe"), "").is_err() {
        let message = try_write(dir.path(), &weighted(&[7])).unwrap_err().to_string();
        assert!(message.contains("make it writable or choose another folder"), "{message}");
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let message = load(dir.path()).unwrap_err().to_string();
    assert!(message.contains("it holds no run; name a folder that"), "{message}");
    let run = write(dir.path(), &weighted(&[7]));
    fs::write(run.join("run.json"), "{\"format\": \"apportion-run/6\"}").unwrap();
    let message = load(dir.path()).unwrap_err().to_string();
    assert!(
        message.contains("run.json`: its format is `apportion-run/6`, not `apportion-run/7`"),
        "{message}"
    );
}

#[test]
fn a_damaged_table_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &weighted(&[7, 8]));
    let path = run.join("flows.parquet");
    let whole = fs::read(&path).unwrap();
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for bytes in [Vec::new(), whole[..whole.len() - 9].to_vec(), changed] {
        fs::write(&path, bytes).unwrap();
        let message = load(dir.path()).unwrap_err().to_string();
        let cause = "flows.parquet`: it is not the table that was written";
        assert!(message.contains(cause) && !message.contains('\n'), "{message}");
        assert!(
            message.ends_with("write it again with `apportion run SCENARIO.toml --out DIR`"),
            "{message}"
        );
    }
    fs::remove_file(&path).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("flows.parquet`: "));
    fs::write(&path, &whole).unwrap();
    load(dir.path()).unwrap();
}

#[test]
fn tables_and_run_json_must_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (write(dir.path(), &weighted(&[7])), write(dir.path(), &weighted(&[7, 8])));
    let head = |run: &Path| fs::read_to_string(run.join("run.json")).unwrap();
    let hash = |run: &Path| {
        let head: serde_json::Value = serde_json::from_str(&head(run)).unwrap();
        head["tables"]["flows"].as_str().unwrap().to_owned()
    };
    let refused = |from: &Path, to: &Path| {
        let mixed = dir.path().join("mixed");
        fs::create_dir_all(&mixed).unwrap();
        TABLES.iter().map(|table| format!("{table}.parquet")).for_each(|file| {
            fs::copy(to.join(&file), mixed.join(&file)).unwrap();
        });
        fs::copy(from.join("flows.parquet"), mixed.join("flows.parquet")).unwrap();
        fs::write(mixed.join("run.json"), head(to).replace(&hash(to), &hash(from))).unwrap();
        load(&mixed).unwrap_err().to_string()
    };
    let fewer = refused(&one, &two);
    assert!(fewer.contains("rows of point ``, seed 8, are missing: 0 of "), "{fewer}");
    let more = refused(&two, &one);
    assert!(more.contains("run.json has no replication of point `` with seed 8 here"), "{more}");
}

/// A malformed file that no writer produces, with a matching hash, is refused or has other values.
#[test]
fn no_bytes_of_a_table_are_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    let run = write(dir.path(), &weighted(&[7]));
    let (path, head) = (run.join("completions.parquet"), run.join("run.json"));
    let (whole, text) = (fs::read(&path).unwrap(), fs::read_to_string(&head).unwrap());
    let hash =
        |bytes: &[u8]| -> String { Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect() };
    let mut refused = 0;
    for (at, bit) in (0..whole.len()).step_by(7).zip([1, 0x80, 0x10].into_iter().cycle()) {
        let mut bytes = whole.clone();
        bytes[at] ^= bit;
        fs::write(&path, &bytes).unwrap();
        fs::write(&head, text.replace(&hash(&whole), &hash(&bytes))).unwrap();
        refused += usize::from(load(dir.path()).is_err());
    }
    assert!(refused > 0);
}

#[test]
fn outcomes_that_are_not_held_are_not_written_as_if_there_were_none() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = weighted(&[7]);
    let mut summary = PointSummary::default();
    summary.add(&ReplicationRows::of(run.points[0].with(&run.points[0].outcomes[0], None), false));
    let mut point = run.points.remove(0).summarised(summary);
    point.outcomes.clear();
    run.points.push(point);
    let message = try_write(dir.path(), &run).unwrap_err().to_string();
    assert!(message.contains("did not hold the outcomes"), "{message}");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn a_run_compared_with_itself_does_not_differ() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &quickstart(&[7, 8, 9]));
    let stored = load(dir.path()).unwrap();
    let comparison = compare(&[stored.clone(), stored]).unwrap();
    assert!(comparison.rows.len() > 30);
    for row in &comparison.rows {
        let difference = row.differences[0].unwrap();
        assert_eq!((difference.absolute, difference.overlap), (0.0, Some(true)), "{row:?}");
    }
}

#[test]
fn the_page_of_a_comparison_opens_scenarios_in_the_playground() {
    let dir = tempfile::tempdir().unwrap();
    let stored = |run: &RunResults| {
        write(dir.path(), run);
        load(dir.path()).unwrap()
    };
    let mut run = quickstart(&[7, 8]);
    run.scenario = r#"seed = 7
        stop = "2s"
        link.l = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
        flow.x = { from = "a", to = "b", tcp = "rfc" }
        "#
    .to_owned();
    let short = stored(&run);
    run.scenario += &format!("#{}", "x".repeat(400_000));
    let runs = [short.clone(), stored(&run), short];
    let page = compare(&runs).unwrap().page(&runs);
    // A long text is left out, and those behind it are not.
    for number in [1, 3] {
        assert!(page.contains(&format!("<li data-opens=\"scenario-{number}\">")));
        assert!(page.contains(&format!("<pre id=\"scenario-{number}\" data-seeds=\"2\">")));
    }
    assert!(!page.contains("<pre id=\"scenario-2\"") && page.contains("1 more scenarios are in the folders"));
}

#[test]
fn the_page_of_a_comparison_has_the_rows_of_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| dir.path().join(name));
    let seeds = [7, 8, 9];
    let mut changed = quickstart(&seeds);
    changed.scenario = changed.scenario.replace("60s", "<b>9s");
    changed.points[0] = point(&FIFO, &ten_and_one(1_000, 0.0, 0.01, 9.0), &seeds);
    write(&first, &quickstart(&seeds));
    write(&second, &changed);
    let runs = [&first, &second].map(|folder| load(folder).unwrap());
    let comparison = compare(&runs).unwrap();
    let page = comparison.page(&runs);
    assert!(page.contains("<th scope=\"row\">stop</th><td>60s</td><td>&lt;b&gt;9s</td>"), "{page}");
    // Every row of the text, with its words.
    let text = comparison.to_string();
    for line in text.lines().filter(|line| line.contains("ms  ")) {
        let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let (metric, rest) = cells.split_first().unwrap();
        let row = format!("<th scope=\"row\">{metric}</th><td>{}</td>", rest.join("</td><td>"));
        assert!(page.contains(&row), "{row}");
    }
    assert!(page.contains("<td>apart</td>") && page.contains("<td>not distinguishable</td>"));
    // Both runs in the figure of each quantity, and next to each other for each point.
    for run in ["[1] ", "[2] "] {
        assert!(page.matches(&format!("</span>{run}")).count() > 8);
        assert_eq!(page.matches(&format!("<br/>{run}")).count(), 4);
    }
    // Points that only one run has are named, and not drawn.
    let mut other = changed;
    other.points.retain(|point| point.label != DRR.label);
    write(&second, &other);
    let runs = [&first, &second].map(|folder| load(folder).unwrap());
    let page = compare(&runs).unwrap().page(&runs);
    assert!(page.contains("<p>Only [1] has queue=drr.</p>") && !page.contains("<p>Only [2] "), "{page}");
    assert_eq!(page.matches("<br/>[1] ").count(), 3);
    // Runs of a single point each, with any labels.
    for (folder, kind) in [(&first, &FIFO), (&second, &DRR)] {
        let single = run("one", &[7], vec![point(kind, &ten_and_one(1_000, 0.0, 0.0, 9.0), &[7])]);
        write(folder, &single);
    }
    let runs = [&first, &second].map(|folder| load(folder).unwrap());
    let page = compare(&runs).unwrap().page(&runs);
    assert!(page.contains("One of the runs has a single seed") && page.contains("<td>no interval</td>"));
    assert!(page.contains("runs of the same scenario") && page.matches("<svg").count() > 8, "{page}");
}

#[test]
fn metrics_are_tables_of_latex_as_in_the_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let mut results = quickstart(&[7, 8, 9]);
    results.points[0].label = "rate=5Mbit, queue=100%_a".to_owned();
    write(dir.path(), &results);
    let stored = load(dir.path()).unwrap();
    let text = latex::of_run(&stored);
    assert!(text.contains("% Means over 3 seeds, and half of their 95 % intervals.\n"), "{text}");
    assert!(
        text.contains("metric & unit & \\shortstack[r]{rate=5Mbit \\\\ queue=100\\%\\_a} & queue=red & "),
        "{text}"
    );
    let line = |metric: &str| text.lines().find(|line| line.starts_with(&format!("{metric} & "))).unwrap();
    let comparison = compare(std::slice::from_ref(&stored)).unwrap();
    for metric in ["throughput_mbps", "jain", "delay_p95_ms/tcp", "queue_delay_p95_ms/bottleneck"] {
        let measured = comparison.rows.iter().filter(|row| row.metric == metric).take(4);
        let cells: Vec<_> =
            measured.map(|row| latex::escape(&row.measured[0].unwrap().to_string())).collect();
        let line = line(&latex::escape(metric));
        assert!(
            cells.len() == 4 && line.ends_with(&format!(" & {} \\\\", cells.join(" & "))),
            "{line}: {cells:?}"
        );
    }
    assert!(line("throughput\\_mbps/tcp").contains(" $\\pm$ "), "{text}");
    // Seven points take two tables; a comment notes an interrupted or invalid run.
    let mut more = quickstart(&[7]);
    more.complete = false;
    for label in ["5", "6", "[7]"] {
        more.points.push(point(&FIFO, &ten_and_one(1_000, 0.0, 0.0, 9.0), &[7]));
        more.points.iter_mut().last().unwrap().label = label.to_owned();
    }
    write(dir.path(), &more);
    // The folder itself stands for the last complete run.
    let text = latex::of_run(&load(&dir.path().join("2")).unwrap());
    assert_eq!(text.matches("\\begin{tabular}").count(), 2);
    assert!(text.contains("% One seed: there are no intervals.\n% The run was interrupted"), "{text}");
    assert!(text.contains("metric & unit & 5 & 6 & [7] \\\\"), "{text}");
}

/// A file of results can hold any numbers.
#[test]
fn counts_of_drops_that_do_not_fit_are_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = quickstart(&[7]);
    for point in &mut run.points {
        let dropped = &mut point.outcomes[0].links[0].dropped;
        dropped.extend(DropReason::ALL.map(|reason| (reason, u64::MAX)));
    }
    write(dir.path(), &run);
    let comparison = compare(&[load(dir.path()).unwrap()]).unwrap();
    let row = comparison.rows.iter().find(|row| row.metric == "drops_packets").unwrap();
    assert!(row.measured[0].unwrap().mean >= u64::MAX as f64);
}

#[test]
fn completion_times_are_those_of_all_transfers_of_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let run = weighted(&[7]);
    write(dir.path(), &run);
    let stored = load(dir.path()).unwrap();
    let comparison = compare(&[stored]).unwrap();
    let row = comparison.rows.iter().find(|r| r.metric == "completion_p50_s/web").unwrap();
    let flow = run.points[0].outcomes[0].flows.iter().find(|f| f.name == "web").unwrap();
    let mut took: Vec<f64> = flow.completions.iter().map(|c| c.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    // The 50th of a hundred.
    assert!((row.measured[0].unwrap().mean - took[49]).abs() < 1e-6);
}

#[test]
fn runs_that_differ_are_distinguished() {
    let dir = tempfile::tempdir().unwrap();
    let mut stored = Vec::new();
    // Single points match although their labels differ.
    for (name, discipline, udp) in [("a", FIFO, 8_000), ("b", DRR, 910)] {
        let seeds = [7, 8, 9];
        let out = dir.path().join(name);
        write(&out, &run(name, &seeds, vec![point(&discipline, &ten_and_one(udp, 0.0, 0.1, 50.0), &seeds)]));
        stored.push(load(&out).unwrap());
    }
    let comparison = compare(&stored).unwrap();
    let row = |name: &str| comparison.rows.iter().find(|r| r.metric == name).unwrap();
    let udp = row("throughput_mbps/udp").differences[0].unwrap();
    assert!((udp.absolute + 7.09).abs() < 0.3 && udp.overlap == Some(false), "{udp:?}");
    assert_eq!(row("throughput_mbps").differences[0].unwrap().overlap, Some(true));
    // The worst-off flow is that of TCP beside a flood, which DRR protects.
    assert!(row("worst_share").differences[0].unwrap().absolute > 0.1);
    // A quantity stands for all of its groups; what is alike, or was not measured, is distinguished from what moved.
    let moved = |name: &str| comparison.moved(&[name.to_owned()]).map_err(|error| error.to_string());
    assert!(moved("throughput_mbps/udp").unwrap()[0].starts_with("throughput_mbps/udp of queue=fifo: 7.95 "));
    let shares = moved("share").unwrap();
    assert!(shares.len() == 2 && shares.iter().all(|text| text.starts_with("share/")), "{shares:?}");
    assert_eq!(moved("delay_p95_ms"), Ok(Vec::new()));
    // Drops by a reason that did not occur are 0.
    let lost =
        |comparison: &Comparison| comparison.moved(&["link_drops_overflow_packets".to_owned()]).unwrap();
    assert!(lost(&comparison)[0].ends_with(" packets in [1], 0 packets in [2]"), "{:?}", lost(&comparison));
    assert_eq!(moved("link_drops_early_packets"), Ok(Vec::new()));
    let unknown = "the first run has no metric `wurst_share` (did you mean `worst_share`?)";
    assert!(moved("wurst_share").unwrap_err().starts_with(unknown));
    let text = comparison.to_string().replace(&dir.path().display().to_string(), "DIR").replace('\\', "/");
    insta::assert_snapshot!(text);
    stored.reverse();
    let lost = lost(&compare(&stored).unwrap());
    assert!(lost[0].contains(": 0 packets in [1], "), "{lost:?}");
}

#[test]
fn runs_without_a_common_point_are_not_compared() {
    let dir = tempfile::tempdir().unwrap();
    let stored = |name: &str, labels: &[String]| {
        let of = |label: &String| {
            let mut point = point(&DRR, &ten_and_one(900, 0.0, 0.1, 50.0), &[7]);
            point.label.clone_from(label);
            point
        };
        write(&dir.path().join(name), &run(name, &[7], labels.iter().map(of).collect()));
        let mut stored = load(&dir.path().join(name)).unwrap();
        stored.folder = name.into();
        stored
    };
    let labels = |from: u32, to: u32| (from..to).map(|n| format!("rate={n}Mbit")).collect::<Vec<_>>();
    let (sweep, plain) = (stored("sweep", &labels(1, 15)), stored("plain", &[String::new()]));
    let other = stored("other", &labels(14, 16));
    let error = compare(&[plain.clone(), sweep.clone()]).unwrap_err().to_string();
    let end = "`rate=11Mbit`, `rate=12Mbit`, 2 more; run both with the same alternatives";
    let start = "`plain` and `sweep` have no point in common: the points of the first are one without a name, those of the second `rate=1Mbit`, ";
    assert!(error.starts_with(start) && error.ends_with(end), "{error}");
    // One common point is enough; each run must have one.
    assert!(!compare(&[sweep.clone(), other.clone()]).unwrap().rows.is_empty());
    assert!(compare(&[sweep, other, plain]).is_err());
}

#[test]
fn customers_are_in_the_table_of_flows_and_in_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = weighted(&[7, 8]);
    for point in &mut run.points {
        point.flows[0].customer = Some("a <b>".into());
        let rest = point.flows.iter().skip(1).map(|flow| flow.group.clone()).collect::<Vec<_>>();
        assert!(!rest.is_empty(), "the others belong to no customer");
    }
    let written = write(dir.path(), &run);
    let flows = table(&written, "flows");
    let place = flows.lines().next().unwrap().split(',').position(|name| name == "customer").unwrap();
    let named = flows.lines().skip(1).filter(|line| line.split(',').nth(place) == Some("a <b>")).count();
    assert_eq!(named, 2 * run.points.len(), "one flow of each point and seed");
    let page = fs::read_to_string(written.join("report.html")).unwrap();
    assert!(
        page.contains("id=\"customers\"") && page.contains("a &lt;b&gt;") && page.contains("(no customer)")
    );
    assert!(load(dir.path()).is_ok());

    let plain = tempfile::tempdir().unwrap();
    let written = write(plain.path(), &weighted(&[7]));
    let page = fs::read_to_string(written.join("report.html")).unwrap();
    assert!(!page.contains("id=\"customers\""), "no customers, no table");
}
