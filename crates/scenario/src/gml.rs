//! Graphs in the Graph Modelling Language (Himsolt 1997): the nodes and edges of a file with their attributes.
//!
//! It reads strings, whole and real numbers, nested lists and `#` comments. Characters in strings may be
//! written as in HTML 2: `&amp;`, `&#227;`, `&atilde;`. Nesting is bounded, so no file can exhaust the stack.

use std::borrow::Cow;

use crate::graph::{Attributes, Edge, Graph, Node, twice};

/// Maximum depth of brackets. Chosen: published graphs use three.
const DEEPEST: usize = 16;

/// The values of one bracketed list, in order.
type Pairs<'a> = Vec<(&'a str, u32, Value<'a>)>;

enum Value<'a> {
    /// A number or string.
    Scalar(Cow<'a, str>),
    List(Pairs<'a>),
}

/// Reads a file. An error is the line and its problem.
pub(crate) fn parse(text: &str) -> Result<Graph, (u32, String)> {
    let mut tokens = Tokens { rest: text, line: 1 };
    let pairs = list(&mut tokens, 0)?;
    let mut graphs = pairs.into_iter().filter(|(key, ..)| *key == "graph");
    let Some((_, _, Value::List(pairs))) = graphs.next() else {
        return Err((1, "there is no `graph [ ... ]`".to_owned()));
    };
    if let Some((_, line, _)) = graphs.next() {
        return Err((line, "there is a second `graph`; leave one of them in the file".to_owned()));
    }
    let line_of = |name| pairs.iter().find(|(key, ..)| *key == name).map_or(1, |(_, line, _)| *line);
    let directed = match scalar(&pairs, "directed") {
        Some("1") => true,
        None | Some("0") => false,
        Some(other) => {
            return Err((
                line_of("directed"),
                format!("`directed` is `{other}`; write 1, or 0 if edges lead both ways"),
            ));
        }
    };
    let mut graph = Graph::default();
    for (key, line, value) in &pairs {
        let (key, line, Value::List(inner)) = (*key, *line, value) else { continue };
        if let Some(name) = twice(&attributes(inner, &[])).filter(|_| ["node", "edge"].contains(&key)) {
            return Err((
                line,
                format!("this {key} has `{name}` twice, with different values; leave one of them out"),
            ));
        }
        let need = |name: &str| {
            scalar(inner, name)
                .map(str::to_owned)
                .ok_or_else(|| (line, format!("this {key} has no `{name}`")))
        };
        match key {
            "node" => {
                let label = scalar(inner, "label").filter(|label| !label.is_empty()).map(str::to_owned);
                let attributes = attributes(inner, &["id", "label"]);
                graph.nodes.push(Node { id: need("id")?, label, line, attributes });
            }
            "edge" => {
                let (source, target) = (need("source")?, need("target")?);
                let attributes = attributes(inner, &["id", "source", "target"]);
                graph.edges.push(Edge { source, target, directed, line, attributes });
            }
            _ => (),
        }
    }
    Ok(graph)
}

/// All pairs except those with `other` names.
fn attributes(pairs: &Pairs<'_>, other: &[&str]) -> Attributes {
    let text = |value: &Value<'_>| match value {
        Value::Scalar(text) => Some(text.to_string()),
        Value::List(_) => None,
    };
    let pairs = pairs.iter().filter(|(key, ..)| !other.contains(key));
    pairs.map(|(key, _, value)| ((*key).to_owned(), text(value))).collect()
}

fn scalar<'a>(pairs: &'a Pairs<'_>, name: &str) -> Option<&'a str> {
    pairs.iter().find_map(|(key, _, value)| match value {
        Value::Scalar(text) if *key == name => Some(text.as_ref()),
        _ => None,
    })
}

fn list<'a>(tokens: &mut Tokens<'a>, depth: usize) -> Result<Pairs<'a>, (u32, String)> {
    let mut pairs = Vec::new();
    loop {
        let key = match tokens.next() {
            None if depth == 0 => return Ok(pairs),
            None => return Err((tokens.line, "a `[` has no `]`".to_owned())),
            Some("]") if depth > 0 => return Ok(pairs),
            Some(key) => key,
        };
        let line = tokens.line;
        if !key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return Err((line, format!("`{key}` found where a key is expected")));
        }
        let value = match tokens.next() {
            Some("[") if depth >= DEEPEST => {
                return Err((line, format!("brackets are nested more than {DEEPEST} deep")));
            }
            Some("[") => Value::List(list(tokens, depth + 1)?),
            Some("]") | None => return Err((line, format!("`{key}` has no value"))),
            Some(text) => {
                let string = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                Value::Scalar(string.map_or(Cow::Borrowed(text), decoded))
            }
        };
        pairs.push((key, line, value));
    }
}

/// Names of the characters from U+00A0 to U+00FF (RFC 1866 section 14).
const LATIN_1: &str = "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute \
                       micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring \
                       AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml \
                       times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil \
                       egrave eacute ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash \
                       ugrave uacute ucirc uuml yacute thorn yuml";

/// A string with its entities decoded; unknown ones stay as they are.
fn decoded(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut all = first.to_owned();
    for part in parts {
        let known = part.split_once(';').and_then(|(name, rest)| Some((entity(name)?, rest)));
        let (c, rest) = known.unwrap_or(('&', part));
        all.push(c);
        all.push_str(rest);
    }
    Cow::Owned(all)
}

fn entity(name: &str) -> Option<char> {
    let basic = [("amp", '&'), ("quot", '"'), ("lt", '<'), ("gt", '>'), ("apos", '\'')];
    if let Some(digits) = name.strip_prefix('#') {
        let code = match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        return code.ok().and_then(char::from_u32).filter(|c| !c.is_control());
    }
    let latin =
        || (0xa0..).map_while(char::from_u32).zip(LATIN_1.split(' ')).find(|(_, known)| *known == name);
    basic.into_iter().find(|(known, _)| *known == name).map(|(_, c)| c).or_else(|| Some(latin()?.0))
}

/// Words, numbers, strings with their quotes, and brackets.
struct Tokens<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<&'a str> {
        loop {
            let c = self.rest.chars().next()?;
            if c == '#' {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if c.is_whitespace() {
                self.take(c.len_utf8());
            } else {
                break;
            }
        }
        let stops = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '"' | '#');
        let end = match self.rest.as_bytes().first()? {
            b'[' | b']' => 1,
            b'"' => self.rest[1..].find('"').map_or(self.rest.len(), |end| end + 2),
            _ => self.rest.find(stops).unwrap_or(self.rest.len()),
        };
        Some(self.take(end))
    }

    fn take(&mut self, end: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(end);
        let lines = token.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
        token
    }
}

#[cfg(test)]
mod tests {
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_graph_with_comments_and_nested_lists_is_read() {
        let text = "# made by hand\nCreator \"x [ y\"\ngraph [\n  directed 1\n  node [ id 0 label \"Paris\" Latitude 48.85 ]\n  \
                    node [ id 1 ]\n  edge [\n source 0 target 1 rate \"10Mbit\" g [ a 1 ] ]\n]\n";
        let graph = parse(text).unwrap();
        let names: Vec<_> = graph.nodes.iter().map(|node| (node.label.as_deref(), node.line)).collect();
        assert_eq!(names, [(Some("Paris"), 5), (None, 6)]);
        assert_eq!(graph.nodes[0].attributes, [("Latitude".to_owned(), Some("48.85".to_owned()))]);
        let attributes = vec![("rate".to_owned(), Some("10Mbit".to_owned())), ("g".to_owned(), None)];
        let edge = Edge { source: "0".into(), target: "1".into(), directed: true, line: 7, attributes };
        assert_eq!(graph.edges, [edge]);
    }

    #[test]
    fn entities_are_the_characters_that_they_stand_for() {
        let known = "S&#227;o &amp; M&atilde;e &quot;&#x41;&quot; &yuml;&nbsp;&lt;";
        assert_eq!(decoded(known), "S\u{e3}o & M\u{e3}e \"A\" \u{ff}\u{a0}<");
        // A text that is no entity stays, and so does a control character, which no name should contain.
        for text in ["AT&T", "a & b; c", "&nothing;", "&#0;", "&#99999999;", "&", ";"] {
            assert_eq!(decoded(text), text);
        }
        let graph = parse("graph [ node [ id 1 label \"AT&amp;T\" ] ]").unwrap();
        assert_eq!(graph.nodes[0].label.as_deref(), Some("AT&T"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("node [ id 1 ]"), (1, "there is no `graph [ ... ]`".into()));
        assert_eq!(error("graph [\n node [ label \"a\" ] ]"), (2, "this node has no `id`".into()));
        assert_eq!(error("graph [\n edge [ source 1 ] ]"), (2, "this edge has no `target`".into()));
        assert_eq!(error("graph [\n\n"), (3, "a `[` has no `]`".into()));
        let twice = "there is a second `graph`; leave one of them in the file";
        assert_eq!(error("graph [ ]\ngraph [ ]"), (2, twice.into()));
        let twice = "this edge has `rate` twice, with different values; leave one of them out";
        assert_eq!(
            error("graph [ edge [ source 1 target 2 rate \"1Mbit\" rate \"2Mbit\" ] ]"),
            (1, twice.into())
        );
        let directed = "`directed` is `yes`; write 1, or 0 if edges lead both ways";
        assert_eq!(error("graph [\ndirected \"yes\" ]"), (2, directed.into()));
        assert_eq!(error("graph [ 5 6 ]"), (1, "`5` found where a key is expected".into()));
        assert_eq!(error("graph [ a ]"), (1, "`a` has no value".into()));
        assert_eq!(error(&"a [ ".repeat(50)), (1, "brackets are nested more than 16 deep".into()));
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn nothing_panics(text in "([a-z]{0,5}|graph|node|edge|id|\\[|\\]|\"|#|\n| |1|é){0,30}") {
            let _ = parse(&text);
        }
    }
}
