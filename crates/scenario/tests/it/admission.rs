//! Admission control: guarantees that links cannot keep are refused.

use crate::common::{errors, scenario, try_load};

/// Flow `long` crosses both links, flow `short` only the second. Guarantees are in Mb/s.
fn text(long: &str, short: &str, end: &str) -> String {
    format!(
        r#"seed = 1
stop = "10s"
[defaults.link]
delay = "1ms"
[link.first]
from = "a"
to = "b"
rate = "5Mbit"
[link.second]
from = "b"
to = "c"
rate = "10Mbit"
[flow.long]
from = "a"
to = "c"
tcp = "rfc"
guarantee = "{long}Mbit"
[flow.short]
count = 2
from = "b"
to = "c"
source = {{ kind = "cbr", rate = "1Mbit" }}
guarantee = "{short}Mbit * i"
{end}"#
    )
}

fn change(at: u64, set: &str, to: &str) -> String {
    format!("[[change]]\nat = \"{at}s\"\nset = \"{set}\"\nto = \"{to}\"\n")
}

#[test]
fn guarantees_add_up_to_the_rate_of_a_link_at_most() {
    // 4 and 2 + 4 are 10 on the second link; the first has 4 of 5.
    scenario(&text("4", "2", ""));
    assert_eq!(
        errors(&text("4.000001", "2", "")),
        [
            "dir/x.toml:23: flow.short.guarantee: link `second` carries 10Mbit, but 10000001bit is guaranteed to the \
             flows that cross it (6Mbit to `short`, 4000001bit to `long`); guarantee 1bit less, or give the link a \
             rate of 10000001bit"
        ]
    );
}

#[test]
fn every_oversubscribed_link_is_reported_once() {
    assert_eq!(
        errors(&text("7", "2", "")),
        [
            "dir/x.toml:17: flow.long.guarantee: link `first` carries 5Mbit, but 7Mbit is guaranteed to the flows that \
             cross it (7Mbit to `long`); guarantee 2Mbit less, or give the link a rate of 7Mbit",
            "dir/x.toml:17: flow.long.guarantee: link `second` carries 10Mbit, but 13Mbit is guaranteed to the flows \
             that cross it (7Mbit to `long`, 6Mbit to `short`); guarantee 3Mbit less, or give the link a rate of 13Mbit"
        ]
    );
    // A sweep reports the first refused point only. Acknowledgements have no guarantee.
    let swept = text("4", "2", "").replace("\"5Mbit\"", "[\"3Mbit\", \"2Mbit\", \"5Mbit\"]");
    assert_eq!(errors(&swept).len(), 1, "{:?}", errors(&swept));
    scenario(
        &text("4", "2", "").replace(
            "from = \"b\"\nto = \"c\"\nrate",
            "back.rate = \"1Mbit\"\nfrom = \"b\"\nto = \"c\"\nrate",
        ),
    );
}

#[test]
fn what_the_defaults_or_the_command_line_guarantee_counts_too() {
    let plain =
        text("4", "2", "").replace("guarantee = \"4Mbit\"\n", "").replace("guarantee = \"2Mbit * i\"", "");
    scenario(&plain);
    let with =
        |defaults: &str| try_load(&plain, &[("defaults.flow.guarantee", defaults)]).map(|_| ()).unwrap_err();
    assert_eq!(
        with("6Mbit"),
        [
            "dir/x.toml: --set: defaults.flow.guarantee: link `first` carries 5Mbit, but 6Mbit is guaranteed to the \
             flows that cross it (6Mbit to `long`); guarantee 1Mbit less, or give the link a rate of 6Mbit",
            "dir/x.toml: --set: defaults.flow.guarantee: link `second` carries 10Mbit, but 18Mbit is guaranteed to the \
             flows that cross it (12Mbit to `short`, 6Mbit to `long`); guarantee 8Mbit less, or give the link a rate of \
             18Mbit"
        ]
    );
    // Sums beyond the range of numbers are added correctly.
    let most = format!("{}bit", u64::MAX);
    assert!(with(&most)[1].contains(&format!("({most} to `long`, {most} to `short`)")), "{:?}", with(&most));
}

#[test]
fn a_change_that_raises_a_guarantee_is_checked_against_the_rates_of_that_time() {
    let raised = change(2, "flow.long.guarantee", "4.5Mbit");
    assert_eq!(
        errors(&text("4", "2", &raised)),
        [
            "dir/x.toml:24: change[1].to: at 2s, link `second` carries 10Mbit, but 10500kbit is guaranteed to the flows \
             that cross it (6Mbit to `short`, 4500kbit to `long`); guarantee 500kbit less, or give the link a rate of \
             10500kbit"
        ]
    );
    // The link is faster at that time, or from then on; or another flow has less.
    scenario(&text("4", "2", &(change(1, "link.second.rate", "11Mbit") + &raised)));
    scenario(&text("4", "2", &(raised.clone() + &change(2, "link.second.rate", "11Mbit"))));
    scenario(&text("4", "2", &(raised.clone() + &change(2, "flow.short.guarantee", "1Mbit"))));
    let later = text("4", "2", &(raised + &change(3, "link.second.rate", "11Mbit")));
    assert_eq!(errors(&later).len(), 1);
}

#[test]
fn a_link_may_slow_down_below_what_it_has_promised() {
    let fading = change(1, "link.second.rate", "3Mbit");
    scenario(&text("4", "2", &fading));
    // Then guarantees can be taken back, not given.
    scenario(&text("4", "2", &(fading.clone() + &change(2, "flow.short.1.guarantee", "1Mbit"))));
    let given = errors(&text("4", "2", &(fading + &change(2, "flow.short.1.guarantee", "2.5Mbit"))));
    assert!(given[0].contains("at 2s, link `second` carries 3Mbit, but 10500kbit is"), "{given:?}");
}
