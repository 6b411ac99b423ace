//! Loading texts as `dir/x.toml`.

pub mod gateway;

use std::path::{MAIN_SEPARATOR, Path};

use apportion_scenario::model::{Link, Scenario};
use apportion_scenario::{Suite, load};

const GRAPH: &str = "graph [ directed 0
  node [ id 1 label \"a\" ] node [ id 2 label \"b\" ] node [ id 3 label \"c\" ]
  edge [ source 1 target 2 rate \"10Mbit\" delay \"5ms\" loss \"3%\" ] edge [ source 2 target 3 delay \"1ms\" ]
]";

/// A path, or a message with paths, with `/` as the separator, as on Linux.
pub fn slashes(text: &impl ToString) -> String {
    text.to_string().replace(MAIN_SEPARATOR, "/")
}

pub fn try_load(text: &str, overrides: &[(&str, &str)]) -> Result<Suite, Vec<String>> {
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let read = |path: &Path| match &*slashes(&path.display()) {
        "dir/directed.gml" => Ok(GRAPH.replace("directed 0", "directed 1").into()),
        _ => Ok(GRAPH.into()),
    };
    load(text, Path::new("dir/x.toml"), &overrides, &read)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

pub fn suite(text: &str) -> Suite {
    try_load(text, &[]).unwrap_or_else(|messages| panic!("{messages:#?}\n{text}"))
}

pub fn scenario(text: &str) -> Scenario {
    let mut suite = suite(text);
    assert_eq!(suite.points.len(), 1);
    suite.points.remove(0).scenario
}

pub fn errors(text: &str) -> Vec<String> {
    try_load(text, &[]).map(|suite| suite.canonical).unwrap_err()
}

pub fn link<'a>(scenario: &'a Scenario, name: &str) -> &'a Link {
    scenario.links.iter().find(|link| link.name == name).unwrap()
}

/// Everything that a run depends on. Labels may be longer in the canonical text, which spells out the
/// defaults that distinguish alternatives.
pub fn scenarios(suite: &Suite) -> String {
    suite.points.iter().map(|point| format!("{:?}\n", point.scenario)).collect()
}

/// Loads the canonical text, which must be the same suite.
pub fn survives(suite: &Suite) {
    let again = self::suite(&suite.canonical);
    assert!(scenarios(&again) == scenarios(suite), "{}", suite.canonical);
    assert_eq!((&again.canonical, again.hash), (&suite.canonical, suite.hash));
}
