//! The applications of the laboratory over the kernel's TCP and UDP, through links of the engine.
//!
//! An engine joins two hosts, with a FIFO each way of 10 Mbit/s and 10 ms. All tests run in real time. A
//! program of its own: each test is a process that enters namespaces, and four measure in real time at once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod setup;
mod tcp;
mod udp;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

const CASES: &[Case] = cases! {
    tcp: cubic_fills_the_link,
        reno_fills_the_link,
        bbr_fills_the_link_and_not_its_queue,
        a_file_takes_as_long_as_computed_by_hand,
        an_application_limited_source_gets_what_it_writes,
        segments_of_the_scenario_are_on_the_wire,
        timestamps_are_on_the_wire_if_headers_have_them,
        the_window_of_the_scenario_bounds_what_is_under_way,
        a_large_window_is_reached_and_not_exceeded,
        samples_have_a_window_and_a_round_trip_time,
        a_connection_without_an_answer_is_named,
        what_cannot_be_opened_is_named,
        five_thousand_connections_are_opened_and_a_thousand_files_arrive;
    udp: a_constant_rate_arrives,
        a_queue_without_a_limit_leaves_the_way_back_its_buffers,
        rate_zero_silences,
        stop_ends_it_at_once;
};

fn main() -> ExitCode {
    processes::main(CASES, &[])
}
