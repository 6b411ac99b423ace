//! The cases of a gateway.

mod changes;
mod clients;
mod commands;
mod dashboard;
mod failures;
mod load;
mod notifications;
mod place;
mod proxies;
mod refusals;
mod reloads;
mod rules;

mod service;
mod top;
mod tutorial;
mod viewers;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

const CASES: &[Case] = cases! {
    changes: a_change_by_http_is_shown_and_applied_and_the_file_stays,
        a_weight_that_is_set_by_http_moves_the_shares_within_3_s,
        nothing_is_set_where_control_is_off,
        a_token_that_others_can_read_ends_with_status_2;
    clients: iperf3_has_the_rate_and_irtt_the_delay_of_a_gateway;
    commands: a_wrong_configuration_ends_with_status_2,
        check_looks_at_the_interfaces_and_changes_nothing,
        check_refuses_an_address_that_is_taken_and_warns_of_the_rest,
        a_gateway_is_asked_reloaded_and_stopped,
        clients_that_are_silent_or_slow_delay_no_other,
        a_second_gateway_of_the_same_title_is_refused,
        the_log_may_have_no_reader;
    dashboard: each_panel_of_the_dashboard_has_data_in_prometheus;
    notifications: an_application_reads_overload_notifications_until_the_gateway_stops;
    failures: an_interface_that_is_deleted_and_made_again_forwards_within_a_second,
        a_gateway_whose_interface_is_down_says_that_no_frames_pass,
        offloads_that_are_turned_on_are_turned_off_again_and_a_new_mtu_is_logged,
        offloads_are_restored_after_a_gateway_that_was_killed,
        a_log_that_cannot_be_written_costs_its_lines_and_nothing_else,
        frames_bypass_a_gateway_that_fails_open_or_was_killed,
        interfaces_are_promiscuous_while_frames_bypass_the_gateway;
    proxies: a_change_by_curl_and_through_nginx_is_as_documented;
    refusals: a_reload_that_is_refused_says_why_and_changes_nothing,
        a_reload_by_another_file_is_refused,
        a_socket_that_one_left_behind_is_taken_over;
    reloads: by_the_socket_they_lose_and_reorder_nothing_of_a_standing_queue,
        packets_dropped_by_a_smaller_queue_are_reported;
    rules: a_rule_follows_a_flood_and_ends_after_it,
        rules_are_withdrawn_when_the_gateway_stops,
        without_reports_there_are_no_rules,
        nftables_of_the_sender_drops_what_the_gateway_would,
        tc_reads_the_rules;
    service: a_service_manager_is_kept_informed_and_the_watchdog_fed_only_while_it_works;
    top: a_terminal_shows_the_directions_the_flows_and_the_customers;
    tutorial: it_is_followed_in_namespaces_of_its_own;
};
/// Cases that `--ignored` runs.
const MEASUREMENTS: &[Case] = cases! {
    viewers: five_viewers_cost_less_than_2_percent_of_forwarding;
};

pub fn main() -> ExitCode {
    processes::main_with_ignored(CASES, MEASUREMENTS)
}
