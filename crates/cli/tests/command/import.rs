//! `apportion import`: its files, its messages and its refusals.

use std::path::Path;

use crate::common::apportion;

fn examples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/import").display().to_string()
}

#[test]
fn an_imported_script_is_printed_and_what_is_left_out_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = "modprobe ifb\ntc qdisc add dev eth0 root netem delay 10ms duplicate 1%\n";
    std::fs::write(folder.path().join("n.sh"), text).unwrap();
    let import = apportion(folder.path(), &["import", "n.sh"]);
    assert_eq!(import.status, 0, "{}", import.err);
    assert_eq!(
        import.err,
        "note: n.sh:1: commands of others than tc, `modprobe ifb`: left out\nnote: n.sh:2: duplicate 1%: no packet comes twice\n"
    );
    assert!(
        import.out.contains("# n.sh:2: tc qdisc add dev eth0") && import.out.contains("delay = \"10ms\""),
        "{}",
        import.out
    );
    std::fs::write(folder.path().join("n.toml"), &import.out).unwrap();
    let run = apportion(folder.path(), &["run", "n.toml", "--show-config"]);
    assert_eq!(run.status, 0, "{}", run.err);
}

#[test]
fn plans_are_written_beside_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let examples = examples();
    let files = ["ShapedDevices.csv", "network.json", "lqos.conf"].map(|name| format!("{examples}/{name}"));
    let import = |more: &[&str]| {
        let words = [&["import", &files[0], &files[1], &files[2]][..], more].concat();
        apportion(folder.path(), &words)
    };
    let printed = import(&[]);
    assert_eq!((printed.status, printed.out.as_str()), (2, ""));
    assert!(printed.err.contains("it takes two files"), "{}", printed.err);
    let wrong = import(&["--out", "p.csv"]);
    assert!(wrong.status == 2 && wrong.err.contains("`p.csv` is for the plans"), "{}", wrong.err);
    let written = import(&["--out", "p.toml"]);
    assert_eq!(
        (written.status, written.out.as_str()),
        (0, "gateway: p.toml\nplans: p.csv\n"),
        "{}",
        written.err
    );
    if cfg!(target_os = "linux") {
        let show = apportion(folder.path(), &["gateway", "show", "p.toml"]);
        assert!(show.status == 0 && show.out.contains("200Mbit"), "{}\n{}", show.out, show.err);
    }
    // One of the two files exists: neither is touched.
    for there in ["p.toml", "p.csv"] {
        std::fs::remove_file(folder.path().join(if there == "p.toml" { "p.csv" } else { "p.toml" })).unwrap();
        let again = import(&["--out", "p.toml"]);
        assert_eq!(again.err, format!("error: `{there}` is there already; overwrite it with --force\n"));
        assert_eq!(import(&["--out", "p.toml", "--force"]).status, 0);
    }
}

#[test]
fn what_cannot_be_imported_is_refused_with_status_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x"), "tc qdisc add dev e root netem delay 100\n").unwrap();
    std::fs::write(
        folder.path().join("utf16"),
        "\u{feff}t".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
    )
    .unwrap();
    let error = |words: &[&str]| {
        let import = apportion(folder.path(), &[&["import"][..], words].concat());
        assert_eq!((import.status, import.out.as_str()), (2, ""), "{words:?}");
        import.err
    };
    assert_eq!(
        error(&["x", "--out", "y.toml"]),
        "error: x:1: `100` is not a time of an hour at most with its unit; write for example 10ms\n"
    );
    assert!(!folder.path().join("y.toml").exists());
    assert!(error(&["gone"]).starts_with("error: gone: cannot be read: "));
    assert!(error(&["utf16"]).contains("UTF-16; save it as UTF-8"));
    assert!(error(&["x", "--from", "pf"]).contains("libreqos"));
    assert!(error(&[]).contains("<FILE>"));
}
