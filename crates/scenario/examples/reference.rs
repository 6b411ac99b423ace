//! Prints the page `docs/scenario.md`, or with the argument `gateway` the tables of keys in `docs/gateway.md`.

use apportion_scenario::{describe, gateway};

#[expect(clippy::print_stdout, reason = "printing is what it is for")]
fn main() {
    let of_gateway = std::env::args().nth(1).is_some_and(|page| page == "gateway");
    print!("{}", if of_gateway { gateway::reference() } else { describe::reference() });
}
