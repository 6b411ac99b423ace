// The queue disciplines of Apportion for C. Made by cbindgen: edit crates/capi/src, not this file.
//
// docs/c-interface.md explains it and has an example.

#ifndef APPORTION_H
#define APPORTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Why a packet was dropped.
typedef enum apportion_drop_reason {
    // A random or timed signal of congestion, before the buffer was full.
    APPORTION_DROP_REASON_EARLY,
    // A threshold that admits nothing above it.
    APPORTION_DROP_REASON_FORCED,
    // The buffer was full and this was the arriving packet.
    APPORTION_DROP_REASON_OVERFLOW,
    // A rule about this flow or class, whatever the state of the buffer.
    APPORTION_DROP_REASON_POLICY,
    // Removed from the buffer to make room for another packet.
    APPORTION_DROP_REASON_PUSH_OUT,
} apportion_drop_reason;

// What a call returns: zero, a positive answer, or a negative error. After an error nothing has changed.
typedef enum apportion_status {
    // Done.
    APPORTION_STATUS_OK = 0,
    // There is no packet to send now, or no time to wait for.
    APPORTION_STATUS_NONE = 1,
    // The discipline has no use for this setting.
    APPORTION_STATUS_UNUSED = 2,
    // A pointer is null.
    APPORTION_STATUS_ERROR_NULL = -1,
    // The call came from a callback of the same queue.
    APPORTION_STATUS_ERROR_BUSY = -2,
    // `now` is earlier than in a call before, or than the start.
    APPORTION_STATUS_ERROR_TIME = -3,
    // The size of the packet is zero or above 65535.
    APPORTION_STATUS_ERROR_SIZE = -4,
    // A code of the packet or of the call is not one of its enumeration, or the label has more than 17 bits.
    APPORTION_STATUS_ERROR_CODE = -5,
    // A weight is not above zero or not finite, or a limit is zero.
    APPORTION_STATUS_ERROR_VALUE = -6,
    // A defect of the library: this queue panicked, now or in an earlier call. It can only be destroyed.
    APPORTION_STATUS_ERROR_PANICKED = -7,
} apportion_status;

// The ECN field of an IP header (RFC 3168 section 5), as it is there.
typedef enum apportion_ecn {
    // Not ECN-capable: such packets are dropped and never marked.
    APPORTION_ECN_NOT_ECT = 0,
    // ECN-capable, codepoint ECT(1).
    APPORTION_ECN_ECT1 = 1,
    // ECN-capable, codepoint ECT(0).
    APPORTION_ECN_ECT0 = 2,
    // Congestion experienced.
    APPORTION_ECN_CE = 3,
} apportion_ecn;

// What a packet says it carries.
typedef enum apportion_protocol {
    // UDP and whatever else carries data without regard for congestion.
    APPORTION_PROTOCOL_UDP = 0,
    // TCP.
    APPORTION_PROTOCOL_TCP = 1,
    // Messages between routers.
    APPORTION_PROTOCOL_CONTROL = 2,
} apportion_protocol;

// The drop precedence that a marker gave a packet (RFC 2697 section 1).
typedef enum apportion_colour {
    // No marker has seen it. Treated as out of profile.
    APPORTION_COLOUR_UNMARKED = 0,
    // In profile.
    APPORTION_COLOUR_GREEN = 1,
    // Above the committed rate, within the peak rate.
    APPORTION_COLOUR_YELLOW = 2,
    // Out of profile.
    APPORTION_COLOUR_RED = 3,
} apportion_colour;

// What the label of a packet says. A packet has at most one.
typedef enum apportion_label_kind {
    // There is none.
    APPORTION_LABEL_KIND_NONE = 0,
    // Tickets of the packet.
    APPORTION_LABEL_KIND_TICKETS = 1,
    // Tickets on an acknowledgement, about the data that it acknowledges.
    APPORTION_LABEL_KIND_ACK_TICKETS = 2,
    // The rate of its flow in bits per second, for a weight of 1.
    APPORTION_LABEL_KIND_RATE = 3,
} apportion_label_kind;

// A queue discipline in front of one link.
typedef struct apportion_queue apportion_queue;

// What a discipline knows of a packet, and a handle by which the caller knows it again.
//
// All zero but `size` is an ordinary datagram of flow 0.
typedef struct apportion_packet {
    // The caller's: a number or a pointer. It comes back unchanged.
    uint64_t handle;
    // The flow, numbered by the caller. Disciplines keep tables up to the largest number seen, and apart at
    // most 2^20 flows: numbers should be dense and small.
    uint32_t flow;
    // Bytes on the wire, headers included: 1 to 65535.
    uint32_t size;
    // The label, as `apportion_label_code` makes it; without meaning if `label_kind` is
    // `APPORTION_LABEL_KIND_NONE`.
    uint32_t label;
    // An `apportion_ecn`. A queue that marks the packet sets it to `APPORTION_ECN_CE`.
    uint8_t ecn;
    // An `apportion_protocol`.
    uint8_t protocol;
    // An `apportion_colour`.
    uint8_t colour;
    // An `apportion_label_kind`.
    uint8_t label_kind;
} apportion_packet;

// A flow needs a rate that the link cannot give it.
typedef struct apportion_overload {
    // The flow.
    uint32_t flow;
    // Whether an overload reported before has ended.
    bool is_over;
    // What the flow seems to need, in bits per second.
    uint64_t wanted;
    // What it has, in bits per second.
    uint64_t granted;
} apportion_overload;

// Functions of the caller that learn what a queue does to packets. Each may be null. They must return
// normally (no exception, no `longjmp`), and calls for the same queue from within are refused.
typedef struct apportion_events {
    // Handed to each of them.
    void *context;
    // The packet was dropped; the queue has forgotten it. It may be one that the present call brought, or
    // another one.
    void (*dropped)(void *context,
                    uint64_t now,
                    const struct apportion_packet *packet,
                    enum apportion_drop_reason reason);
    // The packet was marked "congestion experienced" and goes on.
    void (*marked)(void *context, uint64_t now, const struct apportion_packet *packet);
    // The link cannot carry what a flow needs, or can again (RAMP).
    void (*overload)(void *context, uint64_t now, const struct apportion_overload *overload);
} apportion_events;

// What a queue is and where it stands. All zero but `queue` and `link_rate` is a good start.
typedef struct apportion_config {
    // The discipline, as a scenario has it for the queue of a link: a name such as `fq_codel`, or a table
    // such as `{ kind = "drr", limit = "110p" }`. UTF-8.
    const char *queue;
    // The rate of the link behind it, in bits per second; above zero.
    uint64_t link_rate;
    // Seed of the discipline's random decisions.
    uint64_t seed;
    // Name of the discipline's random stream: queues with one seed and different names decide independently.
    // UTF-8. Null: `queue`. The simulator calls that of link `l` `link.l.queue`.
    const char *name;
    // What the caller's clock shows now, in nanoseconds. Disciplines that act by the clock count from here.
    uint64_t start;
    // The weights of customers 1, 2 and so on, for disciplines that divide among customers. Customer 0 has
    // all flows that are given to no other, and weight 1. Null if there are none.
    const double *customer_weights;
    // How many there are.
    size_t customers;
    // Where to report what happens to packets.
    struct apportion_events events;
} apportion_config;

// What a queue holds.
typedef struct apportion_backlog {
    // Packets, with those that are held back.
    uint64_t packets;
    // Their bytes on the wire.
    uint64_t bytes;
} apportion_backlog;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// What `status` means, as text in English, which is never freed.
const char *apportion_status_text(int status);

// The code of the 17-bit label nearest to `value`: tickets, or bits per second. 0 for what is negative or
// not a number.
uint32_t apportion_label_code(double value);

// What the label with this code says: tickets, or bits per second. Bits above the 17th are ignored.
double apportion_label_value(uint32_t code);

// Creates the queue that `config` describes, empty.
//
// Returns null if that is wrong, and writes why into `error`: one line of UTF-8, cut to `error_size` bytes
// with the final zero. `error` may be null. Nothing that `config` points to is kept, but `events.context`.
//
// # Safety
// `config` is null or points to an `apportion_config` whose strings end with a zero and whose `customer_weights` has
// `customers` numbers; `error` is null or has room for `error_size` bytes.
struct apportion_queue *apportion_queue_new(const struct apportion_config *config,
                                            char *error,
                                            size_t error_size);

// Destroys `queue`. The packets in it are forgotten: drain it first if their handles own something.
// Nothing happens if it is null.
//
// # Safety
// `queue` is null, or from `apportion_queue_new` and not destroyed; no other thread is in a call for it.
enum apportion_status apportion_queue_destroy(struct apportion_queue *queue);

// Gives `packet` to the queue at `now`. The queue may drop it, or others, and reports that to `dropped`
// before it returns: `APPORTION_STATUS_OK` says that the queue took it over, not that it holds it.
//
// # Safety
// As of `apportion_queue_destroy`; `packet` is null or points to a packet.
enum apportion_status apportion_queue_enqueue(struct apportion_queue *queue,
                                              uint64_t now,
                                              const struct apportion_packet *packet);

// Writes the next packet to transmit at `now` into `packet`. It may drop some first.
//
// `APPORTION_STATUS_NONE` if there is none now: the queue is empty, or holds packets back, and then
// `apportion_queue_next_wakeup` says until when. A link that finishes a transmission should always ask once
// more, or disciplines such as RED do not see that it is idle.
//
// # Safety
// As of `apportion_queue_destroy`; `packet` is null or has room for a packet.
enum apportion_status apportion_queue_dequeue(struct apportion_queue *queue,
                                              uint64_t now,
                                              struct apportion_packet *packet);

// Writes the next packet into `packet`, whatever policy and shaper would say: to empty a queue that is to be
// destroyed or replaced. `APPORTION_STATUS_NONE` if there is none.
//
// # Safety
// As of `apportion_queue_dequeue`.
enum apportion_status apportion_queue_drain(struct apportion_queue *queue,
                                            uint64_t now,
                                            struct apportion_packet *packet);

// Writes into `at` the earliest time at which a `dequeue` that found nothing can succeed without a further
// `enqueue`. `APPORTION_STATUS_NONE` unless the queue holds packets back.
//
// # Safety
// As of `apportion_queue_destroy`; `at` is null or has room for a number.
enum apportion_status apportion_queue_next_wakeup(const struct apportion_queue *queue, uint64_t *at);

// Writes into `backlog` what the queue holds.
//
// # Safety
// As of `apportion_queue_destroy`; `backlog` is null or has room for one.
enum apportion_status apportion_queue_backlog(const struct apportion_queue *queue,
                                              struct apportion_backlog *backlog);

// Calls `show` with the numbers that the discipline keeps about itself, under the names that results of the
// simulator have for them. A name is a string that lives until `show` returns.
//
// # Safety
// As of `apportion_queue_destroy`; `show` may be called with `context` and returns normally.
enum apportion_status apportion_queue_statistics(const struct apportion_queue *queue,
                                                 void *context,
                                                 void (*show)(void *context, const char *name, double value));

// As `apportion_queue_statistics`, with the numbers that the discipline keeps about flows.
//
// # Safety
// As of `apportion_queue_statistics`.
enum apportion_status apportion_queue_flow_statistics(const struct apportion_queue *queue,
                                                      void *context,
                                                      void (*show)(void *context,
                                                                   uint32_t flow,
                                                                   const char *name,
                                                                   double value));

// The rate of the link from `now` on, in bits per second. Zero: the link sends nothing at present.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_link_rate(struct apportion_queue *queue,
                                                    uint64_t now,
                                                    uint64_t rate);

// The rate of the shaper from `now` on, in bits per second. Unused if there is none.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_shaper_rate(struct apportion_queue *queue,
                                                      uint64_t now,
                                                      uint64_t rate);

// The size of the buffer from now on, in packets. A fuller buffer drains, or is pushed out by the next
// arrivals.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_limit_packets(struct apportion_queue *queue, uint64_t packets);

// The size of the buffer from now on, in bytes. A fuller buffer drains, or is pushed out by the next
// arrivals.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_limit_bytes(struct apportion_queue *queue, uint64_t bytes);

// The weight of a flow from its next turn on. Default: 1. Unused by disciplines that know no weights.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_weight(struct apportion_queue *queue, uint32_t flow, double weight);

// What a flow is guaranteed from its next packet on, in bits per second, with its round-trip time without
// queueing in nanoseconds. Default: nothing. Unused by disciplines that know no guarantees.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_guarantee(struct apportion_queue *queue,
                                                    uint32_t flow,
                                                    uint64_t rate,
                                                    uint64_t rtt);

// The round-trip time of a flow without queueing, in nanoseconds. Default: zero, unknown. Unused by
// disciplines that do not go by it.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_rtt(struct apportion_queue *queue, uint32_t flow, uint64_t rtt);

// The hosts at the ends of a flow from its next packet on: small numbers, those of sources and of destinations apart.
// Default: 0 at both ends. Unused by queues without `isolate`.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_hosts(struct apportion_queue *queue,
                                                uint32_t flow,
                                                uint32_t source,
                                                uint32_t destination);

// The customer of a flow from its next packet on. Default: 0, that of all other flows. Unused by
// disciplines that do not divide among customers.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_customer(struct apportion_queue *queue,
                                                   uint32_t flow,
                                                   uint32_t customer);

// The class of a flow from `now` on, an `apportion_flow_class`. Default: greedy. Unused by disciplines that
// know no classes. What the queue held back may be ready after it: ask again.
//
// # Safety
// As of `apportion_queue_destroy`.
enum apportion_status apportion_queue_set_class(struct apportion_queue *queue,
                                                uint64_t now,
                                                uint32_t flow,
                                                uint32_t class_);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* APPORTION_H */
