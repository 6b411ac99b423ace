//! The kernel's `tools/testing/selftests/tc-testing`, of torvalds/linux: the files of `tc-tests/qdiscs` whose
//! discipline is here, and `tc-tests/infra/qdiscs.json`. A case has its identifier there. Each file is at the
//! commit that its list names.
//!
//! The suite asks `tc` for a setting, and what the kernel then shows. Here a table is read, and its parameters
//! have the values that are shown; a unit of 1K is 1,024 bytes there. Rows in `preset = "paper"` have the
//! kernel's defaults.

mod settings;
mod waiting;

use super::Case;

pub fn cases() -> Vec<Case> {
    settings::cases().into_iter().chain(waiting::cases()).collect()
}
