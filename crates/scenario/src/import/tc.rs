//! Commands of tc(8), alone, in scripts and in batch files, and the output of `tc qdisc show` and
//! `tc class show`.
//!
//! The disciplines of a device are a tree. A chain of netem, a shaper and a queue is a link. If a discipline
//! with classes divides packets among several netems, each is a link of its own. Ingress that is redirected
//! to a device is the other direction of the link.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::units::Rate;

use super::cake::Cake;
use super::file::File;
use super::link::{self, Link, Pair, Queue};
use super::netem;
use super::qdisc;
use super::report::Report;
use super::units;
use super::words::{Command, commands};

/// Maximum depth of a tree. Chosen: twice the usual depth.
const DEEPEST: u32 = 8;

/// Disciplines of Linux that are not imported.
const OTHERS: [&str; 16] = [
    "fq", "red", "gred", "choke", "pie", "fq_pie", "hhf", "sfb", "skbprio", "dualpi2", "etf", "taprio",
    "cbq", "dsmark", "plug", "noop",
];

/// The place of a command.
#[derive(Clone, Debug)]
struct At {
    file: usize,
    line: u32,
    text: String,
}

/// A discipline of a device.
#[derive(Clone, Debug)]
struct Qdisc {
    at: At,
    /// The major number of its handle.
    major: Option<String>,
    kind: String,
    options: Vec<String>,
}

/// A class of HTB.
#[derive(Clone, Debug)]
struct Class {
    at: At,
    parent: String,
    options: Vec<String>,
}

#[derive(Debug, Default)]
struct Device {
    name: String,
    /// Disciplines by their parent class; that of the root is empty.
    qdiscs: BTreeMap<String, Qdisc>,
    classes: BTreeMap<String, Class>,
    /// The device that ingress is redirected to.
    ingress: Option<String>,
}

/// Whether the file has commands of tc, or its output.
pub(super) fn is_one(file: &File) -> bool {
    commands(&file.text).iter().any(|command| subject(&command.words).is_some())
}

/// The subject of a command.
struct Subject<'a> {
    /// The network namespace or container, if it is named.
    namespace: Option<&'a str>,
    words: &'a [String],
}

/// The subject in the words after `tc` of a command, or of a line of a batch file or of output.
fn subject(words: &[String]) -> Option<Subject<'_>> {
    let mut rest = words;
    let mut namespace = None;
    if matches!(rest.first().map(String::as_str), Some("qdisc" | "class" | "filter")) && rest.len() > 2 {
        return Some(Subject { namespace, words: rest });
    }
    loop {
        let (first, more) = rest.split_first()?;
        let base = first.rsplit('/').next().unwrap_or_default();
        rest = match base {
            "tc" | "$TC" | "${TC}" | "$tc" => break rest = more,
            "ip" if more.len() > 2 && more[0] == "netns" && more[1] == "exec" => {
                namespace = Some(more[2].as_str());
                &more[3..]
            }
            "docker" | "podman" if more.first().is_some_and(|word| word == "exec") => {
                let at = more.iter().skip(1).position(|word| !word.starts_with('-'))? + 1;
                namespace = Some(more[at].as_str());
                &more[at + 1..]
            }
            "sudo" | "doas" | "then" | "do" | "else" | "if" | "!" | "{" | "time" | "exec" | "env"
            | "nsenter" => more,
            _ if base.starts_with('-') || base.bytes().all(|byte| byte.is_ascii_digit()) => more,
            _ => return None,
        };
    }
    while let Some((first, more)) = rest.split_first().filter(|(first, _)| first.starts_with('-')) {
        rest = more;
        if ["-n", "-net", "-netns"].contains(&first.as_str()) {
            let (name, more) = rest.split_first()?;
            (namespace, rest) = (Some(name.as_str()), more);
        }
    }
    (!rest.is_empty()).then_some(Subject { namespace, words: rest })
}

/// A scenario, or the configuration of a gateway, of these commands.
pub(super) fn import(files: &[File], report: &mut Report) -> Option<String> {
    let mut tree = Tree::default();
    for (number, file) in files.iter().enumerate() {
        report.in_file(&file.name);
        let commands = commands(&file.text);
        let is_shown = commands.iter().any(|command| is_shown(&command.words));
        let mut others: Vec<&Command> = Vec::new();
        for command in &commands {
            match subject(&command.words) {
                Some(subject) => tree.take(&subject, number, command, report),
                None if is_shown => (),
                None => others.push(command),
            }
        }
        if let [first, more @ ..] = &others[..] {
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            report.note(
                first.line,
                format!("commands of others than tc, `{}`{more}: left out", shortened(&first.text())),
            );
        }
    }
    let pairs = tree.pairs(files, report);
    if report.is_gateway {
        gateway(pairs, files, report)
    } else {
        (!pairs.is_empty()).then(|| link::scenario(&pairs))
    }
}

/// Whether it is a line of `tc qdisc show`.
fn is_shown(words: &[String]) -> bool {
    words.len() > 3 && words[0] == "qdisc" && verb(&words[1]).is_none()
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(60).collect();
    if short.len() < text.len() { short + ".." } else { short }
}

/// A verb of tc(8), which may be abbreviated.
fn verb(word: &str) -> Option<&'static str> {
    let verbs = ["add", "change", "replace", "link", "delete", "show", "list"];
    verbs.into_iter().find(|verb| !word.is_empty() && verb.starts_with(word))
}

/// Words before the kind of a discipline or class.
#[derive(Default)]
struct Place<'a> {
    device: Option<&'a str>,
    parent: Option<&'a str>,
    handle: Option<&'a str>,
    is_ingress: bool,
    kind: Option<&'a str>,
    options: &'a [String],
    stab: Vec<&'a str>,
}

impl<'a> Place<'a> {
    fn read(words: &'a [String]) -> Result<Self, String> {
        let mut place = Self::default();
        let mut rest = words;
        while let Some((word, more)) = rest.split_first() {
            let mut skip = 0;
            let value = || {
                more.first()
                    .map(String::as_str)
                    .ok_or_else(|| format!("tc: `{word}` wants a value behind it"))
            };
            match word.as_str() {
                "dev" => (place.device, skip) = (Some(value()?), 1),
                "parent" => (place.parent, skip) = (Some(value()?), 1),
                "handle" | "classid" => (place.handle, skip) = (Some(value()?), 1),
                "refcnt" | "leaf" => skip = 1,
                "estimator" => skip = 2,
                "root" | "invisible" | "offloaded" | "deleted" => (),
                "ingress" | "clsact" => place.is_ingress = true,
                "stab" => {
                    let pairs = ["mtu", "tsize", "mpu", "overhead", "linklayer"];
                    while more.get(skip).is_some_and(|word| pairs.contains(&word.as_str())) {
                        place.stab.extend(more[skip..].iter().take(2).map(String::as_str));
                        skip += 2;
                    }
                }
                kind => {
                    (place.kind, place.options) = (Some(kind), more);
                    break;
                }
            }
            rest = more.get(skip..).unwrap_or_default();
        }
        Ok(place)
    }
}

/// The devices in order of appearance.
#[derive(Default)]
struct Tree {
    devices: Vec<Device>,
    by_name: BTreeMap<String, usize>,
}

impl Tree {
    fn device(&mut self, namespace: Option<&str>, name: &str) -> &mut Device {
        let name = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}-{name}"));
        let at = *self.by_name.entry(name.clone()).or_insert_with(|| {
            self.devices.push(Device { name, ..Device::default() });
            self.devices.len() - 1
        });
        &mut self.devices[at]
    }

    /// Takes a command.
    fn take(&mut self, subject: &Subject<'_>, file: usize, command: &Command, report: &mut Report) {
        let line = command.line;
        let at = At { file, line, text: format!("{}: {}", report.place(line), command.text()) };
        let [object, rest @ ..] = subject.words else { return };
        let object =
            ["qdisc", "class", "filter"].into_iter().find(|known| known.starts_with(object.as_str()));
        let (verb, rest) = match rest.split_first() {
            Some((word, more)) => (verb(word).unwrap_or("shown"), more),
            None => return,
        };
        match (object, verb) {
            (_, "show" | "list") => (),
            (Some(_), "delete") => self.delete(subject.namespace, rest, line, report),
            (Some("filter"), _) => self.filter(subject.namespace, rest, line, report),
            (Some(object), "shown") => self.add_shown(object, &subject.words[1..], at, report),
            (Some(object), _) => {
                if let Some(place) = report.or_refuse(line, Place::read(rest)) {
                    self.add(subject.namespace, object, &place, at, report);
                }
            }
            (None, _) => report.note(line, format!("`{}`: left out", shortened(&command.text()))),
        }
    }

    /// Takes a discipline or a class that is added.
    fn add(&mut self, namespace: Option<&str>, object: &str, place: &Place<'_>, at: At, report: &mut Report) {
        let line = at.line;
        let Some(name) = place.device else {
            return report.refuse(line, "tc: no device is named; write for example dev eth0");
        };
        let is_ingress =
            place.is_ingress || place.kind.is_some_and(|kind| ["ingress", "clsact"].contains(&kind));
        let Some(kind) = place.kind.filter(|_| !is_ingress) else {
            if !is_ingress {
                report.refuse(line, "tc: no discipline is named; write for example netem behind `root`");
            }
            return;
        };
        if !place.stab.is_empty() {
            report.note(line, format!("stab {}: packets are charged their own size", place.stab.join(" ")));
        }
        if let Some(why) = units::variable(name) {
            report.note(line, format!("{why}; the link is called after it"));
        }
        let device = self.device(namespace, name);
        if object == "class" {
            return device.add_class(kind, place, at, report);
        }
        let parent = place.parent.filter(|parent| *parent != "root").map(normal).unwrap_or_default();
        let major = place.handle.map(|handle| major(handle).to_owned());
        let qdisc = Qdisc { at, major, kind: kind.to_owned(), options: place.options.to_vec() };
        if let Some(before) = device.qdiscs.insert(parent, qdisc) {
            report.note(
                line,
                format!(
                    "it takes the place of line {} as a whole, also of what a `change` would keep",
                    before.at.line
                ),
            );
        }
    }

    /// Takes a line of output: kind and handle precede its place, and options follow.
    fn add_shown(&mut self, object: &str, words: &[String], at: At, report: &mut Report) {
        let [kind, handle, rest @ ..] = words else { return };
        let Some(mut place) = report.or_refuse(at.line, Place::read(rest)) else { return };
        // The first option was read as a kind.
        let options = place.kind.map_or(0, |_| place.options.len() + 1);
        place.options = &rest[rest.len() - options..];
        (place.kind, place.handle) = (Some(kind.as_str()), Some(handle.as_str()));
        match self.devices.last_mut() {
            // A class in output has no device: it belongs to the last one.
            Some(device) if place.device.is_none() && object == "class" => {
                device.add_class(kind, &place, at, report);
            }
            _ => self.add(None, object, &place, at, report),
        }
    }

    fn delete(&mut self, namespace: Option<&str>, words: &[String], line: u32, report: &mut Report) {
        let name = words.iter().skip_while(|word| *word != "dev").nth(1);
        let Some(name) = name else { return };
        if !self.device(namespace, name).qdiscs.is_empty() {
            report.note(line, format!("what {name} has is deleted here; it is taken as it was before"));
        }
    }

    fn filter(&mut self, namespace: Option<&str>, words: &[String], line: u32, report: &mut Report) {
        let after = |from: usize, key: &str| {
            let at = words[from..].iter().position(|word| word == key)? + from + 1;
            words.get(at)
        };
        let is_ingress = words.iter().any(|word| word == "ingress" || word.starts_with("ffff:"));
        let redirect = words.iter().position(|word| word == "mirred").filter(|_| is_ingress);
        let redirect = redirect.and_then(|at| after(at, "dev"));
        match (after(0, "dev"), redirect) {
            (Some(device), Some(target)) => {
                let target =
                    namespace.map_or_else(|| target.clone(), |namespace| format!("{namespace}-{target}"));
                self.device(namespace, device).ingress = Some(target);
            }
            _ => report.note(
                line,
                "a filter: it sorts packets into classes, and all packets cross a link; left out",
            ),
        }
    }

    /// The links of all devices.
    fn pairs(&self, files: &[File], report: &mut Report) -> Vec<Pair> {
        let mut links: Vec<Vec<(String, Link)>> =
            self.devices.iter().map(|device| device.links(files, report)).collect();
        let mut of_ingress: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, device) in self.devices.iter().enumerate() {
            let target = device.ingress.as_ref().and_then(|name| self.by_name.get(name));
            if let Some(target) = target.filter(|target| **target != at && links[**target].len() == 1) {
                of_ingress.insert(*target, at);
            }
        }
        // Without a filter, an ingress device belongs to the only other one.
        let is_ifb = |device: &Device| device.name.starts_with("ifb") || device.name.starts_with("imq");
        if let ([first, second], true) = (&self.devices[..], of_ingress.is_empty())
            && is_ifb(first) != is_ifb(second)
        {
            let (ifb, other) = if is_ifb(first) { (0, 1) } else { (1, 0) };
            if links[ifb].len() == 1 && links[other].len() <= 1 {
                of_ingress.insert(ifb, other);
            }
        }
        let mut backs: BTreeMap<usize, Link> = BTreeMap::new();
        for (target, at) in &of_ingress {
            if links[*at].len() <= 1
                && let Some((_, link)) = links[*target].pop()
            {
                backs.insert(*at, link);
            }
        }
        let mut pairs = Vec::new();
        for (at, (device, links)) in self.devices.iter().zip(links).enumerate() {
            let back = backs.remove(&at);
            if links.is_empty() && back.is_some() {
                pairs.push(Pair::new(&device.name, None, back));
                continue;
            }
            let mut back = back;
            pairs.extend(links.into_iter().map(|(name, link)| Pair::new(&name, Some(link), back.take())));
        }
        pairs
    }
}

/// The major number of a handle or a class, without leading zeros.
fn major(text: &str) -> &str {
    let major = text.split(':').next().unwrap_or_default();
    let short = major.trim_start_matches("0x").trim_start_matches('0');
    if short.is_empty() { "0" } else { short }
}

/// A class as `1:10`, in any spelling.
fn normal(text: &str) -> String {
    let minor =
        text.split_once(':').map_or("", |(_, minor)| minor.trim_start_matches("0x").trim_start_matches('0'));
    format!("{}:{minor}", major(text))
}

impl Device {
    fn add_class(&mut self, kind: &str, place: &Place<'_>, at: At, report: &mut Report) {
        if kind != "htb" {
            return report.note(at.line, format!("a class of `{kind}`: only those of htb are followed"));
        }
        let [id, parent] = [place.handle, place.parent].map(|text| normal(text.unwrap_or_default()));
        self.classes.insert(id, Class { at, parent, options: place.options.to_vec() });
    }

    /// The device's links by name.
    fn links(&self, files: &[File], report: &mut Report) -> Vec<(String, Link)> {
        let mut walk = Walk { device: self, files, report, found: Vec::new() };
        match self.qdiscs.get("") {
            Some(root) => walk.follow(root, Link::default(), self.name.clone(), 0),
            None => self
                .qdiscs
                .values()
                .for_each(|orphan| walk.note(&orphan.at, "what it is under is not here: left out")),
        }
        walk.found
    }

    /// The disciplines under this one.
    fn children(&self, qdisc: &Qdisc) -> Vec<&Qdisc> {
        // Without a handle of its own only `mq` has child disciplines.
        let own = qdisc.major.as_deref().filter(|own| *own != "0" || qdisc.kind == "mq");
        let Some(own) = own else { return Vec::new() };
        let under = self.qdiscs.iter().filter(|(parent, _)| !parent.is_empty() && major(parent) == own);
        under.map(|(_, child)| child).filter(|child| !std::ptr::eq(*child, qdisc)).collect()
    }
}

/// Collects the links of a device from its root on.
struct Walk<'a> {
    device: &'a Device,
    files: &'a [File],
    report: &'a mut Report,
    found: Vec<(String, Link)>,
}

impl<'a> Walk<'a> {
    fn note(&mut self, at: &At, message: impl Into<String>) {
        self.report.in_file(&self.files[at.file].name);
        self.report.note(at.line, message);
    }

    /// Follows a discipline and its children.
    fn follow(&mut self, qdisc: &'a Qdisc, mut link: Link, name: String, depth: u32) {
        link.sources.push(qdisc.at.text.clone());
        if !self.apply(qdisc, &mut link) {
            return;
        }
        let kind = qdisc.kind.as_str();
        let children = self.device.children(qdisc);
        if depth >= DEEPEST {
            self.note(&qdisc.at, "what is under it is not followed any further");
            return self.found.push((name, link));
        }
        if kind == "htb" {
            return self.follow_htb(qdisc, &link, &name, depth);
        }
        // All queues of a device have the same discipline below `mq`.
        let is_wanted = |child: &&&Qdisc| children.len() == 1 || child.kind == "netem";
        let wanted: Vec<&Qdisc> = match kind {
            "mq" => children.iter().take(1).copied().collect(),
            _ => children.iter().filter(is_wanted).copied().collect(),
        };
        if !["netem", "tbf", "mq"].contains(&kind) && !children.is_empty() {
            self.note(
                &qdisc.at,
                format!("`{kind}` sorts packets into classes; each netem under it is a link of its own"),
            );
        }
        for child in &wanted {
            let number = child.major.as_deref().unwrap_or("0");
            let own = if wanted.len() == 1 { name.clone() } else { format!("{name}-{number}") };
            self.follow(child, link.clone(), own, depth + 1);
        }
        if wanted.is_empty() {
            self.found.push((name, link));
        }
    }

    /// Applies a discipline to a link; false if it is unknown, or refused.
    fn apply(&mut self, qdisc: &Qdisc, link: &mut Link) -> bool {
        let Qdisc { at, kind, options, .. } = qdisc;
        self.report.in_file(&self.files[at.file].name);
        match kind.as_str() {
            "noqueue" => false,
            "htb" | "prio" | "mq" | "hfsc" | "drr" | "qfq" | "ets" | "multiq" | "mqprio" => true,
            "netem" => netem::read(options, at.line, link, self.report),
            "tbf" => qdisc::token_bucket(options, at.line, link, self.report),
            "cake" | "cake_mq" => {
                let Some(cake) = Cake::read(options, at.line, self.report) else { return false };
                link.rate = cake.bandwidth.or(link.rate);
                link.overhead = cake.overhead();
                link.queue = Queue::Cake(Box::new(cake));
                true
            }
            other if qdisc::is_known(other) => {
                let Some(text) = qdisc::queue(other, options, at.line, self.report) else { return false };
                link.queue = Queue::Text(text);
                true
            }
            other if OTHERS.contains(&other) => {
                // Alone there is nothing to import.
                let is_alone = link.sources.len() == 1 && self.device.children(qdisc).is_empty();
                let instead = if is_alone { "left out" } else { "the queue is a FIFO" };
                self.report.note(at.line, format!("`{other}` is not imported: {instead}"));
                !is_alone
            }
            other => {
                self.report.refuse(
                    at.line,
                    format!("tc: there is no discipline `{other}`; write for example netem behind `root`"),
                );
                false
            }
        }
    }

    /// Classes of HTB: one leaf is a link; of several, each with a netem is one.
    fn follow_htb(&mut self, qdisc: &'a Qdisc, link: &Link, name: &str, depth: u32) {
        let own = qdisc.major.as_deref().unwrap_or("0");
        let classes: Vec<_> = self.device.classes.iter().filter(|(id, _)| major(id) == own).collect();
        let parents: BTreeSet<&str> = classes.iter().map(|(_, class)| class.parent.as_str()).collect();
        let leaves: Vec<_> = classes.iter().filter(|(id, _)| !parents.contains(id.as_str())).collect();
        let mut taken = 0;
        for (id, class) in &leaves {
            let child = self.device.qdiscs.get(*id);
            if leaves.len() > 1 && child.is_none_or(|child| child.kind != "netem") {
                let why = "a queue of kind \"htb\" has classes, with customers in place of filters";
                self.note(&class.at, format!("the class {id} of htb is not imported: {why}"));
                continue;
            }
            taken += 1;
            let mut own = link.clone();
            own.sources.push(class.at.text.clone());
            own.rate = self.rate_of(id);
            let name =
                if leaves.len() == 1 { name.to_owned() } else { format!("{name}-{}", id.replace(':', "-")) };
            match child {
                Some(child) => self.follow(child, own, name, depth + 1),
                None => self.found.push((name, own)),
            }
        }
        if taken > 1 {
            self.note(
                &qdisc.at,
                "classes of htb with netem are links of their own, which do not share what is above them",
            );
        } else if taken == 0 {
            let tops = classes.iter().filter(|(_, class)| !self.device.classes.contains_key(&class.parent));
            let tops: Vec<_> = tops.map(|(id, _)| *id).collect();
            let rate = tops.into_iter().filter_map(|id| self.rate_of(id)).max();
            if rate.is_none() {
                self.note(&qdisc.at, "htb: no class below it has a rate");
            }
            self.found.push((name.to_owned(), Link { rate, ..link.clone() }));
        }
    }

    /// The lowest ceiling of a class and its ancestors.
    fn rate_of(&mut self, id: &str) -> Option<Rate> {
        let mut least = None;
        let mut next = id;
        for _ in 0..DEEPEST {
            let Some(class) = self.device.classes.get(next) else { break };
            self.report.in_file(&self.files[class.at.file].name);
            let rate = qdisc::class_rate(&class.options, class.at.line, self.report)?;
            least = Some(least.map_or(rate, |least: Rate| least.min(rate)));
            next = &class.parent;
        }
        least
    }
}

/// The configuration of a gateway of the only pair.
fn gateway(mut pairs: Vec<Pair>, files: &[File], report: &mut Report) -> Option<String> {
    let first = files.first().map_or("", |file| file.name.as_str());
    report.in_file(first);
    if pairs.len() > 1 {
        let names: Vec<_> = pairs.iter().map(|pair| pair.device.as_str()).collect();
        report.refuse(1, format!(
            "a gateway has one link, and here are {}; import a file with the commands of one device and of its ingress",
            names.join(", ")
        ));
        return None;
    }
    let Pair { device, there, back, .. } = pairs.pop()?;
    for (link, what) in
        [(&there, "up: no discipline of the device"), (&back, "down: no discipline of its ingress")]
    {
        if link.as_ref().is_none_or(|link| link.rate.is_none()) {
            report.note(1, format!("{what} has a rate: 1Gbit stands for it"));
        }
    }
    link::gateway(&device, &there.unwrap_or_default(), &back.unwrap_or_default(), 1, report)
}
