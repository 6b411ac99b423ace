/* What the tc programs of queues have in common: the virtual queue, counters, the length and time of a packet.
 *
 * A classifier does not see the queue of its device. The queue here is a virtual one, which is served at the rate of the link: `empty` is the time
 * at which it will have sent what it was given.
 */
#ifndef APPORTION_CORE_H
#define APPORTION_CORE_H

#include "wire.h"

struct counts {
    __u64 packets, bytes, early, overflow, unlabelled, no_ip, relabelled, meanwhile;
    /* Runs of the program on this processor. */
    __u64 begun, ended;
};

/* Constants of the type `of`, which user space changes while programs run (src/program/constants.rs). There are two: a change is written into those
 * that do not count, and then the word `current` says that they do. So a program sees all of a change, or nothing of it. Those that counted before
 * are written again only after the runs have ended that had begun by then, which may use them. */
#define TWO_OF(name, type)                                                                                             \
    struct name {                                                                                                      \
        __u64 current;                                                                                                 \
        type of[2];                                                                                                    \
    }

/* A run begins: which of two constants count for it. A processor writes down that a run has begun before it reads that, or some nanoseconds
 * later: user space looks for it only after the system call that has changed `current`. */
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

/* For tests: with 1, cb[0..1] of a packet is the time, and cb[2] and cb[3] are the random numbers. */
const volatile __u32 test_hook = 0;

/* ns since the last packet after which this processor may have been stopped. Chosen: ten times what a packet takes. */
#define STOPPED 20000
/* IEEE 802.1Q. */
#define VLAN_TAG 4
enum verdict { PASS, EARLY, OVERFLOW };

/* How long the virtual queue takes to be empty. A processor may be stopped after it read the clock, while others went on: time is at least
 * that of the last packet, `last`, which is looked at after the queue. */
INLINE __u64 waiting(const __u64 *empty_at, const __u64 *last_at, __u64 now)
{
    __u64 empty = *(const volatile __u64 *)empty_at, last = *(const volatile __u64 *)last_at;
    now = now > last ? now : last;
    return empty > now ? empty - now : 0;
}

/* Puts bits into the virtual queue that came after the last packet that was counted: the link has been sending since. */
INLINE void joined(__u64 *empty, __u64 last, __u64 per_bit, __u64 bits)
{
    *empty = (*empty > last ? *empty : last) + mul_32_saturating(per_bit, bits);
}

/* The label of the first of so many segments, that none has more than `code`, nor 0. A super-packet is cut behind this program, and the
 * identification of IPv4, where a label has its last 16 bits, is then counted up: after 0xffff comes 0, which says that a guarantee
 * covers the packet. Codes are ordered as what they stand for, from 4 kb/s on a 4096th of it apart at most; where the identification would wrap, all
 * segments stay below. Where GRO merged packets of one label, all segments get the first one (SKB_GSO_TCP_FIXEDID), which no program sees. */
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

/* What a packet is charged: of a super-packet what its segments have on the wire (wire_len has the headers of each), and for each
 * the overhead and the tag that the kernel keeps beside the frame. */
INLINE __u64 charged(const struct __sk_buff *skb, __u64 overhead, __u64 segments)
{
    return skb->wire_len + segments * (overhead + (skb->vlan_present ? VLAN_TAG : 0));
}

/* What a program sees of a packet that it decides about. */
struct packet {
    struct wire wire;
    /* Kind and label, as wire_word() gives them. */
    __u32 word;
    /* What it becomes on the wire, and is charged. */
    __u64 segments, bytes;
};

/* Reads a packet and counts it; whether the queue decides about it: frames without IP pass, and so does neighbour discovery. */
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
