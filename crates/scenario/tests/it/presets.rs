//! `preset`: defaults of unset parameters, by table and by scenario.

use std::path::Path;

use apportion_core::aqm::tail::{TailDrop, TailDropParams};
use apportion_core::buffer::Buffer;
use apportion_core::param::{Entry, EntryArgs, Kind, LIMIT, Paper, Param, Role, Traits};
use apportion_core::schedule::fifo::Fifo;
use apportion_core::system::Catalog;
use apportion_scenario::{Suite, load_with};

static ENTRY: Entry = Entry {
    name: "improved",
    role: Role::System,
    summary: "A FIFO that differs from its paper.",
    reference: "–",
    cost: "O(1) per packet, no state",
    params: &[
        LIMIT.in_paper("7p"),
        Param {
            paper: Paper::Unset,
            ..Param::new("bound", "–", Kind::Span, "30ms", "chosen", "Something that the paper has not.")
        },
        Param::new("same", "–", Kind::Number, "3", "the paper", "Something that both have."),
    ],
    traits: Traits::NONE,
};

fn suite(queue: &str, defaults: &str) -> Suite {
    let mut catalog = Catalog::default();
    let read = |args: &EntryArgs<'_>| Ok(TailDropParams { limit: args.limit_if_set("limit") });
    catalog
        .register(&ENTRY, read, |params, link| {
            Buffer::new(Fifo::new(), TailDrop::new(params, link.link_rate))
        })
        .unwrap();
    let text = format!(
        "seed = 1\nstop = \"2s\"\n{defaults}\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nqueue = {queue}\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\n"
    );
    let load = |text: &str| {
        load_with(&catalog, text, Path::new("x.toml"), &[], &|_| unreachable!("no files")).unwrap_or_else(
            |problems| {
                panic!("{}", problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())
            },
        )
    };
    let suite = load(&text);
    assert_eq!(load(&suite.canonical).canonical, suite.canonical);
    suite
}

/// The queue of the link in the canonical text.
fn queue_of(queue: &str, defaults: &str) -> String {
    let canonical = suite(queue, defaults).canonical;
    canonical.lines().find_map(|line| line.strip_prefix("queue = ")).unwrap().to_owned()
}

const PAPER: &str = r#"{ kind = "improved", preset = "paper", limit = "7p", same = 3.0 }"#;
const DEFAULT: &str = r#"{ kind = "improved", bound = "30ms", same = 3.0 }"#;

#[test]
fn a_preset_sets_what_the_table_does_not_set() {
    assert_eq!(queue_of("\"improved\"", ""), DEFAULT);
    assert_eq!(queue_of(r#"{ kind = "improved", preset = "paper" }"#, ""), PAPER);
    let own = r#"{ kind = "improved", preset = "paper", limit = "9p", bound = "1ms" }"#;
    let expected = r#"{ kind = "improved", preset = "paper", limit = "9p", bound = "1ms", same = 3.0 }"#;
    assert_eq!(queue_of(own, ""), expected);
}

#[test]
fn a_preset_of_the_scenario_holds_where_a_table_has_none() {
    let defaults = "[defaults]\npreset = \"paper\"\n";
    assert_eq!(queue_of("\"improved\"", defaults), PAPER);
    let own = r#"{ kind = "improved", preset = "default" }"#;
    assert_eq!(
        queue_of(own, defaults),
        DEFAULT.replace("kind = \"improved\"", "kind = \"improved\", preset = \"default\"")
    );
}

#[test]
fn a_swept_preset_leaves_queues_as_they_are_written() {
    let suite = suite("\"improved\"", "[defaults]\npreset = [\"default\", \"paper\"]\n");
    assert_eq!(suite.points.len(), 2);
    assert!(suite.canonical.contains("queue = \"improved\""), "{}", suite.canonical);
}
