//! The proxy to the host's network, on the kernel of this machine, as an ordinary user or as root. "The host"
//! is a network namespace of the test with only a loopback. A program of its own: each test is a process that
//! enters namespaces, and four measure in real time at once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "parts of tests talk by it")]

mod services;
mod tests;
mod world;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

const CASES: &[Case] = cases! {
    tests: a_stream_crosses_the_link_both_ways,
        the_end_of_a_direction_is_passed_on,
        an_answer_comes_from_the_address_that_was_asked,
        a_slow_reader_holds_up_the_sender,
        names_are_asked_of_the_hosts_nameserver,
        without_a_nameserver_queries_are_refused,
        a_refused_port_is_an_error,
        two_hundred_connections_are_carried_at_once,
        ipv6_goes_the_same_way,
        doors_are_closed_for_others,
        a_helper_tells_what_the_system_said,
        nothing_is_left_when_the_parent_is_killed;
};

/// Parts of tests that run as processes of their own; not tests.
const PARTS: &[Case] = &[("hold_a_helper", tests::hold_a_helper)];

fn main() -> ExitCode {
    processes::main(CASES, PARTS)
}
