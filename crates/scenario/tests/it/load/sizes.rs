//! Distributions of the sizes of short flows.

use apportion_scenario::model::Sizes;

use super::*;

fn text(sizes: &str) -> String {
    format!(
        "seed = 1\nstop = \"10s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\nsource = {{ kind = \"short_flows\", per_second = 1, {sizes} }}\n"
    )
}

fn sizes(keys: &str) -> Sizes {
    match &scenario(&text(keys)).flows[0].source {
        Source::ShortFlows(short_flows) => short_flows.sizes.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn sizes_are_a_word_a_table_or_a_mean() {
    assert!((sizes("sizes = \"web_search\"").mean() / 1.711e6 - 1.0).abs() < 1e-3);
    assert!((sizes("sizes = \"data_mining\"").mean() / 12.65e6 - 1.0).abs() < 1e-3);
    // Uniform up to 400 and then up to 2000.
    let own = sizes("sizes = { kind = \"cdf\", file = \"cdf.txt\" }");
    assert_eq!((own.mean(), own.quantile(0.5)), (0.5 * 200.0 + 0.5 * 1_200.0, 400.0));
    let pareto = sizes("sizes = { kind = \"bounded_pareto\", least = \"1kB\", most = \"1MB\" }");
    assert_eq!(
        pareto,
        Sizes::BoundedPareto { alpha: 1.2, least: Bytes::new(1_000), most: Bytes::new(1_000_000) }
    );
    assert_eq!(sizes("mean_size = \"9kB\"").mean(), 9_000.0);
    // The canonical text has the whole table, and loads to the same.
    let whole = suite(&text("sizes = { kind = \"cdf\", file = \"cdf.txt\" }"));
    let again = suite(&whole.canonical);
    assert_eq!((again.hash, again.files().collect::<Vec<_>>()), (whole.hash, vec!["cdf.txt"]));
}

#[test]
fn what_is_no_distribution_is_refused_with_the_mend() {
    let error = |keys: &str| {
        let all = errors(&text(keys));
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].strip_prefix("dir/x.toml:11: flow.f.source").unwrap().to_owned()
    };
    let either = ": write either `mean_size` or `sizes`, for example mean_size = \"30kB\"";
    assert_eq!(error("shape = \"constant\""), either);
    assert_eq!(error("mean_size = \"9kB\", sizes = \"web_search\""), either);
    assert!(
        error("sizes = \"web_serch\"").starts_with(".sizes: `web_serch` is not known here (did you mean")
    );
    assert_eq!(
        error("sizes = { kind = \"cdf\", file = \"bad.txt\" }"),
        ".sizes.file: `bad.txt`: line 2: 10 bytes come after 400; sort the lines by size"
    );
    assert!(
        error("sizes = { kind = \"cdf\", file = \"none.txt\" }")
            .starts_with(".sizes.file: `none.txt`: cannot read")
    );
    assert_eq!(
        error("sizes = { kind = \"bounded_pareto\", least = \"9kB\", most = \"9kB\" }"),
        ".sizes.most: 9kB is not above `least`, 9kB; write more"
    );
    let narrow = "sizes = { kind = \"lognormal\", median = \"1kB\", sigma = 0.1, least = \"1000MB\" }";
    assert!(error(narrow).contains("less than a millionth"));
}

#[test]
fn sizes_of_three_columns_are_bytes_unless_the_file_has_a_unit() {
    let of =
        |unit: &str| scenario(&text(&format!("sizes = {{ kind = \"cdf\", file = \"packets.txt\"{unit} }}")));
    let mean = |scenario: &Scenario| match &scenario.flows[0].source {
        Source::ShortFlows(flows) => flows.sizes.mean(),
        _ => panic!(),
    };
    // Half of them one, the others between one and two.
    let packets = of(", unit = \"1460B\"");
    assert_eq!((mean(&packets), packets.notes.len()), (1.25 * 1_460.0, 0));
    let bytes = of("");
    assert_eq!(mean(&bytes), 1.25);
    let note = "flow.f.source.sizes.file: `packets.txt`: the second of three columns is not used";
    assert!(bytes.notes[0].starts_with(note), "{:?}", bytes.notes);
}
