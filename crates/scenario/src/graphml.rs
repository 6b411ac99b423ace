//! Graphs in GraphML (Brandes et al., "GraphML Progress Report", GD 2001; primer at
//! graphml.graphdrawing.org): the nodes and edges of a file with their attributes, as its `key` elements name
//! them.
//!
//! Nested graphs and edges between more than two nodes are refused, and so are entities defined in the file,
//! because nested entities can expand to any size. Nothing is fetched.

use std::collections::BTreeMap;

use roxmltree::{Document, ParsingOptions};

use crate::graph::{Attributes, Edge, Graph, Node, twice};

/// Maximum of elements, texts and comments. Chosen: the maximum number of links in a scenario, with 50 each.
const MOST_PARTS: u32 = 5_000_000;

type Element<'a> = roxmltree::Node<'a, 'a>;
type Error = (u32, String);

/// An attribute that nodes or edges may have.
struct Key<'a> {
    name: &'a str,
    /// `node`, `edge` or `all`.
    of: &'a str,
    default: Option<&'a str>,
}

/// Reads a file. An error is the line and its problem.
pub(crate) fn parse(text: &str) -> Result<Graph, Error> {
    if let Some(at) = text.find("<!ENTITY") {
        let line = 1 + text[..at].bytes().filter(|byte| *byte == b'\n').count() as u32;
        let message =
            "entities of a file's own are not read; write what they stand for, and leave `<!ENTITY ..>` out";
        return Err((line, message.to_owned()));
    }
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MOST_PARTS, ..ParsingOptions::default() };
    let document =
        Document::parse_with_options(text, options).map_err(|error| (error.pos().row, error.to_string()))?;
    let ends: Vec<usize> =
        text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    let line = |element: Element<'_>| 1 + ends.partition_point(|end| *end < element.range().start) as u32;
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        return Err((line(root), "there is no `<graphml>`".to_owned()));
    }
    let keys: BTreeMap<&str, Key<'_>> = children(root, "key").filter_map(key).collect();
    let mut graphs = children(root, "graph");
    let Some(found) = graphs.next() else { return Err((line(root), "there is no `<graph>`".to_owned())) };
    if let Some(second) = graphs.next() {
        return Err((line(second), "there is a second `<graph>`; leave one of them in the file".to_owned()));
    }
    let of = |element: Element<'_>, name: &str, words: [&str; 2]| match element.attribute(name) {
        Some(word) if word == words[0] => Ok(Some(true)),
        None => Ok(None),
        Some(word) if word == words[1] => Ok(Some(false)),
        Some(word) => {
            Err((line(element), format!("`{name}` is `{word}`; write {} or {}", words[0], words[1])))
        }
    };
    let directed = of(found, "edgedefault", ["directed", "undirected"])?.unwrap_or_default();
    let mut graph = Graph::default();
    for element in found.children().filter(Element::is_element) {
        let tag = element.tag_name().name();
        let own = of(element, "directed", ["true", "false"]);
        let line = line(element);
        if let Some(name) = twice(&data(element, &keys)) {
            return Err((
                line,
                format!("this {tag} has `{name}` twice, with different values; leave one of them out"),
            ));
        }
        let need = |name: &str| {
            let value = element.attribute(name).map(str::to_owned);
            value.ok_or_else(|| (line, format!("this {tag} has no `{name}`")))
        };
        match tag {
            "node" => {
                if children(element, "graph").next().is_some() {
                    return Err((
                        line,
                        "this node has a graph of its own; draw it in the outer one".to_owned(),
                    ));
                }
                let mut attributes = attributes(element, &["id"], "node", &keys);
                let at = attributes.iter().position(|(name, _)| name == "label");
                let label = at.and_then(|at| attributes.remove(at).1).filter(|label| !label.is_empty());
                graph.nodes.push(Node { id: need("id")?, label, line, attributes });
            }
            "edge" => {
                let directed = own?.unwrap_or(directed);
                let (source, target) = (need("source")?, need("target")?);
                let attributes = attributes(element, &["id", "source", "target", "directed"], "edge", &keys);
                graph.edges.push(Edge { source, target, directed, line, attributes });
            }
            "hyperedge" => {
                return Err((line, "a hyperedge joins any number of nodes; write edges of two".to_owned()));
            }
            _ => (),
        }
    }
    Ok(graph)
}

fn children<'a>(element: Element<'a>, tag: &'static str) -> impl Iterator<Item = Element<'a>> {
    element.children().filter(move |child| child.is_element() && child.tag_name().name() == tag)
}

/// The declaration of a `<key>`, by its id. Some programs give it a type of their own in place of a name.
fn key<'a>(element: Element<'a>) -> Option<(&'a str, Key<'a>)> {
    let id = element.attribute("id")?;
    let names = [element.attribute("attr.name"), element.attribute("yfiles.type"), Some(id)];
    let default = children(element, "default").next().and_then(|default| default.text());
    let key = Key {
        name: names.into_iter().flatten().next()?,
        of: element.attribute("for").unwrap_or("all"),
        default: default.map(str::trim),
    };
    Some((id, key))
}

/// The data of a node or edge.
fn data(element: Element<'_>, keys: &BTreeMap<&str, Key<'_>>) -> Attributes {
    let data = element.children().filter(Element::is_element).map(|child| {
        let tag = child.tag_name().name();
        let Some(id) = child.attribute("key").filter(|_| tag == "data") else {
            return (tag.to_owned(), None);
        };
        let texts: Option<String> = child
            .children()
            .filter(|part| !part.is_comment())
            .map(|part| part.text().filter(|_| part.is_text()))
            .collect();
        let name = keys.get(id).map_or(id, |key| key.name);
        (name.to_owned(), texts.map(|text| text.trim().to_owned()))
    });
    data.filter(|(name, _)| name != "desc").collect()
}

/// The data of a node or edge, then defaults of keys, then attributes of the element except `other`.
fn attributes(element: Element<'_>, other: &[&str], of: &str, keys: &BTreeMap<&str, Key<'_>>) -> Attributes {
    let mut all = data(element, keys);
    let defaults = keys.values().filter(|key| key.of == of || key.of == "all");
    all.extend(defaults.filter_map(|key| Some((key.name.to_owned(), Some(key.default?.to_owned())))));
    let plain = element.attributes().filter(|attribute| !other.contains(&attribute.name()));
    all.extend(plain.map(|attribute| (attribute.name().to_owned(), Some(attribute.value().to_owned()))));
    all
}

#[cfg(test)]
mod tests {
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;

    fn text(inner: &str) -> String {
        format!("<graphml>\n<key id=\"d0\" for=\"node\" attr.name=\"label\"/>{inner}</graphml>")
    }

    #[test]
    fn keys_name_the_attributes_of_nodes_and_edges() {
        let graph = parse(
            "<?xml version=\"1.0\"?>\n<!DOCTYPE graphml>\n\
             <graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
             <key id=\"d0\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n\
             <key id=\"d1\" for=\"edge\" attr.name=\"delay\"><default> 5ms </default></key>\n\
             <key id=\"d2\" for=\"edge\" attr.name=\"rate\"/><key id=\"d3\" for=\"node\" yfiles.type=\"nodegraphics\"/>\n\
             <graph edgedefault=\"undirected\">\n\
             <node id=\"n0\"><data key=\"d0\">S&#227;o <!-- -->&amp; co</data><data key=\"d3\"><y>1</y></data></node><node id=\"n1\"/>\n\
             <edge id=\"e\" source=\"n0\" target=\"n1\"><data key=\"d2\">10Mbit</data></edge>\n\
             <edge source=\"n0\" target=\"n1\" directed=\"true\" weight=\"2\"><data key=\"d1\">1ms</data></edge></graph></graphml>",
        );
        let graph = graph.unwrap();
        let attribute = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(graph.nodes[0].label.as_deref(), Some("S\u{e3}o & co"));
        assert_eq!(graph.nodes[0].attributes, [("nodegraphics".to_owned(), None)]);
        assert_eq!((graph.nodes[1].id.as_str(), graph.nodes[1].line), ("n1", 8));
        let [first, second] = &graph.edges[..] else { panic!() };
        assert!(!first.directed && second.directed && first.line == 9);
        assert_eq!(first.attributes, [attribute("rate", "10Mbit"), attribute("delay", "5ms")]);
        // A written value takes precedence over the default.
        assert_eq!(
            second.attributes,
            [attribute("delay", "1ms"), attribute("delay", "5ms"), attribute("weight", "2")]
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |inner: &str| parse(&text(inner)).unwrap_err();
        assert_eq!(error(""), (1, "there is no `<graph>`".into()));
        assert_eq!(error("<graph><node/></graph>"), (2, "this node has no `id`".into()));
        assert_eq!(error("<graph>\n<edge source=\"a\"/></graph>"), (3, "this edge has no `target`".into()));
        assert_eq!(error("<graph/><graph/>").1, "there is a second `<graph>`; leave one of them in the file");
        assert!(error("<graph><hyperedge/></graph>").1.starts_with("a hyperedge joins"));
        assert!(
            error("<graph><node id=\"a\"><graph/></node></graph>").1.starts_with("this node has a graph")
        );
        let twice = "<graph><edge source=\"a\" target=\"b\"><data key=\"r\">1</data><data key=\"r\">2</data></edge></graph>";
        assert_eq!(error(twice).1, "this edge has `r` twice, with different values; leave one of them out");
        let yes = error("<graph><edge source=\"a\" target=\"b\" directed=\"yes\"/></graph>");
        assert_eq!(yes.1, "`directed` is `yes`; write true or false");
        assert_eq!(
            error("<graph edgedefault=\"yes\"/>").1,
            "`edgedefault` is `yes`; write directed or undirected"
        );
        assert_eq!(parse("<svg/>").unwrap_err(), (1, "there is no `<graphml>`".into()));
        assert_eq!(parse("graph [ ]").unwrap_err().0, 1);
        assert_eq!(parse("<graphml>\n<graph></graphml>").unwrap_err().0, 2);
    }

    #[test]
    fn no_input_takes_much_more_than_its_length() {
        // A billion laughs: each entity is ten of the one before it.
        let entity = |k: u32| format!("<!ENTITY e{k} \"{}\">", format!("&e{};", k - 1).repeat(10));
        let entities: String = (1..12).map(entity).collect();
        let bomb = format!("<!DOCTYPE g [<!ENTITY e0 \"ha\">{entities}]><graphml>&e11;</graphml>");
        assert!(parse(&bomb).is_err());
        // The children of each element are read in a loop, so depth does not matter.
        let deep = text(&"<a>".repeat(100_000));
        assert!(parse(&deep).is_err());
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn nothing_panics(inner in "(<graph>|</graph>|<node id=\"a\">|</node>|<edge source=\"a\" target=\"a\"/>|<data key=\"d0\">|</data>|&amp;|&|<|é){0,30}") {
            let _ = parse(&text(&inner));
        }
    }

    #[test]
    fn entities_of_the_file_are_refused_with_their_line() {
        let long = "x".repeat(60_000);
        let text =
            format!("<!DOCTYPE g [\n<!ENTITY e \"{long}\">]>\n<graphml>{}</graphml>", "&e;".repeat(10_000));
        let (line, message) = parse(&text).unwrap_err();
        assert!(
            line == 2 && message.starts_with("entities of a file's own are not read"),
            "{line} {message}"
        );
    }
}
