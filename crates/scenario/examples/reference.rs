//! Prints the page `docs/scenario.md`.

#[expect(clippy::print_stdout, reason = "printing is what it is for")]
fn main() {
    print!("{}", apportion_scenario::describe::reference());
}
