//! Screens, as a terminal shows them.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::Rect;

use super::*;
use crate::top::answer;

const RUN: &str = r#"{
  "title": "two queues", "run": 1, "state": "running", "replications_done": 1, "replications": 4, "courses": [],
  "course": {
    "number": 2, "point": "queue=drr", "seed": "7", "state": "running", "at_seconds": 12.3, "stop_seconds": 60.0,
    "measure_from_seconds": 5.0, "links": ["bottleneck", "last"], "links_left_out": 0,
    "link_states": [
      {"name": "bottleneck", "bytes_per_second": 625000, "rate_bytes_per_second": 625000, "backlog_packets": 42,
       "delay_seconds": 0.03105, "dropped_packets": {"overflow": 120, "early": 3}, "lost_packets": 2, "marked_packets": 0, "flow_count": 4},
      {"name": "last", "bytes_per_second": 250000, "rate_bytes_per_second": 12500000, "backlog_packets": 0,
       "delay_seconds": null, "dropped_packets": {"overflow": 0}, "lost_packets": 0, "marked_packets": 5, "flow_count": 1}
    ],
    "link": {
      "name": "bottleneck", "flow_count": 4,
      "flows": [
        {"place": 3, "flow": "udp", "bytes_per_second": 125000, "entitlement_bytes_per_second": 125000, "share": 0.2,
         "measured_bytes_per_second": 250000, "measured_entitlement_bytes_per_second": 125000, "measured_share": 0.4},
        {"place": 0, "flow": "tcp.1", "bytes_per_second": 300000, "entitlement_bytes_per_second": 250000, "share": 0.48,
         "measured_bytes_per_second": 240000, "measured_entitlement_bytes_per_second": 250000, "measured_share": 0.384},
        {"place": 1, "flow": "tcp.2", "bytes_per_second": 200000, "entitlement_bytes_per_second": 250000, "share": 0.32,
         "measured_bytes_per_second": 135000, "measured_entitlement_bytes_per_second": 250000, "measured_share": 0.216},
        {"place": 2, "flow": "late", "bytes_per_second": 0, "entitlement_bytes_per_second": null, "share": 0.0,
         "measured_bytes_per_second": 0, "measured_entitlement_bytes_per_second": null, "measured_share": 0.0}
      ]
    }
  }
}"#;

const GATEWAY: &str = r#"{
  "title": "provider", "version": "0.1.0", "uptime_seconds": 93784.2, "obstacles": [],
  "directions": {
    "up": {"rate_bytes_per_second": 2500000, "backlog_packets": 85,
      "rules": {"unmatched": {"dropped_packets": {"overflow": 203}, "marked_packets": 1}, "not IP": {"dropped_packets": {}, "marked_packets": 0}},
      "customers": {"alice": {"sent_bytes": 9000, "dropped_packets": {"overflow": 150}, "marked_packets": 1},
                    "bob": {"sent_bytes": 5000, "dropped_packets": {"overflow": 53}, "marked_packets": 0}}},
    "down": {"rate_bytes_per_second": 6250000, "backlog_packets": 0, "rules": {}, "customers": {"alice": {"sent_bytes": 100}}}
  },
  "traffic": {
    "up": {"active_flows": 40, "sent_bytes_per_second": 1677500, "sojourn_seconds": {"0.5": 0.0343, "0.95": 0.1625},
      "flows": [{"number": 1, "rule": "calls", "flow": "udp 10.0.0.4:7000 > 10.0.0.200:5001", "weight": 2.0,
                 "bytes_per_second": 332500, "entitlement_bytes_per_second": 332500}],
      "customers": [{"number": 1, "customer": "alice", "bytes_per_second": 448750, "plan_bytes_per_second": 625000, "entitlement_bytes_per_second": null},
                    {"number": 2, "customer": "", "bytes_per_second": 332500, "plan_bytes_per_second": null, "entitlement_bytes_per_second": null}]},
    "down": {"active_flows": 1, "sent_bytes_per_second": 302500, "sojourn_seconds": {"0.5": 0.00002, "0.95": 0.00018},
      "flows": [{"number": 2, "rule": "unmatched", "flow": "tcp 10.0.0.200:5000 > 10.0.0.3:52233", "weight": 1.0,
                 "bytes_per_second": 18850, "entitlement_bytes_per_second": null}],
      "customers": [{"number": 3, "customer": "alice", "bytes_per_second": 23000, "plan_bytes_per_second": 1786250, "entitlement_bytes_per_second": null}]}
  }
}"#;

fn read(json: &[u8]) -> Result<Seen, String> {
    answer::read(json).map(Seen::from)
}

fn state(json: &str) -> State {
    State::new("http://127.0.0.1:9618/".to_owned(), read(json.as_bytes()).unwrap(), Duration::ZERO)
}

/// The screen of this size, 12 s after the start.
fn screen(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let painted = terminal.draw(|frame| {
        let all = lines(state, Duration::from_secs(12), width.into(), height.into(), true);
        assert!(all.len() <= height.into());
        for (y, line) in (0..).zip(all) {
            assert!(line.width() <= width.into(), "{line:?}");
            frame.render_widget(line, Rect { x: 0, y, width, height: 1 });
        }
    });
    painted.unwrap();
    terminal.backend().to_string()
}

fn press(state: &mut State, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\t' => KeyCode::Tab,
            '\n' => KeyCode::Enter,
            key => KeyCode::Char(key),
        };
        state.key(KeyEvent::from(code));
    }
}

#[test]
fn the_flows_of_a_run_in_80_columns() {
    insta::assert_snapshot!(screen(&mut state(RUN), 80, 24));
}

#[test]
fn the_links_of_a_run_that_has_gone() {
    let mut state = state(RUN);
    press(&mut state, "\t");
    state.hear(0, Err("nothing listens there".to_owned()), Duration::from_secs(11));
    insta::assert_snapshot!(screen(&mut state, 120, 12));
}

#[test]
fn a_narrow_screen_leaves_out_columns_and_cuts_none() {
    for (width, height) in [(60, 14), (40, 12), (24, 8)] {
        insta::assert_snapshot!(screen(&mut state(RUN), width, height));
    }
    assert!(screen(&mut state(RUN), 23, 24).contains("enlarge the window"));
    assert!(screen(&mut state(RUN), 8, 1).contains("enlarge…"));
}

#[test]
fn the_customers_and_the_flows_of_a_gateway() {
    let mut state = state(GATEWAY);
    insta::assert_snapshot!(screen(&mut state, 120, 14));
    press(&mut state, "\tssp");
    insta::assert_snapshot!(screen(&mut state, 80, 14));
}

#[test]
fn an_order_that_no_title_shows_is_named_and_left_out() {
    let mut state = state(RUN);
    assert!(screen(&mut state, 40, 12).contains("sorted by MEAN↓  q quit"));
    let mut orders = Vec::new();
    for _ in 0..4 {
        press(&mut state, "s");
        assert!(!screen(&mut state, 40, 12).contains("sorted by"));
        orders.push(state.order().title);
    }
    assert_eq!(orders, ["FLOW", "RATE", "SHARE", "FLOW"]);
}

#[test]
fn help_fits_80_columns() {
    let mut state = state(RUN);
    press(&mut state, "?");
    let help = screen(&mut state, 80, 24);
    assert!(!help.contains('…'), "{help}");
    insta::assert_snapshot!(help);
}

#[test]
fn a_filter_that_nothing_passes_says_so() {
    let mut state = state(RUN);
    press(&mut state, "/zz");
    assert!(screen(&mut state, 80, 24).contains("no name contains `zz`"));
    press(&mut state, "\n");
    assert!(screen(&mut state, 80, 24).contains("filter: zz"));
}

#[test]
fn all_tables_are_printed_as_text() {
    insta::assert_snapshot!(text(&read(RUN.as_bytes()).unwrap(), 400));
    insta::assert_snapshot!(text(&read(GATEWAY.as_bytes()).unwrap(), 400));
}

#[test]
fn a_run_before_its_begin_and_an_empty_gateway_have_screens() {
    for (json, says) in [
        (r#"{"title": "x", "state": "waiting", "replications": 0}"#, "the run has not begun"),
        (
            r#"{"title": "x", "state": "ended", "replications": 1, "course": {"link": null}}"#,
            "the run has ended",
        ),
        (r#"{"title": "x", "state": "cut", "replications": 1, "course": null}"#, "the run was cut short"),
        (
            r#"{"traffic": {}, "directions": {}, "obstacles": ["the interface far is down"]}"#,
            "no frames pass: the interface far",
        ),
    ] {
        let shown = screen(&mut state(json), 80, 24);
        assert!(shown.contains(says) && shown.contains("nothing yet"), "{shown}");
        assert!(text(&read(json.as_bytes()).unwrap(), 400).contains(says));
    }
}

#[test]
fn no_name_and_no_number_breaks_the_screen() {
    let name = r#""\u001b[2J\u009b\u202e\u0007\nx""#;
    let numbers = "-1, 1e300, 123456789123456789123456789123456789, 0, null";
    for number in numbers.split(", ") {
        let field = format!(": {number},");
        let mut json =
            RUN.replace("\"bottleneck\"", name).replace("\"tcp.1\"", name).replace("\"two queues\"", name);
        json = json
            .replace("12.3", number)
            .replace("60.0", number)
            .replace(": 125000,", &field)
            .replace(": 42,", &field);
        let gateway =
            GATEWAY.replace("\"alice\"", name).replace("2500000", number).replace("93784.2", number);
        for json in [json, gateway.replace("332500", number).replace("150}", &format!("{number}}}"))] {
            let mut state = state(&json);
            for _ in 0..3 {
                for (width, height) in [(80, 24), (24, 8), (200, 60)] {
                    let shown = screen(&mut state, width, height);
                    assert!(
                        !shown.replace('\n', "").contains(|c: char| c.is_control() || c == '\u{202e}'),
                        "{shown}"
                    );
                }
                press(&mut state, "\t");
            }
            let printed = text(&state.seen, 400);
            assert!(!printed.replace('\n', "").contains(char::is_control), "{printed}");
        }
    }
}

#[test]
fn of_thousands_of_customers_a_page_is_drawn() {
    let customers: String = (0..20_000).map(|n| format!("\"c{n:05}\": {{\"sent_bytes\": {n}}},")).collect();
    let json = GATEWAY.replace("\"bob\": {", &format!("{customers} \"bob\": {{"));
    let mut state = state(&json);
    assert!(screen(&mut state, 80, 24).contains("[Customers: 20003]"));
    state.key(KeyEvent::from(KeyCode::End));
    let shown = screen(&mut state, 80, 24);
    assert!(shown.contains("c19999") && !shown.contains("alice"), "{shown}");
    // Rates of those that are not listed come from the bytes since the last answer.
    let later =
        json.replace("93784.2", "93786.2").replace("\"sent_bytes\": 19999", "\"sent_bytes\": 2019999");
    state.hear(0, read(later.as_bytes()), Duration::from_secs(12));
    state.key(KeyEvent::from(KeyCode::Home));
    press(&mut state, "ss");
    let shown = screen(&mut state, 80, 24);
    assert!(
        shown.lines().nth(6).is_some_and(|row| row.contains("c19999") && row.contains("8.00 Mb/s")),
        "{shown}"
    );
}

#[test]
fn the_page_about_results_shows_the_screen() {
    let page = include_str!("../../../../../docs/results.md");
    let screen = screen(&mut state(RUN), 80, 11);
    let screen: String =
        screen.lines().map(|line| format!("{}\n", line.trim_matches('"').trim_end())).collect();
    assert!(page.contains(&format!("```text\n{screen}```\n")), "{screen}");
    let titles = ["RATE", "MEAN", "ENTITLED", "SHARE", "OF LINK"];
    assert!(titles.iter().all(|title| page.contains(&format!("| `{title}` |"))));
}
