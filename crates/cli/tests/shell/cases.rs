//! The cases of the shell.

mod clients;
#[path = "../common/mod.rs"]
mod common;
mod tests;
mod video;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

const CASES: &[Case] = cases! {
    clients: iperf3_has_the_rate_of_the_link, irtt_has_the_round_trip_of_the_link, flent_measures_it_too;
    tests: a_video_has_its_rate_beside_bulk_transfers_of_the_same_host_if_it_is_real_rate,
        an_application_reads_that_the_link_cannot_carry_what_it_sends,
        the_exit_status_is_the_commands,
        wrong_options_are_reported_before_anything_runs,
        a_program_that_is_not_there_is_bad_input,
        the_caller_stays_who_they_are_and_has_no_rights_over_the_link,
        shells_nest_with_addresses_of_their_own,
        a_command_starts_soon,
        a_round_trip_takes_both_delays_and_little_more,
        what_arrives_comes_at_the_rate_that_was_asked_for,
        steps_change_the_rate_and_a_trace_sets_the_pace,
        a_log_holds_every_packet_in_mahimahis_format,
        nothing_is_left_of_a_shell_that_was_killed,
        a_signal_goes_to_the_command_and_its_daemons_end_with_it,
        an_interactive_shell_controls_its_jobs_and_gives_the_terminal_back,
        the_keys_of_a_terminal_reach_the_command;
};

pub fn main() -> ExitCode {
    processes::main(CASES, cases! { tests: part; })
}
