//! `apportion plot` writes figures, and overwrites no file.

use std::fs;

use crate::common::apportion;

const SCENARIO: &str = r#"
title = "test"
seed = 3
stop = "2s"
link.wire = { from = "a", to = "b", rate = ["1Mbit", "2Mbit", "4Mbit"], delay = "5ms", watch = true, queue = ["fifo", "drr"] }
flow.tcp = { from = "a", to = "b", tcp = "rfc" }
"#;

#[test]
fn a_figure_is_written_once_and_again_only_by_force() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), SCENARIO).unwrap();
    assert_eq!(apportion(dir.path(), &["run", "s.toml", "--out", "r", "--quiet"]).status, 0);
    let files = || {
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };

    let plot = ["plot", "r", "--kind", "sweep", "--out", "fig.pdf"];
    let run = apportion(dir.path(), &plot);
    assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (0, "figure: fig.pdf\n", ""));
    let first = fs::read(dir.path().join("fig.pdf")).unwrap();
    assert!(first.starts_with(b"%PDF-"));

    let run = apportion(dir.path(), &plot);
    assert_eq!(run.status, 2);
    assert_eq!(run.err, "error: `fig.pdf` is there already; overwrite it with --force\n");
    fs::write(dir.path().join("fig.pdf"), "other").unwrap();
    assert_eq!(apportion(dir.path(), &[&plot[..], &["--force"]].concat()).status, 0);
    assert_eq!(fs::read(dir.path().join("fig.pdf")).unwrap(), first);

    let before = files();
    for (arguments, message) in [
        (["--kind", "sweep", "--out", "fig.png"], "error: `fig.png` ends in none of .svg, .pdf and .csv"),
        (["--kind", "pie", "--out", "fig.svg"], "error: invalid value 'pie' for '--kind <KIND>'"),
        (["--kind", "sweep", "--out", "no/fig.svg"], "error: cannot write `no/fig.svg`"),
    ] {
        let run = apportion(dir.path(), &[&["plot", "r"][..], &arguments].concat());
        assert_eq!(run.status, 2, "{}", run.err);
        assert!(run.err.starts_with(message), "{}", run.err);
    }
    assert_eq!(files(), before);
}
