//! Defaults in scenario files, for keys that links and flows do not set themselves.

use std::rc::Rc;

use apportion_core::param::Preset;
use apportion_core::system::Catalog;

use crate::files::Files;
use crate::keys::{Fields, walk, walk_variant};
use crate::marking;
use crate::network::Spec;
use crate::problem::Problems;
use crate::queue::Queue;
use crate::tables::{DEFAULT_BACK, DEFAULT_FLOW, DEFAULT_LINK, DEFAULTS, SOURCES};
use crate::text::Item;
use crate::transport;

/// The table `defaults`.
pub(crate) struct Defaults<'a> {
    /// The known disciplines and markers, with the preset of the scenario.
    pub catalog: Catalog,
    /// The files of traces.
    pub files: &'a Files<'a>,
    pub flow: Option<Fields<'a>>,
    link: Option<Fields<'a>>,
    back: Option<Fields<'a>>,
    spec: Spec,
}

impl<'a> Defaults<'a> {
    /// Reads the table if there is one; every error is added to `problems`, including those in values that no
    /// link or flow uses.
    pub(crate) fn read(
        item: Option<&'a Item>,
        catalog: &Catalog,
        files: &'a Files<'a>,
        problems: &mut Problems,
    ) -> Self {
        let all = item.and_then(|item| walk(item, "defaults", DEFAULTS, false, problems));
        let preset = all.as_ref().and_then(|all| all.text(Preset::KEY)?.parse().ok());
        let catalog = catalog.with_preset(preset.unwrap_or_default());
        let table = |name: &str| Some((all.as_ref()?.item(name)?, format!("defaults.{name}")));
        let link = table("link").and_then(|(item, path)| walk(item, &path, DEFAULT_LINK, false, problems));
        let flow = table("flow").and_then(|(item, path)| walk(item, &path, DEFAULT_FLOW, true, problems));
        let back = link.as_ref().and_then(|link| Some((link.item("back")?, link.path_of("back"))));
        let back = back.and_then(|(item, path)| walk(item, &path, DEFAULT_BACK, false, problems));
        let mut spec = Spec::stand_in(&catalog);
        if let Some(link) = &link {
            spec.change(link, 1, &catalog, files, problems);
        }
        if let Some(back) = &back {
            spec.clone().change(back, 1, &catalog, files, problems);
        }
        if let Some(flow) = &flow {
            check_flow(&catalog, flow, problems);
        }
        Self { catalog, files, flow, link, back, spec }
    }

    /// Whether links take `key` from the defaults.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.link.as_ref().is_some_and(|link| link.item(key).is_some())
    }

    /// A link that sets no keys itself; it has `queue` unless there is a default.
    pub(crate) fn link(&self, queue: Rc<Queue>) -> Spec {
        let spec = self.spec.clone();
        if self.has("queue") { spec } else { Spec { queue, ..spec } }
    }

    /// The other direction of a link `there` that sets no keys for it.
    pub(crate) fn other_way(&self, there: &Spec, problems: &mut Problems) -> Spec {
        self.change_back(there.other_way(), problems)
    }

    /// `spec` with the defaults for other directions.
    pub(crate) fn change_back(&self, mut spec: Spec, problems: &mut Problems) -> Spec {
        if let Some(back) = &self.back {
            spec.change(back, 1, &self.catalog, self.files, problems);
        }
        spec
    }
}

fn check_flow(catalog: &Catalog, flow: &Fields<'_>, problems: &mut Problems) {
    let item = |key: &str| Some((flow.item(key)?, flow.path_of(key)));
    if let Some((item, path)) = item("tcp") {
        transport::read_tcp(catalog, item, &path, problems);
    }
    if let Some((item, path)) = item("quic") {
        transport::read_quic(catalog, item, &path, problems);
    }
    if let Some((item, path)) = item("transport") {
        transport::read_stack(catalog, item, &path, problems);
    }
    if let Some((item, path)) = item("source") {
        walk_variant(item, &path, SOURCES, true, problems);
    }
    if let Some((item, path)) = item("mark") {
        marking::marker(catalog, item, &path, problems);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::queue;

    #[test]
    fn without_a_table_links_are_as_they_would_be_anyway() {
        let mut problems = Problems::default();
        let catalog = Catalog::default();
        let files = Files::new(Path::new(""), &crate::read_file);
        let defaults = Defaults::read(None, &catalog, &files, &mut problems);
        let spec = defaults.link(queue::default(&catalog));
        assert_eq!(spec.queue.params, queue::default(&catalog).params);
        assert_eq!(defaults.other_way(&spec, &mut problems).queue.params, queue::deep().params);
        assert!(problems.is_empty() && !defaults.has("queue") && defaults.flow.is_none());
    }
}
