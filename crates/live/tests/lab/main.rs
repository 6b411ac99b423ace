//! Scenarios over the kernel's TCP and UDP. All tests run in real time. A program of its own: each test is a
//! process that enters namespaces, and four measure in real time at once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod common;
mod course;
mod packets;
mod routers;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

const CASES: &[Case] = cases! {
    packets: a_full_link_carries_its_rate_in_bytes_of_the_scenario,
        packets_take_the_delay_of_their_links,
        a_fair_queue_divides_by_weights,
        a_change_of_rate_comes_at_its_time,
        a_change_of_a_flows_rate_reaches_its_source;
    course: cancel_ends_a_run_early_and_the_next_one_is_whole,
        results_are_of_all_flows_links_and_samples,
        what_only_a_simulator_can_do_is_refused_with_its_place,
        packets_that_linux_does_not_have_are_refused_with_their_place;
    routers: what_the_last_link_loses_is_discarded_at_the_first,
        without_reports_it_is_not,
        a_query_passes_a_router_that_takes_no_part,
        messages_are_packets_that_a_link_can_lose;
};

fn main() -> ExitCode {
    processes::main(CASES, &[])
}
