// The queue disciplines of Apportion for C, and its simulator for transport stacks in C. Made by cbindgen: edit
// crates/capi/src, not this file.
//
// Define APPORTION_SIMULATOR if the library was built with the feature `simulator`.
// docs/c-interface.md explains it and has examples.

#ifndef APPORTION_H
#define APPORTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The reason for a drop.
typedef enum apportion_drop_reason {
    // An early congestion signal, random or timed, before the buffer was full.
    APPORTION_DROP_REASON_EARLY,
    // The queue exceeded a threshold above which every packet is dropped.
    APPORTION_DROP_REASON_FORCED,
    // The buffer was full when this packet arrived.
    APPORTION_DROP_REASON_OVERFLOW,
    // A rule about the flow or class, independent of the state of the buffer.
    APPORTION_DROP_REASON_POLICY,
    // Removed from the buffer to make room for another packet.
    APPORTION_DROP_REASON_PUSH_OUT,
} apportion_drop_reason;

// The result of a call: zero, a positive answer, or a negative error. A call that fails changes nothing.
typedef enum apportion_status {
    // The call succeeded.
    APPORTION_STATUS_OK = 0,
    // There is no packet to send now, or no time to wait for.
    APPORTION_STATUS_NONE = 1,
    // The discipline does not use this setting.
    APPORTION_STATUS_UNUSED = 2,
    // A pointer is null.
    APPORTION_STATUS_ERROR_NULL = -1,
    // The call came from a callback of the same queue.
    APPORTION_STATUS_ERROR_BUSY = -2,
    // `now` is earlier than in a previous call, or than the start.
    APPORTION_STATUS_ERROR_TIME = -3,
    // The size of the packet is zero or above 65535.
    APPORTION_STATUS_ERROR_SIZE = -4,
    // A code of the packet or of the call is not in its enumeration, or the label has more than 17 bits.
    APPORTION_STATUS_ERROR_CODE = -5,
    // A weight is not positive or not finite, or a limit is zero.
    APPORTION_STATUS_ERROR_VALUE = -6,
    // A bug in the library: this queue panicked, now or in an earlier call, and can only be destroyed; or a
    // simulation panicked.
    APPORTION_STATUS_ERROR_PANICKED = -7,
    // The scenario, a transport stack or the run was refused, or failed; the text says why.
    APPORTION_STATUS_ERROR_SIMULATION = -8,
} apportion_status;

// The ECN field of an IP header (RFC 3168 section 5), with the values it has there.
typedef enum apportion_ecn {
    // Not ECN-capable: the packet is dropped and never marked.
    APPORTION_ECN_NOT_ECT = 0,
    // ECN-capable, codepoint ECT(1).
    APPORTION_ECN_ECT1 = 1,
    // ECN-capable, codepoint ECT(0).
    APPORTION_ECN_ECT0 = 2,
    // Congestion experienced.
    APPORTION_ECN_CE = 3,
} apportion_ecn;

// The protocol that a packet carries.
typedef enum apportion_protocol {
    // UDP and any other data traffic without congestion control.
    APPORTION_PROTOCOL_UDP = 0,
    // TCP.
    APPORTION_PROTOCOL_TCP = 1,
    // Routing protocol messages.
    APPORTION_PROTOCOL_CONTROL = 2,
} apportion_protocol;

// The drop precedence that a marker gave a packet (RFC 2697 section 1).
typedef enum apportion_colour {
    // No marker has seen the packet. Treated as out of profile.
    APPORTION_COLOUR_UNMARKED = 0,
    // In profile.
    APPORTION_COLOUR_GREEN = 1,
    // Above the committed rate, within the peak rate.
    APPORTION_COLOUR_YELLOW = 2,
    // Out of profile.
    APPORTION_COLOUR_RED = 3,
} apportion_colour;

// The kind of a packet's label. A packet has at most one label.
typedef enum apportion_label_kind {
    // No label.
    APPORTION_LABEL_KIND_NONE = 0,
    // Tickets of the packet.
    APPORTION_LABEL_KIND_TICKETS = 1,
    // Tickets on an ACK, for the data that it acknowledges.
    APPORTION_LABEL_KIND_ACK_TICKETS = 2,
    // The rate of the flow in bits per second, for a weight of 1.
    APPORTION_LABEL_KIND_RATE = 3,
    // The value of the packet.
    APPORTION_LABEL_KIND_VALUE = 4,
} apportion_label_kind;

// A queue discipline for one link.
typedef struct apportion_queue apportion_queue;

// The fields of a packet that a discipline reads, and a handle by which the caller recognizes the packet.
//
// A packet with all fields zero except `size` is an ordinary datagram of flow 0.
typedef struct apportion_packet {
    // The caller's handle: a number or a pointer. The queue returns it unchanged.
    uint64_t handle;
    // The flow, numbered by the caller. Disciplines keep tables up to the largest number seen, and
    // distinguish at most 2^20 flows: numbers should be dense and small.
    uint32_t flow;
    // Size on the wire in bytes, including headers: 1 to 65535.
    uint32_t size;
    // The label, as encoded by `apportion_label_code`; ignored if `label_kind` is
    // `APPORTION_LABEL_KIND_NONE`.
    uint32_t label;
    // The ECN codepoint, an `apportion_ecn`. A queue that marks the packet sets it to `APPORTION_ECN_CE`.
    uint8_t ecn;
    // The protocol, an `apportion_protocol`.
    uint8_t protocol;
    // The drop precedence, an `apportion_colour`.
    uint8_t colour;
    // The kind of the label, an `apportion_label_kind`.
    uint8_t label_kind;
} apportion_packet;

// A report that a flow needs a rate that the link cannot give it.
typedef struct apportion_overload {
    // The flow.
    uint32_t flow;
    // Whether an overload that was reported before has ended.
    bool is_over;
    // The rate that the flow seems to need, in bits per second.
    uint64_t wanted;
    // The rate that the flow gets, in bits per second.
    uint64_t granted;
} apportion_overload;

// Functions of the caller that are told what a queue does to packets. Each may be null. They must return
// normally (no exception, no `longjmp`), and their calls to the same queue are refused.
typedef struct apportion_events {
    // The first argument of each function.
    void *context;
    // The packet was dropped, and the queue no longer knows it. It may be the packet that the current call
    // enqueues, or another one.
    void (*dropped)(void *context,
                    uint64_t now,
                    const struct apportion_packet *packet,
                    enum apportion_drop_reason reason);
    // The packet was marked "congestion experienced" and stays in the queue or is sent.
    void (*marked)(void *context, uint64_t now, const struct apportion_packet *packet);
    // The link cannot carry the rate that a flow needs, or can again (RAMP).
    void (*overload)(void *context, uint64_t now, const struct apportion_overload *overload);
} apportion_events;

// The configuration of a queue and its environment. All fields may be zero except `queue` and `link_rate`.
typedef struct apportion_config {
    // The discipline, as in a scenario's `queue` of a link: a name such as `fq_codel`, or a table such as
    // `{ kind = "drr", limit = "110p" }`. UTF-8.
    const char *queue;
    // The rate of the link, in bits per second; above zero.
    uint64_t link_rate;
    // Seed of the discipline's random decisions.
    uint64_t seed;
    // Name of the discipline's random stream: queues with the same seed and different names make independent
    // random decisions. UTF-8. Null: `queue`. The simulator names the stream of link `l` `link.l.queue`.
    const char *name;
    // The present time of the caller's clock, in nanoseconds. Disciplines that act by the clock count from
    // this time.
    uint64_t start;
    // The weights of customers 1, 2 and so on, for disciplines that divide the link among customers.
    // Customer 0 has weight 1 and owns all flows that are not assigned to another customer. Null if there
    // are no others.
    const double *customer_weights;
    // The length of `customer_weights`.
    size_t customers;
    // The functions that are told of drops, marks and overload.
    struct apportion_events events;
} apportion_config;

// The backlog of a queue.
typedef struct apportion_backlog {
    // Number of packets, including those that are held back.
    uint64_t packets;
    // Bytes of these packets on the wire.
    uint64_t bytes;
} apportion_backlog;

#if defined(APPORTION_SIMULATOR)
// An end of a connection.
typedef struct apportion_stack_end {
    // Seed of this end's random decisions.
    uint64_t seed;
    // The number of the connection in its run. Both ends have the same.
    uint32_t number;
    // Whether it is the source of the data.
    bool is_source;
} apportion_stack_end;
#endif

#if defined(APPORTION_SIMULATOR)
// The totals of an end since the start of the connection, which never fall and are at most 2^53.
typedef struct apportion_stack_progress {
    // Bytes of the application that arrived in order at this end.
    uint64_t delivered;
    // Packets with data that this end presumed lost.
    uint64_t lost;
    // Expiries of the retransmission timer; in QUIC, of the probe timer.
    uint64_t timeouts;
    // Signals of congestion, loss or mark, to which the window responded.
    uint64_t reductions;
    // The congestion window in bytes; 0 if unknown. It may fall.
    uint64_t window;
    // The smoothed round-trip time in nanoseconds; 0 if unknown. It may fall.
    uint64_t srtt;
    // Non-zero if the source has ended: its supply is finished and acknowledged. The simulator then closes
    // both ends.
    uint8_t is_done;
    // Why the connection has failed: aborted, reset, timed out or closed for an error, by this end or the other
    // one, before the supply was acknowledged. Null: it has not. UTF-8; it lives until the next call for this
    // end. The results name the flow with the first reason of a connection.
    const char *failure;
} apportion_stack_progress;
#endif

#if defined(APPORTION_SIMULATOR)
// A transport stack of the caller that reads no clock and opens no socket (*sans-I/O*), for
// `apportion_simulate`.
//
// A connection has two ends, the source of the data and the sink, and both are of this stack. The functions
// must return normally (no exception, no `longjmp`). Times are in nanoseconds since the start of the run and
// never go back. A stack that reads a clock, or draws from an entropy source other than
// `apportion_stack_end.seed`, makes runs that cannot be repeated.
//
// After calls of `start`, `supply` and `finish`, and after each of `receive` or `on_timer`, the simulator
// calls `transmit` until it returns 0, at most 1024 times, then `next_timer` and `progress`.
//
// A value that is not allowed ends the run with a message. After that only `close` is called.
typedef struct apportion_stack {
    // The name, which is the value of `transport` in the scenario. UTF-8.
    const char *name;
    // The first argument of `open`.
    void *context;
    // The largest packet on the wire in bytes, with the headers of IP and UDP: at most 65535.
    uint32_t packet;
    // Bytes of the application in such a packet, for estimates and for units of results.
    uint32_t payload;
    // A usual acknowledgement on the wire in bytes, for estimates.
    uint32_t ack;
    // Memory of a connection in bytes, both ends together, for estimates.
    uint32_t memory;
    // The protocol of its packets, `APPORTION_PROTOCOL_UDP` or `APPORTION_PROTOCOL_TCP`. With UDP a datagram
    // is the payload of UDP, and the simulator adds 28 bytes of headers; with TCP it is a whole IPv4 packet.
    uint8_t protocol;
    // Non-zero if the stack sets the ECN field.
    uint8_t sets_ecn;
    // Non-zero if it counts `apportion_stack_progress.lost`. The columns of what it does not count are empty.
    uint8_t counts_lost;
    // Non-zero if it counts `apportion_stack_progress.timeouts`.
    uint8_t counts_timeouts;
    // Non-zero if it counts `apportion_stack_progress.reductions`.
    uint8_t counts_reductions;
    // Creates an end of a connection, which is the first argument of the other functions; not null. `end`
    // lives until the function returns.
    void *(*open)(void *context, const struct apportion_stack_end *end);
    // Destroys an end; called once. May be null.
    void (*close)(void *endpoint);
    // The connection starts: both ends may send. May be null.
    void (*start)(void *endpoint, uint64_t now);
    // The application of the source supplies this number of further bytes; `UINT64_MAX`: data without end.
    void (*supply)(void *endpoint, uint64_t now, uint64_t bytes);
    // The application of the source supplies nothing more: the connection ends when everything has been
    // acknowledged. May be null.
    void (*finish)(void *endpoint, uint64_t now);
    // A datagram of the other end arrives, with this ECN field, an `apportion_ecn`. `bytes` live until the
    // function returns.
    void (*receive)(void *endpoint, uint64_t now, uint8_t ecn, const uint8_t *bytes, size_t length);
    // Writes the next datagram into `buffer` and returns its length; 0: there is none now. `capacity` is
    // `packet` without the headers that the simulator adds. `ecn` is `APPORTION_ECN_NOT_ECT` unless the
    // function writes another `apportion_ecn`.
    size_t (*transmit)(void *endpoint, uint64_t now, uint8_t *buffer, size_t capacity, uint8_t *ecn);
    // Returns the time of the next call of `on_timer`; `UINT64_MAX`: none. A time that has passed counts as
    // 1 µs from now.
    uint64_t (*next_timer)(void *endpoint);
    // The time of the timer has come.
    void (*on_timer)(void *endpoint, uint64_t now);
    // Writes the totals so far into `progress`, whose fields are zero before.
    void (*progress)(void *endpoint, struct apportion_stack_progress *progress);
} apportion_stack;
#endif

#if defined(APPORTION_SIMULATOR)
// A scenario to simulate. All fields may be zero except `scenario`.
typedef struct apportion_simulation {
    // The scenario in TOML, as in a file. Files that it refers to are relative to the current folder. UTF-8.
    const char *scenario;
    // The transport stacks, each under its own name. Null if there are none.
    const struct apportion_stack *stacks;
    // The length of `stacks`.
    size_t stack_count;
    // The number of replications of each point, each with its own seed; 0 counts as 1. With more than one,
    // each has a perturbed copy, which shows where results depend on phases.
    uint64_t seeds;
    // The number of concurrent replications; 0 counts as 1. With 1, all functions of the stacks are called on
    // the thread that called `apportion_simulate`. With more, functions for different ends may be called at
    // the same time from different threads, and `open` too; those for the ends of one connection never are.
    size_t jobs;
    // The folder in which the results get their own folder, `1` for the first run and `2` for the next, with
    // tables, a report, and captures of links with `pcap = true`. Null: nothing is written. UTF-8.
    const char *folder;
    // Non-zero: run even if the estimate exceeds a day or 2 GB.
    uint8_t force;
} apportion_simulation;
#endif

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the code of the 17-bit label nearest to `value`: tickets, or bits per second. Returns 0 if `value`
// is negative or not a number.
uint32_t apportion_label_code(double value);

// Returns the value of the label with this code: tickets, or bits per second. Bits above the 17th are
// ignored.
double apportion_label_value(uint32_t code);

// Creates an empty queue from `config`.
//
// Returns null if `config` is invalid, and writes the reason into `error`: one line of UTF-8, cut to
// `error_size` bytes including the final zero. `error` may be null. The queue keeps no pointer of `config`
// except `events.context`.
//
// # Safety
// `config` is null or points to an `apportion_config` whose strings end with a zero and whose
// `customer_weights` has `customers` numbers; `error` is null or has room for `error_size` bytes.
struct apportion_queue *apportion_queue_new(const struct apportion_config *config,
                                            char *error,
                                            size_t error_size);

// Destroys `queue` and forgets the packets in it: drain the queue first if their handles own something. Does
// nothing if `queue` is null.
//
// # Safety
// `queue` is null, or comes from `apportion_queue_new` and is not destroyed; no other thread is in a call
// for it.
enum apportion_status apportion_queue_destroy(struct apportion_queue *queue);

// Enqueues `packet` at `now`. The queue may drop this packet or others, and reports drops to `dropped`
// before the function returns: `APPORTION_STATUS_OK` means that the queue took the packet over, not that it
// holds it.
//
// # Safety
// As for `apportion_queue_destroy`; `packet` is null or points to a packet.
enum apportion_status apportion_queue_enqueue(struct apportion_queue *queue,
                                              uint64_t now,
                                              const struct apportion_packet *packet);

// Dequeues the next packet to transmit at `now` into `packet`. The queue may drop packets first.
//
// Returns `APPORTION_STATUS_NONE` if there is no packet now: the queue is empty, or it holds packets back
// until the time that `apportion_queue_next_wakeup` returns. After the last transmission, a link should call
// this function once more: disciplines such as RED detect by it that the link is idle.
//
// # Safety
// As for `apportion_queue_destroy`; `packet` is null or has room for a packet.
enum apportion_status apportion_queue_dequeue(struct apportion_queue *queue,
                                              uint64_t now,
                                              struct apportion_packet *packet);

// Dequeues the next packet into `packet` without regard to policy and shaper, to empty a queue that is to be
// destroyed or replaced. Returns `APPORTION_STATUS_NONE` if the queue is empty.
//
// # Safety
// As for `apportion_queue_dequeue`.
enum apportion_status apportion_queue_drain(struct apportion_queue *queue,
                                            uint64_t now,
                                            struct apportion_packet *packet);

// Writes into `at` the earliest time at which a dequeue that found no packet can succeed without a further
// enqueue. Returns `APPORTION_STATUS_NONE` unless the queue holds packets back.
//
// # Safety
// As for `apportion_queue_destroy`; `at` is null or has room for a number.
enum apportion_status apportion_queue_next_wakeup(const struct apportion_queue *queue, uint64_t *at);

// Writes the backlog of the queue into `backlog`.
//
// # Safety
// As for `apportion_queue_destroy`; `backlog` is null or has room for an `apportion_backlog`.
enum apportion_status apportion_queue_backlog(const struct apportion_queue *queue,
                                              struct apportion_backlog *backlog);

// Calls `show` with each statistic that the discipline keeps, under the name that it has in results of the
// simulator. A name is a string that lives until `show` returns.
//
// # Safety
// As for `apportion_queue_destroy`; `show` may be called with `context` and returns normally.
enum apportion_status apportion_queue_statistics(const struct apportion_queue *queue,
                                                 void *context,
                                                 void (*show)(void *context, const char *name, double value));

// Calls `show` with each statistic that the discipline keeps per flow, as `apportion_queue_statistics` does.
//
// # Safety
// As for `apportion_queue_statistics`.
enum apportion_status apportion_queue_flow_statistics(const struct apportion_queue *queue,
                                                      void *context,
                                                      void (*show)(void *context,
                                                                   uint32_t flow,
                                                                   const char *name,
                                                                   double value));

// Sets the rate of the link from `now` on, in bits per second. Zero: the link is down at present.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_link_rate(struct apportion_queue *queue,
                                                    uint64_t now,
                                                    uint64_t rate);

// Sets the rate of the shaper from `now` on, in bits per second. Unused without a shaper.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_shaper_rate(struct apportion_queue *queue,
                                                      uint64_t now,
                                                      uint64_t rate);

// Sets the limit of the buffer, in packets. A buffer above the new limit drains, or later arrivals push
// packets out.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_limit_packets(struct apportion_queue *queue, uint64_t packets);

// Sets the limit of the buffer, in bytes. A buffer above the new limit drains, or later arrivals push
// packets out.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_limit_bytes(struct apportion_queue *queue, uint64_t bytes);

// Sets the weight of a flow from its next turn on. Default: 1. Unused by disciplines without weights.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_weight(struct apportion_queue *queue, uint32_t flow, double weight);

// Sets the guaranteed rate of a flow from its next packet on, in bits per second, and its round-trip time
// without queueing, in nanoseconds. Default: no guarantee. Unused by disciplines without guarantees.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_guarantee(struct apportion_queue *queue,
                                                    uint32_t flow,
                                                    uint64_t rate,
                                                    uint64_t rtt);

// Sets the round-trip time of a flow without queueing, in nanoseconds. Default: zero, unknown. Unused by
// disciplines that do not use round-trip times.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_rtt(struct apportion_queue *queue, uint32_t flow, uint64_t rtt);

// Sets the source and destination hosts of a flow from its next packet on. Sources and destinations are
// numbered separately, with small numbers. Default: 0 at both ends. Unused by queues without `isolate`.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_hosts(struct apportion_queue *queue,
                                                uint32_t flow,
                                                uint32_t source,
                                                uint32_t destination);

// Sets the customer of a flow from its next packet on. Default: 0. Unused by disciplines that do not divide
// the link among customers.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_customer(struct apportion_queue *queue,
                                                   uint32_t flow,
                                                   uint32_t customer);

// Sets the class of a flow from `now` on, an `apportion_flow_class`. Default: greedy. Unused by disciplines
// without classes. Packets that the queue held back may become ready: dequeue again afterwards.
//
// # Safety
// As for `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_class(struct apportion_queue *queue,
                                                uint64_t now,
                                                uint32_t flow,
                                                uint32_t class_);

#if defined(APPORTION_SIMULATOR)
// Simulates a scenario whose flows may use the caller's transport stacks: `transport = "NAME"`.
//
// Writes a string into `text`, which `apportion_text_free` frees and the caller may change before. With
// `APPORTION_STATUS_OK` it has the results, the JSON lines of `apportion run --json`; they depend on
// scenario, seeds and stacks only. With `APPORTION_STATUS_ERROR_SIMULATION` it has the reason in English: a
// line for each problem of the scenario, or what a stack returned that is not allowed. The folder gets
// nothing then. With other errors it may be null. Nothing of `simulation` is used after the function
// returns, except that names of stacks are kept.
//
// # Safety
// `simulation` is null or points to an `apportion_simulation` whose strings end with a zero and whose `stacks`
// has `stack_count` stacks, with functions of these types; `text` is null or has room for a pointer.
enum apportion_status apportion_simulate(const struct apportion_simulation *simulation,
                                         char **text);
#endif

#if defined(APPORTION_SIMULATOR)
// Frees a text of `apportion_simulate`. Does nothing if `text` is null.
//
// # Safety
// `text` is null, or comes from `apportion_simulate` and is not freed.
void apportion_text_free(char *text);
#endif

// Returns the meaning of `status` as a text in English. The text is static: do not free it.
const char *apportion_status_text(int status);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* APPORTION_H */
