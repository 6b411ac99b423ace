//! Gateways between hosts with kernels of their own: forwarding, shares, and reloads under load. A program of
//! its own: each test is a process that enters namespaces, and several measure in real time at once.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod autorate;
mod colours;
mod common;
mod labels;
mod line;
mod merging;
mod offloads;
mod passing;
mod plans;
mod reloads;
mod reports;
mod round_trips;
mod tickets;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

/// The longest tests come first.
const CASES: &[Case] = cases! {
    tickets: connections_share_a_core_by_their_tickets,
        connections_share_evenly_where_tickets_do_not_count,
        connections_share_a_core_as_their_sinks_decide,
        connections_share_evenly_where_no_sink_decides,
        what_flows_are_issued_comes_out_behind_two_gateways,
        who_is_issued_nothing_cannot_label_its_own_packets,
        the_last_gateway_takes_them_off,
        an_edge_trades_them_for_what_the_core_issues,
        a_core_trades_them_once_more,
        what_a_sink_is_issued_is_on_its_acknowledgements,
        acknowledgements_bring_back_what_a_link_is_issued;
    colours: what_is_within_a_profile_passes,
        yellow_and_red_are_both_out_of_profile_to_rio,
        without_a_marker_or_a_queue_that_looks_at_colours_both_have_the_same;
    passing: what_is_no_ip_passes_and_so_do_tags_and_both_versions_of_ip,
        what_is_malformed_is_counted_and_dropped,
        whatever_comes_is_forwarded_or_counted,
        an_interface_goes_down_and_comes_back;
    offloads: tcp_in_ipv4_fills_the_link,
        tcp_in_ipv6_fills_the_link,
        segments_of_udp_arrive_as_datagrams_and_so_do_fragments;
    labels: an_edge_and_a_core_divide_by_weights,
        the_versions_of_ip_change_places,
        a_core_divides_among_customers_by_labels,
        who_labels_its_own_packets_gains_nothing_behind_an_edge,
        who_labels_its_own_packets_gains_all_where_it_is_believed,
        a_packet_without_room_has_no_label_and_is_dropped_by_the_core,
        a_label_from_outside_is_not_believed;
    merging: segments_leave_as_super_packets_and_arrive_as_they_were,
        they_leave_one_by_one_where_the_device_does_not_segment,
        two_connections_have_their_shares_though_their_segments_are_merged,
        labelled_packets_are_not_merged;
    reloads: no_packet_is_lost_or_overtaken_by_a_reload,
        what_waits_survives_reloads;
    plans: customers_have_what_they_are_assured_and_are_counted,
        a_new_customer_takes_no_class_of_another,
        a_thousand_customers_are_reloaded_at_once;
    autorate: an_upload_over_a_link_that_slows_down_waits_little_and_fills_it,
        so_does_a_download_whose_queue_is_before_the_gateway,
        a_fixed_rate_does_one_of_the_two;
    reports: what_the_second_gateway_loses_is_discarded_at_the_first,
        it_is_so_in_ipv6,
        a_message_of_a_host_of_this_machine_is_not_damaged,
        reports_of_a_gateway_without_the_key_are_refused;
    round_trips: that_of_an_upload_is_what_its_path_has_without_the_queue;
};

fn main() -> ExitCode {
    processes::main(CASES, &[])
}
