//! Graphs in the Graph Modelling Language (Himsolt 1997): the nodes and edges of a file, and the edges'
//! attributes.
//!
//! Strings, whole and real numbers, nested lists and `#` comments are read; attributes that do not describe a
//! link, such as coordinates, are skipped. Nesting is bounded, so no file can exhaust the stack.

/// Most levels of brackets (chosen: published graphs use three).
const DEEPEST: usize = 16;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Graph {
    pub directed: bool,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// A node: its label if it has one, else its id as text.
#[derive(Debug, PartialEq)]
pub(crate) struct Node {
    pub id: String,
    pub name: String,
    pub line: u32,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Edge {
    pub source: String,
    pub target: String,
    pub rate: Option<String>,
    pub delay: Option<String>,
    pub loss: Option<String>,
    pub line: u32,
}

/// The values of one bracketed list, in order.
type Pairs<'a> = Vec<(&'a str, u32, Value<'a>)>;

enum Value<'a> {
    /// A number or string.
    Scalar(&'a str),
    List(Pairs<'a>),
}

/// Reads a file. An error is the line and what is wrong on it.
pub(crate) fn parse(text: &str) -> Result<Graph, (u32, String)> {
    let mut tokens = Tokens { rest: text, line: 1 };
    let pairs = list(&mut tokens, 0)?;
    let Some((_, _, Value::List(pairs))) = pairs.into_iter().find(|(key, ..)| *key == "graph") else {
        return Err((1, "there is no `graph [ ... ]`".to_owned()));
    };
    let mut graph = Graph { directed: scalar(&pairs, "directed") == Some("1"), ..Graph::default() };
    for (key, line, value) in &pairs {
        let Value::List(inner) = value else { continue };
        let need = |name: &str| {
            scalar(inner, name)
                .map(str::to_owned)
                .ok_or_else(|| (*line, format!("this {key} has no `{name}`")))
        };
        let get = |name: &str| scalar(inner, name).map(str::to_owned);
        match *key {
            "node" => {
                let id = need("id")?;
                let name = get("label").filter(|label| !label.is_empty()).unwrap_or_else(|| id.clone());
                graph.nodes.push(Node { id, name, line: *line });
            }
            "edge" => graph.edges.push(Edge {
                source: need("source")?,
                target: need("target")?,
                rate: get("rate"),
                delay: get("delay"),
                loss: get("loss"),
                line: *line,
            }),
            _ => (),
        }
    }
    Ok(graph)
}

fn scalar<'a>(pairs: &Pairs<'a>, name: &str) -> Option<&'a str> {
    pairs.iter().find_map(|(key, _, value)| match value {
        Value::Scalar(text) if *key == name => Some(*text),
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
                Value::Scalar(string.unwrap_or(text))
            }
        };
        pairs.push((key, line, value));
    }
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
    fn a_graph_with_comments_coordinates_and_attributes_is_read() {
        let text = "# made by hand\nCreator \"x [ y\"\ngraph [\n  directed 1\n  node [ id 0 label \"Paris\" Latitude 48.85 ]\n  \
                    node [ id 1 ]\n  edge [\n source 0 target 1 rate \"10Mbit\" delay \"5ms\" g [ a 1 ] ]\n]\n";
        let graph = parse(text).unwrap();
        assert!(graph.directed);
        let names: Vec<_> = graph.nodes.iter().map(|node| (node.name.as_str(), node.line)).collect();
        assert_eq!(names, [("Paris", 5), ("1", 6)]);
        let edge = Edge {
            source: "0".into(),
            target: "1".into(),
            rate: Some("10Mbit".into()),
            delay: Some("5ms".into()),
            loss: None,
            line: 7,
        };
        assert_eq!(graph.edges, [edge]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err();
        assert_eq!(error("node [ id 1 ]"), (1, "there is no `graph [ ... ]`".into()));
        assert_eq!(error("graph [\n node [ label \"a\" ] ]"), (2, "this node has no `id`".into()));
        assert_eq!(error("graph [\n edge [ source 1 ] ]"), (2, "this edge has no `target`".into()));
        assert_eq!(error("graph [\n\n"), (3, "a `[` has no `]`".into()));
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
