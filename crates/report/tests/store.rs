//! The results folder: what is in it, what replaces what, and what is refused.

use std::fs;
use std::path::Path;

use apportion_core::units::Bytes;
use apportion_report::{compare, load, write};

mod synthetic;

use synthetic::{DRR, FIFO, point, quickstart, run, ten_and_one, weighted};

const FILES: [&str; 10] = [
    "allocations.csv",
    "completions.csv",
    "flows.csv",
    "links.csv",
    "phases.csv",
    "report.html",
    "responses.csv",
    "run.json",
    "series.csv",
    "statistics.csv",
];

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn head(dir: &Path, file: &str, lines: usize) -> String {
    fs::read_to_string(dir.join(file)).expect("a file").lines().take(lines).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_folder_holds_every_file_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/folder");
    write(&out, &weighted(&[7])).unwrap();
    assert_eq!(names(&out), FILES);
}

#[test]
fn tables_have_units_in_their_columns() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &weighted(&[7])).unwrap();
    let golden = [
        "flows.csv",
        "links.csv",
        "series.csv",
        "allocations.csv",
        "completions.csv",
        "statistics.csv",
        "responses.csv",
        "phases.csv",
    ]
    .map(|file| format!("# {file}\n{}\n", head(dir.path(), file, 4)));
    insta::assert_snapshot!(golden.concat());
    insta::assert_snapshot!(fs::read_to_string(dir.path().join("run.json")).unwrap());
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
    write(dir.path(), &run).unwrap();
    let text = fs::read_to_string(dir.path().join("flows.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let rows: Vec<_> = lines.take(2).collect();
    let zeros = [("goodput_mbps", "0.0"), ("goodput_bytes", "0"), ("retransmits", "0"), ("timeouts", "0")];
    for (name, zero) in zeros.into_iter().chain([("fast_retransmits", "0")]) {
        let column = names.iter().position(|column| *column == name).unwrap();
        assert_eq!([rows[0][column], rows[1][column]], ["", zero], "{name}");
    }
    // Such a table reads back.
    assert!(load(dir.path()).is_ok());
}

#[test]
fn an_empty_run_still_has_headers_and_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut empty = run("nothing yet", &[7], vec![]);
    empty.complete = false;
    write(dir.path(), &empty).unwrap();
    assert!(
        head(dir.path(), "flows.csv", 1)
            .starts_with("point,seed,flow,group,customer,entitlement_mbps,throughput_mbps")
    );
    assert!(!load(dir.path()).unwrap().complete);
}

#[test]
fn the_same_run_writes_the_same_bytes() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(a.path(), &quickstart(&[7, 8])).unwrap();
    write(b.path(), &quickstart(&[7, 8])).unwrap();
    for file in FILES {
        assert_eq!(fs::read(a.path().join(file)).unwrap(), fs::read(b.path().join(file)).unwrap(), "{file}");
    }
}

#[test]
fn a_later_run_replaces_an_earlier_one_and_leaves_other_files() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &quickstart(&[7])).unwrap();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    write(dir.path(), &weighted(&[7])).unwrap();
    assert!(!head(dir.path(), "flows.csv", 99).contains("queue=fifo"));
    assert_eq!(fs::read_to_string(dir.path().join("notes.txt")).unwrap(), "mine");
}

#[test]
fn captures_and_leftovers_do_not_stand_in_the_way() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("bottleneck.pcap"), "").unwrap();
    fs::write(dir.path().join(".flows.csv.partial"), "half").unwrap();
    write(dir.path(), &weighted(&[7])).unwrap();
    assert!(!dir.path().join(".flows.csv.partial").exists());
}

#[test]
fn a_foreign_folder_is_refused_and_untouched() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("flows.csv"), "mine").unwrap();
    let message = write(dir.path(), &weighted(&[7])).unwrap_err().to_string();
    assert!(message.contains("holds files but no run.json of an earlier run"), "{message}");
    assert!(message.contains("choose another folder with --out DIR"), "{message}");

    for foreign in ["{}", "not json", "{\"format\": \"other\"}"] {
        fs::write(dir.path().join("run.json"), foreign).unwrap();
        let message = write(dir.path(), &weighted(&[7])).unwrap_err().to_string();
        assert!(message.contains("its run.json is not from apportion"), "{message}");
    }
    assert_eq!(names(dir.path()), ["flows.csv", "run.json"]);
    assert_eq!(fs::read_to_string(dir.path().join("flows.csv")).unwrap(), "mine");
}

#[test]
fn a_file_or_folder_in_the_way_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("results");
    fs::write(&file, "").unwrap();
    let message = write(&file, &weighted(&[7])).unwrap_err().to_string();
    assert!(message.contains("results`: it is a file, not a folder"), "{message}");
    let message = write(&file.join("below"), &weighted(&[7])).unwrap_err().to_string();
    assert!(message.contains("a file is where a folder is needed"), "{message}");

    let out = dir.path().join("out");
    write(&out, &weighted(&[7])).unwrap();
    fs::remove_file(out.join("report.html")).unwrap();
    fs::create_dir(out.join("report.html")).unwrap();
    let before = fs::read(out.join("flows.csv")).unwrap();
    let message = write(&out, &quickstart(&[7])).unwrap_err().to_string();
    assert!(message.contains("report.html`: a folder of this name is in the way; move it"), "{message}");
    assert_eq!(fs::read(out.join("flows.csv")).unwrap(), before, "an earlier run was damaged");
    assert_eq!(names(&out), FILES, "leftovers");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_the_earlier_run_whole() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &weighted(&[7])).unwrap();
    let before: Vec<Vec<u8>> = FILES.iter().map(|f| fs::read(dir.path().join(f)).unwrap()).collect();
    // Whatever is written to this device fails for lack of space.
    std::os::unix::fs::symlink("/dev/full", dir.path().join(".series.csv.partial")).unwrap();
    let message = write(dir.path(), &quickstart(&[7])).unwrap_err().to_string();
    assert!(message.contains("series.csv`: No space left on device"), "{message}");
    assert!(message.contains("free some space"), "{message}");
    let after: Vec<Vec<u8>> = FILES.iter().map(|f| fs::read(dir.path().join(f)).unwrap()).collect();
    assert_eq!(names(dir.path()), FILES);
    assert!(before == after);
}

#[cfg(unix)]
#[test]
fn a_folder_without_write_permission_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write anyway; then there is nothing to see here.
    if fs::write(dir.path().join(".probe.partial"), "").is_err() {
        let message = write(dir.path(), &weighted(&[7])).unwrap_err().to_string();
        assert!(message.contains("make it writable or choose another folder"), "{message}");
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_cannot_be_read_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let message = load(dir.path()).unwrap_err().to_string();
    assert!(message.contains("run.json`") && message.contains("name a folder that"), "{message}");

    write(dir.path(), &weighted(&[7])).unwrap();
    fs::write(dir.path().join("flows.csv"), "point,seed\nx,y\n").unwrap();
    let message = load(dir.path()).unwrap_err().to_string();
    assert!(message.contains("flows.csv`") && message.contains("write it again"), "{message}");

    fs::write(dir.path().join("run.json"), "{\"format\": \"apportion-run/99\"}").unwrap();
    let message = load(dir.path()).unwrap_err().to_string();
    assert!(message.contains("its format is `apportion-run/99`"), "{message}");
}

#[test]
fn a_damaged_table_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &weighted(&[7, 8])).unwrap();
    let path = dir.path().join("flows.csv");
    let whole = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        load(dir.path()).unwrap_err().to_string()
    };
    let with_field = |at: usize, text: &str| {
        let mut fields: Vec<&str> = lines[1].split(',').collect();
        fields[at] = text;
        format!("{}\n{}\n", lines[0], fields.join(","))
    };
    let rest = lines[2..].join("\n");
    for (bytes, cause) in [
        (b"".to_vec(), "line 1: its columns are ``, not `point,seed,flow"),
        (b"garbage\nmore\n".to_vec(), "line 1: its columns are `garbage`, not `point,seed,flow"),
        (b"\x7fELF\0\xff\xfe\n\0\0".to_vec(), "line 1: "),
        (whole.replacen("seed", "sead", 1).into_bytes(), "line 1: its columns are `point,sead,flow"),
        (
            format!("{}\n", lines[0]).into_bytes(),
            "after the last line: rows of point ``, seed 7, are missing: 0 of 1",
        ),
        (
            format!("{}\n{}\n", lines[0], lines[1]).into_bytes(),
            "after the last line: rows of point ``, seed 8, are missing",
        ),
        (whole.as_bytes()[..whole.len() - 9].to_vec(), &format!("line {}: ", lines.len())),
        (with_field(6, "fast").into_bytes(), "line 2: column 7: "),
        (with_field(6, "NaN").into_bytes(), "line 2: throughput_mbps is not a finite number"),
        (with_field(8, "-1").into_bytes(), "line 2: column 9: "),
        (with_field(0, "x").into_bytes(), "line 2: run.json has no replication of point `x` with seed 7"),
        (with_field(1, "9").into_bytes(), "line 2: run.json has no replication of point `` with seed 9"),
        (format!("{}\na,b\n{rest}\n", lines[0]).into_bytes(), "line 2: 2 columns, not "),
    ] {
        let message = refused(&bytes);
        assert!(message.contains(&format!("flows.csv`: {cause}")), "{message}");
        assert!(
            message.ends_with("write it again with `apportion run SCENARIO.toml --out DIR`"),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message}");
    }
    fs::remove_file(&path).unwrap();
    assert!(load(dir.path()).unwrap_err().to_string().contains("flows.csv`: No such file"));
    fs::write(&path, &whole).unwrap();
    load(dir.path()).unwrap();
}

#[test]
fn a_run_compared_with_itself_does_not_differ() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &quickstart(&[7, 8, 9])).unwrap();
    let stored = load(dir.path()).unwrap();
    let comparison = compare(&[stored.clone(), stored]);
    assert!(comparison.rows.len() > 30);
    for row in &comparison.rows {
        let difference = row.differences[0].unwrap();
        assert_eq!((difference.absolute, difference.overlap), (0.0, Some(true)), "{row:?}");
    }
}

/// A file of results can hold any numbers.
#[test]
fn counts_of_drops_that_do_not_fit_are_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &quickstart(&[7])).unwrap();
    let path = dir.path().join("links.csv");
    let text = fs::read_to_string(&path).unwrap();
    let titles: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let largest = u64::MAX.to_string();
    let rows = text.lines().skip(1).map(|line| {
        let cells = titles.iter().zip(line.split(','));
        cells
            .map(|(title, cell)| if title.starts_with("drops_") { &largest } else { cell })
            .collect::<Vec<_>>()
    });
    let rows: String = rows.map(|row| row.join(",") + "\n").collect();
    fs::write(&path, titles.join(",") + "\n" + &rows).unwrap();
    let comparison = compare(&[load(dir.path()).unwrap()]);
    let row = comparison.rows.iter().find(|row| row.metric == "drops_packets").unwrap();
    assert!(row.measured[0].unwrap().mean >= u64::MAX as f64);
}

#[test]
fn completion_times_are_those_of_all_transfers_of_a_group() {
    let dir = tempfile::tempdir().unwrap();
    let run = weighted(&[7]);
    write(dir.path(), &run).unwrap();
    let stored = load(dir.path()).unwrap();
    let comparison = compare(&[stored]);
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
    // Single points match although they are called differently.
    for (name, discipline, udp) in [("a", FIFO, 8_000), ("b", DRR, 910)] {
        let seeds = [7, 8, 9];
        let out = dir.path().join(name);
        write(&out, &run(name, &seeds, vec![point(&discipline, &ten_and_one(udp, 0.0, 0.1, 50.0), &seeds)]))
            .unwrap();
        stored.push(load(&out).unwrap());
    }
    let comparison = compare(&stored);
    let row = |name: &str| comparison.rows.iter().find(|r| r.metric == name).unwrap();
    let udp = row("throughput_mbps/udp").differences[0].unwrap();
    assert!((udp.absolute + 7.09).abs() < 0.3 && udp.overlap == Some(false), "{udp:?}");
    assert_eq!(row("throughput_mbps").differences[0].unwrap().overlap, Some(true));
    let text = comparison.to_string().replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(text);
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
    write(dir.path(), &run).unwrap();
    let flows = fs::read_to_string(dir.path().join("flows.csv")).unwrap();
    let place = flows.lines().next().unwrap().split(',').position(|name| name == "customer").unwrap();
    let named = flows.lines().skip(1).filter(|line| line.split(',').nth(place) == Some("a <b>")).count();
    assert_eq!(named, 2 * run.points.len(), "one flow of each point and seed");
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(
        page.contains("id=\"customers\"") && page.contains("a &lt;b&gt;") && page.contains("(no customer)")
    );
    assert!(load(dir.path()).is_ok());

    let plain = tempfile::tempdir().unwrap();
    write(plain.path(), &weighted(&[7])).unwrap();
    let page = fs::read_to_string(plain.path().join("report.html")).unwrap();
    assert!(!page.contains("id=\"customers\""), "no customers, no table");
}
