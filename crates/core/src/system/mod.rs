//! Recipes.

/// Placeholder until the disciplines land.
#[derive(Clone, Debug, PartialEq)]
pub struct DisciplineParams;
