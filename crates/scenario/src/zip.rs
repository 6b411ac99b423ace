//! Lists of a sweep that vary together: `[sweep] zip = [["rate", "delay"]]`.

use crate::keys::walk;
use crate::problem::Problems;
use crate::sweep::Axis;
use crate::tables::SWEEP;
use crate::text::{Item, Table, Value};

/// The key of the table.
const KEY: &str = "sweep";

/// Maximum of paths of swept keys in a message.
const MOST_PATHS: usize = 3;

/// Takes the table out of `root`, because it is no part of a point.
pub(crate) fn taken_out(root: &mut Table) -> Option<Item> {
    let at = root.entries.iter().position(|(key, _)| key == KEY)?;
    Some(root.entries.remove(at).1)
}

/// The dimensions of the grid: each lists the numbers of the axes that vary together, at the position of the
/// first of them.
pub(crate) fn dimensions(said: Option<&Item>, axes: &[Axis], problems: &mut Problems) -> Vec<Vec<usize>> {
    let zipped = said.map(|said| zipped(said, axes, problems)).unwrap_or_default();
    let is_first = |at: &usize| zipped.iter().all(|group| group[0] == *at || !group.contains(at));
    let group = |at| zipped.iter().find(|group| group[0] == at).cloned().unwrap_or_else(|| vec![at]);
    (0..axes.len()).filter(is_first).map(group).collect()
}

/// The axes that vary together, by their numbers; those that `said`, the table under [`KEY`], names together
/// are one group.
fn zipped(said: &Item, axes: &[Axis], problems: &mut Problems) -> Vec<Vec<usize>> {
    let Some(fields) = walk(said, KEY, SWEEP, false, problems) else { return Vec::new() };
    let Some(item) = fields.item("zip") else { return Vec::new() };
    let names = |item: &Item| match &item.value {
        Value::List(items) if items.len() > 1 => {
            items.iter().map(|item| item.as_text().map(str::to_owned)).collect::<Option<Vec<String>>>()
        }
        _ => None,
    };
    let groups = match &item.value {
        Value::List(items) => items.iter().map(names).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let Some(groups) = groups else {
        let message = format!(
            "`{}` is not a list of lists of two or more keys; write for example zip = [[\"rate\", \"delay\"]]",
            item.plain()
        );
        fields.refuse("zip", message, problems);
        return Vec::new();
    };
    let mut all: Vec<Vec<usize>> = Vec::new();
    for names in groups {
        match group(&names, axes, &all) {
            Ok(group) => all.push(group),
            Err(message) => fields.refuse("zip", message, problems),
        }
    }
    all
}

/// The axes of these names, in the order of the file; none may be in `others`, and all must have equally many
/// values.
fn group(names: &[String], axes: &[Axis], others: &[Vec<usize>]) -> Result<Vec<usize>, String> {
    let paths: Vec<String> = axes.iter().map(Axis::path).collect();
    let mut group = Vec::new();
    for name in names {
        let is_called = |path: &String| {
            path.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let found: Vec<usize> = (0..axes.len()).filter(|at| is_called(&paths[*at])).collect();
        let listed = |found: &[usize]| found.iter().map(|at| format!("`{}`", paths[*at])).collect::<Vec<_>>();
        let at = match found[..] {
            [at] => at,
            [] => {
                let swept = listed(&(0..axes.len().min(MOST_PATHS)).collect::<Vec<_>>());
                let swept = if swept.is_empty() { "nothing".to_owned() } else { swept.join(", ") };
                return Err(format!("no key `{name}` has a list of values; swept is {swept}"));
            }
            _ => {
                return Err(format!(
                    "`{name}` may be {}; write more of the path",
                    listed(&found).join(" or ")
                ));
            }
        };
        if group.contains(&at) || others.iter().any(|other| other.contains(&at)) {
            return Err(format!("`{name}` is named twice"));
        }
        group.push(at);
    }
    let length = |at: usize| axes[at].values.len();
    if let Some(other) = group.iter().find(|at| length(**at) != length(group[0])) {
        let (first, other) = (group[0], *other);
        return Err(format!(
            "`{}` has {} values and `{}` has {}; lists that vary together have as many",
            paths[first],
            length(first),
            paths[other],
            length(other)
        ));
    }
    group.sort_unstable();
    Ok(group)
}
