//! Gateways between hosts of their own: what passes, who gets what, and reloads under load.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod common;
mod labels;
mod passing;
#[path = "../common/processes.rs"]
mod processes;
mod reloads;
mod reports;

use std::process::ExitCode;

use processes::{Case, cases};

const CASES: &[Case] = cases! {
    passing: what_is_no_ip_passes_and_so_do_tags_and_both_versions_of_ip,
        what_is_malformed_is_counted_and_dropped,
        an_interface_goes_down_and_comes_back;
    labels: an_edge_and_a_core_divide_by_weights,
        a_label_from_outside_is_not_believed;
    reloads: no_packet_is_lost_or_overtaken_by_a_reload,
        what_waits_survives_reloads;
    reports: what_the_second_gateway_loses_is_discarded_at_the_first,
        a_gateway_without_the_key_is_not_heard;
};

fn main() -> ExitCode {
    processes::main(CASES, &[])
}
