//! Scenarios over the kernel's TCP and UDP. All tests are in real time.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

#[path = "../common/processes.rs"]
mod processes;
mod routers;

use std::process::ExitCode;

use processes::{Case, cases};

const CASES: &[Case] = cases! {
    routers: what_the_last_link_loses_is_discarded_at_the_first,
        without_reports_it_is_not,
        a_router_that_takes_no_part_is_asked_past,
        messages_are_packets_that_a_link_can_lose;
};

fn main() -> ExitCode {
    processes::main(CASES, &[])
}
