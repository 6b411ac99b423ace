/* Common parts of the tc programs of queues: the virtual queue, counters, the length and time of a packet.
 *
 * A classifier does not see the queue of its device. It uses a virtual queue instead, served at the rate
 * of the link: `empty` is the time at which the virtual queue will have sent its backlog.
 */
#ifndef APPORTION_CORE_H
#define APPORTION_CORE_H

#include "wire.h"

struct counts {
    __u64 packets, bytes, early, overflow, unlabelled, no_ip, relabelled, meanwhile;
    /* Runs of the program on this processor that have begun and ended. */
    __u64 begun, ended;
};

/* Two sets of constants of type `of`, which user space changes while programs run
 * (src/program/constants.rs). A change is written to the inactive set and then activated by the word
 * `current`, so that a program sees the whole change or nothing of it. The previously active set is
 * overwritten only after all runs have ended that began before the switch and may still use it. */
#define TWO_OF(name, type)                                                                                             \
    struct name {                                                                                                      \
        __u64 current;                                                                                                 \
        type of[2];                                                                                                    \
    }

/* Begins a run and returns the index of the active set of constants. A processor records the beginning of
 * the run before it reads `current`, or some nanoseconds later: user space reads the record only after the
 * system call that changed `current`. */
INLINE __u32 begin(struct counts *c, const __u64 *current)
{
    *(volatile __u64 *)&c->begun += 1;
    return *(const volatile __u64 *)current & 1;
}

INLINE int end(struct counts *c, int verdict)
{
    *(volatile __u64 *)&c->ended += 1;
    return verdict;
}

/* For tests: if 1, cb[0..1] of a packet is the time, and cb[2] and cb[3] are the random numbers. */
const volatile __u32 test_hook = 0;

/* ns since the last packet after which this processor may have been preempted. Chosen: ten times the
 * processing time of a packet. */
#define STOPPED 20000
/* IEEE 802.1Q. */
#define VLAN_TAG 4
enum verdict { PASS, EARLY, OVERFLOW };

/* The time until the virtual queue is empty. A processor may be preempted after it read the clock while
 * others continue: time is at least that of the last packet, `last`, which is read after the queue. */
INLINE __u64 waiting(const __u64 *empty_at, const __u64 *last_at, __u64 now)
{
    __u64 empty = *(const volatile __u64 *)empty_at, last = *(const volatile __u64 *)last_at;
    now = now > last ? now : last;
    return empty > now ? empty - now : 0;
}

/* Adds bits to the virtual queue that arrived after the last packet counted: the link has been sending
 * since. */
INLINE void joined(__u64 *empty, __u64 last, __u64 per_bit, __u64 bits)
{
    *empty = (*empty > last ? *empty : last) + mul_32_saturating(per_bit, bits);
}

/* The label of the first of `segments` segments, chosen so that no segment gets more than `code`, nor 0. A
 * super-packet is segmented after this program, and the identification of IPv4, which carries the last 16
 * bits of a label, is then incremented: after 0xffff follows 0, which means that a guarantee covers the
 * packet. Codes are ordered like their values, except for at most 4 kb/s or one part in 4096; where the
 * identification would wrap, all segments stay below. If GRO merged packets with the same label, all
 * segments get the first label (SKB_GSO_TCP_FIXEDID), which no program sees. */
INLINE __u32 first_code(const struct wire *wire, __u32 code, __u32 segments)
{
    __u32 more = segments - 1;
    if (wire->version != 4 || !more)
        return code;
    if (more > 0xfffe)
        more = 0xfffe;
    __u32 first = code > more ? code - more : 1;
    return first <= 0xffff && first + more > 0xffff ? 0xffff - more : first;
}

/* The bytes that a packet is charged: for a super-packet the bytes of its segments on the wire (wire_len
 * includes the headers of each), and for each segment the overhead and the tag that the kernel keeps
 * beside the frame. */
INLINE __u64 charged(const struct __sk_buff *skb, __u64 overhead, __u64 segments)
{
    return skb->wire_len + segments * (overhead + (skb->vlan_present ? VLAN_TAG : 0));
}

/* The properties of a packet on which a decision depends. */
struct packet {
    struct wire wire;
    /* Kind and label, as returned by wire_word(). */
    __u32 word;
    /* The number of segments on the wire, and the bytes charged. */
    __u64 segments, bytes;
};

/* Reads and counts a packet. Returns whether the queue decides about the packet: frames without IP and
 * neighbour discovery pass. */
INLINE int arrives(struct __sk_buff *skb, __u64 overhead, struct counts *c, struct packet *packet)
{
    packet->wire = wire_of(skb);
    if (!packet->wire.version || is_neighbour_discovery(&packet->wire)) {
        c->no_ip++;
        return 0;
    }
    packet->word = wire_word(&packet->wire);
    packet->segments = skb->gso_segs > 1 ? skb->gso_segs : 1;
    packet->bytes = charged(skb, overhead, packet->segments);
    c->packets++;
    c->bytes += packet->bytes;
    return 1;
}

INLINE __u64 time_of(const struct __sk_buff *skb)
{
    return test_hook ? (__u64)skb->cb[1] << 32 | skb->cb[0] : bpf_ktime_get_ns();
}

#endif
