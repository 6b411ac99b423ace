//! Namespaces, devices and commands on the kernel of this machine, as an ordinary user or as root.
//! A program of its own: each test is a process that enters namespaces.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "parts of tests talk by it")]

mod commands;
mod common;
mod devices;
mod spaces;

use std::process::ExitCode;

use apportion_testing::processes::{self, Case, cases};

const CASES: &[Case] = cases! {
    commands: a_command_is_ended_at_its_limit_with_its_whole_group,
        a_dropped_command_is_killed,
        a_signal_is_forwarded,
        a_command_dies_with_the_process_that_started_it,
        a_child_dies_with_the_thread_that_started_it,
        status_and_signal_are_distinguished,
        a_command_runs_in_its_namespace,
        a_program_that_is_not_there_is_named;
    devices: datagrams_and_streams_cross_a_pair,
        offloads_read_back_as_off,
        a_super_packet_is_cut_as_far_as_there_are_buffers,
        segments_cross_as_super_packets_and_are_the_same_again,
        frames_come_in_order_by_slots_and_by_the_queue,
        a_ring_that_is_full_counts_what_it_misses,
        frames_leave_in_order_by_slots_and_by_the_socket,
        what_slots_do_not_send_is_counted_and_not_sent_later,
        a_ring_whose_interface_goes_down_is_not_readable_for_ever,
        a_ring_goes_on_after_a_frame_that_it_cannot_describe,
        without_memory_for_a_ring_frames_come_by_the_queue,
        what_is_longer_than_the_mtu_is_not_merged_either,
        no_frame_is_larger_than_the_mtu,
        checksums_are_complete_once_they_are_not_offloaded,
        equal_hardware_addresses_need_no_arp_and_nothing_else_is_sent,
        every_address_is_accepted,
        a_device_runs_once_both_ends_are_up,
        refusals_come_with_the_kernels_words;
    spaces: a_panic_leaves_the_thread_at_home,
        a_thread_is_spawned_inside,
        settings_belong_to_one_namespace,
        user_namespaces_nest,
        a_limit_of_zero_is_named,
        a_caller_keeps_their_user,
        a_file_lies_over_another,
        nothing_is_left_of_a_process_that_was_killed;
};

/// Parts of tests that run as processes of their own, selected by the same variable; not tests.
const PARTS: &[Case] = &[("hold_a_pair", spaces::hold_a_pair), ("hold_a_command", commands::hold_a_command)];

fn main() -> ExitCode {
    processes::main(CASES, PARTS)
}
