//! Measures combined element by element.

use crate::runs::Fault;

/// The labels of measures that are combined element by element.
pub(crate) fn matching(parts: Vec<Vec<String>>) -> Result<Vec<String>, Fault> {
    let most = parts.iter().map(Vec::len).max().unwrap_or(0);
    if most == 0 || parts.iter().any(|part| part.len() != most && part.len() != 1) {
        let lengths: Vec<_> = parts.iter().map(|part| part.len().to_string()).collect();
        return Err(("of", format!("measures of {} numbers do not match", lengths.join(" and "))));
    }
    Ok(parts.into_iter().find(|part| part.len() == most).unwrap_or_default())
}

/// Combines element by element; a single number is used for every element.
pub(crate) fn combine(parts: &[&Vec<f64>], with: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let most = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    let at = |k: usize| -> Vec<f64> {
        parts.iter().filter_map(|part| part.get(if part.len() == 1 { 0 } else { k })).copied().collect()
    };
    (0..most).map(|k| with(&at(k))).collect()
}
