//! The services of [pairs](super::pairs): flows without ends, to which a pair gives hosts.

use apportion_report::pairs::{SIDES, Service};
use toml::{Table, Value};

use super::built_in::{built_in, files_of, text_of};
use super::error::LeagueError;
use super::situation::about;

/// The names of the services with the texts of their files.
const SERVICES: &[(&str, &str)] = built_in! {
    "services":
    "cubic" "reno" "bbr" "quic" "five-bbr" "dash-throughput" "dash-buffer" "dash-bbr" "dash-25mbit" "call" "web" "flood"
};

/// Returns the services of pairs: names with the texts of their files.
///
/// ```
/// assert!(apportion::services().any(|(name, text)| name == "cubic" && text.contains("[flow.file]")));
/// ```
pub fn services() -> impl Iterator<Item = (&'static str, &'static str)> {
    SERVICES.iter().copied()
}

/// Returns the named services, each once; all built-in ones if none are named.
pub(super) fn all(names: &[String]) -> Result<Vec<Service>, LeagueError> {
    let wanted: Vec<String> = match names.is_empty() {
        true => services().map(|(name, _)| name.to_owned()).collect(),
        false => names.iter().flat_map(|name| files_of(name)).collect(),
    };
    let mut all: Vec<Service> = Vec::new();
    for name in &wanted {
        let service = read(name)?;
        match all.iter().find(|other| other.name == service.name) {
            Some(other) if *other == service => (),
            Some(_) => {
                return Err(refuse(name, "another service has this name; rename the file"));
            }
            None => all.push(service),
        }
    }
    Ok(all)
}

fn refuse(name: &str, cause: impl Into<String>) -> LeagueError {
    LeagueError::Service { name: name.to_owned(), cause: cause.into() }
}

fn read(name: &str) -> Result<Service, LeagueError> {
    let (text, short, _) =
        text_of(name, "service", SERVICES, "pairs").map_err(|cause| refuse(name, cause))?;
    let service = Service { name: short, about: about(&text), flows: without_comment(&text).to_owned() };
    flows(&service, 0).map_err(|cause| refuse(name, cause))?;
    Ok(service)
}

/// The text after the comment at its top.
fn without_comment(text: &str) -> &str {
    let comment = text.split_inclusive('\n').take_while(|line| line.starts_with('#'));
    text[comment.map(str::len).sum::<usize>()..].trim()
}

/// Returns the flows of a service on a side of a pair, 0 for the incumbent and 1 for the contender: with
/// names that begin with the side, between hosts of their own, and with starts within the first second.
pub(super) fn flows(service: &Service, side: usize) -> Result<Table, String> {
    let mut text: Table = service.flows.parse().map_err(|error| format!("it is no TOML: {error}"))?;
    let Some(Value::Table(flows)) = text.remove("flow") else {
        return Err("it has no table [flow.NAME]; a service is a file of flows".to_owned());
    };
    if let Some(other) = text.keys().next() {
        return Err(format!(
            "it has `{other}`; a service has flows only, since pairs have a link of their own"
        ));
    }
    let mut named = Table::new();
    for (name, flow) in flows {
        let Value::Table(mut flow) = flow else { return Err(format!("`flow.{name}` is no table")) };
        if let Some(end) = ["from", "to", "path", "return_path"].iter().find(|end| flow.contains_key(**end)) {
            return Err(format!("remove `{end}` of `flow.{name}`: pairs give flows their hosts"));
        }
        flow.insert("from".to_owned(), format!("l{}", side + 1).into());
        flow.insert("to".to_owned(), format!("r{}", side + 1).into());
        let between = Value::Array(vec!["0s".into(), "1s".into()]);
        let start = Table::from_iter([("between".to_owned(), between)]);
        flow.entry("start").or_insert(start.into());
        named.insert(format!("{}-{name}", SIDES[side]), flow.into());
    }
    match named.is_empty() {
        true => Err("it has no flow; a service is a file of tables [flow.NAME]".to_owned()),
        false => Ok(named),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_of_the_folder_is_built_in() {
        assert_eq!(super::super::built_in::sorted(SERVICES), super::super::built_in::files("services"));
    }

    #[test]
    fn a_service_is_flows_without_ends() {
        let of = |flows: &str| {
            let service = Service { name: "x".to_owned(), about: String::new(), flows: flows.to_owned() };
            super::flows(&service, 1)
        };
        let flows = of("[flow.a]\nstart = \"2s\"\n[flow.b]").unwrap();
        assert_eq!(flows["contender-a"]["start"], "2s".into());
        assert_eq!(flows["contender-b"]["from"], "l2".into());
        for (text, cause) in [
            ("", "no table"),
            ("flow = {}", "no flow"),
            ("[flow.a]\nfrom = \"x\"", "remove `from`"),
            ("[flow.a]\n[link.x]", "`link`"),
            ("[flow", "no TOML"),
            ("flow.a = 3", "is no table"),
        ] {
            let error = of(text).unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
    }
}
