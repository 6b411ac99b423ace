//! The usage lines that `explain` prints can be copied: the loader reads every line that begins with `Use:`.

use apportion::catalogue::{self, Section};
use apportion::{Catalog, Scenario};

/// Returns a scenario that contains `line`: a key of the file, of a link or of a flow.
fn with(line: &str) -> String {
    let [mut file, mut link, mut flow] = [const { String::new() }; 3];
    match line.split_once(" =").unwrap().0 {
        "topology" => file = line.to_owned(),
        "queue" | "exchange" => link = format!(", {line}"),
        _ => flow = format!(", {line}"),
    }
    // Calls send datagrams, and files that a topology or a source reads do not exist.
    let tcp = if ["tcp = ", "quic = ", "\"replay\"", "\"voice\"", "\"call\""]
        .iter()
        .any(|key| flow.contains(key))
    {
        ""
    } else {
        ", tcp = \"rfc\""
    };
    let has_tickets = line.starts_with("exchange") || line.starts_with("mark = { kind = \"ticket");
    let tickets = if has_tickets { ", tickets = 100" } else { "" };
    format!(
        "seed = 1\nstop = \"1s\"\n{file}\n\
         link.l = {{ from = \"a\", to = \"b\", rate = \"10Mbit\", delay = \"1ms\"{link} }}\n\
         flow.f = {{ from = \"a\", to = \"b\"{tickets}{tcp}{flow} }}\n"
    )
}

#[test]
fn every_use_that_is_printed_is_read() {
    let catalog = Catalog::default();
    let mut uses = 0;
    for list in catalogue::list(&catalog) {
        for entry in list.entries {
            let text = catalogue::explain(&catalog, &entry.name).unwrap();
            for line in text.lines().filter_map(|line| line.strip_prefix("Use: ")) {
                uses += 1;
                // A profile has a second form with placeholders for parameters; an algorithm has a remark.
                let line = line.split_once(", or ").map_or(line, |(first, _)| first);
                let needs_a_file = line.contains("file = \"name\"");
                match Scenario::from_text(with(line)) {
                    Ok(_) => assert!(!needs_a_file, "{line}"),
                    Err(error) => {
                        let error = error.to_string();
                        assert!(
                            needs_a_file && error.contains("cannot read"),
                            "{}: {line}: {error}",
                            entry.name
                        );
                    }
                }
            }
            assert!(text.contains("Use: ") || list.section == Section::Tcp, "{}", entry.name);
        }
    }
    assert!(uses > 50, "{uses}");
}
