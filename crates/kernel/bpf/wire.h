/* Labels on frames, as in docs/wire-labels.md and crates/live/src/wire_label.rs. */
#ifndef APPORTION_WIRE_H
#define APPORTION_WIRE_H

#include "label.h"

/* Kinds: the first three bits of the word. */
#define KIND_TICKETS 1u
#define KIND_RATE 3u
#define DSCP_POOL_2 3u

#define ETHERNET 14
#define IPV4_HEADER 20
#define IPV6_HEADER 40
/* Two VLAN tags at most, as in crates/live/src/frame.rs, and the ports. */
#define LONGEST (ETHERNET + 8 + IPV6_HEADER + 4)

/* The parts of a frame that carry a label. */
struct wire {
    /* IP version, 4 or 6; 0 if the frame is neither, or truncated. */
    __u32 version;
    /* The IP header. */
    __u8 *ip;
    __u8 *end;
};

INLINE __u32 word_at(const __u8 *at)
{
    return (__u32)at[0] << 8 | at[1];
}

INLINE int is_vlan(__u32 ethertype)
{
    return ethertype == 0x8100 || ethertype == 0x88a8;
}

/* Finds the IP header, if it is complete. The length in the header is not compared with the length of the
 * frame. */
INLINE struct wire wire_of(struct __sk_buff *skb)
{
    struct wire wire = {};
    /* Headers may lie outside the linear part. */
    if (skb->data + LONGEST > skb->data_end)
        bpf_skb_pull_data(skb, skb->len < LONGEST ? skb->len : LONGEST);
    __u8 *data = (__u8 *)(long)skb->data, *end = (__u8 *)(long)skb->data_end;
    __u8 *ip = data + ETHERNET;
    if (ip > end)
        return wire;
    __u32 ethertype = word_at(ip - 2);
    if (is_vlan(ethertype)) {
        ip += 4;
        if (ip > end)
            return wire;
        ethertype = word_at(ip - 2);
        if (is_vlan(ethertype)) {
            ip += 4;
            if (ip > end)
                return wire;
            ethertype = word_at(ip - 2);
        }
    }
    wire.ip = ip;
    wire.end = end;
    if (ethertype == 0x0800 && ip + IPV4_HEADER <= end && ip[0] >> 4 == 4 && (ip[0] & 15) >= 5)
        wire.version = 4;
    else if (ethertype == 0x86dd && ip + IPV6_HEADER <= end && ip[0] >> 4 == 6)
        wire.version = 6;
    return wire;
}

/* Whether the packet is neighbour discovery that no router forwarded (RFC 4861 section 4), which a link
 * depends on. */
INLINE int is_neighbour_discovery(const struct wire *wire)
{
    const __u8 *ip = wire->ip;
    if (wire->version != 6 || ip + IPV6_HEADER + 1 > wire->end)
        return 0;
    /* ICMPv6 with a hop limit of 255: types 133 to 137. */
    return ip[6] == 58 && ip[7] == 255 && ip[IPV6_HEADER] >= 133 && ip[IPV6_HEADER] <= 137;
}

/* Whether the packet has room for a label: IPv6 always, IPv4 if the datagram is atomic (RFC 6864) and not
 * authenticated. */
INLINE int has_room(const struct wire *wire)
{
    if (wire->version == 6)
        return wire->ip + IPV6_HEADER <= wire->end;
    if (wire->version == 4 && wire->ip + IPV4_HEADER <= wire->end)
        return (word_at(wire->ip + 6) & 0x7fff) == 0x4000 && wire->ip[9] != 51;
    return 0;
}

/* The 20-bit word of kind and label. 0, which is not a kind, without a label. */
INLINE __u32 wire_word(const struct wire *wire)
{
    if (!has_room(wire))
        return 0;
    const __u8 *ip = wire->ip;
    if (wire->version == 4) {
        if (ip + IPV4_HEADER > wire->end)
            return 0;
        __u32 dscp = ip[1] >> 2;
        return (dscp & 3) == DSCP_POOL_2 ? dscp >> 2 << 16 | word_at(ip + 4) : 0;
    }
    if (ip + IPV6_HEADER > wire->end)
        return 0;
    __u32 dscp = (ip[0] & 15) << 2 | ip[1] >> 6;
    __u32 word = (ip[1] & 15u) << 16 | word_at(ip + 2);
    return (dscp & 3) == DSCP_POOL_2 && dscp >> 2 == word >> 16 ? word : 0;
}

/* Replaces a 16-bit word of an IPv4 header, and updates the checksum (RFC 1624 equation 3). */
INLINE void replace(__u8 *ip, __u32 at, __u32 new)
{
    __u32 old = word_at(ip + at);
    if (old == new)
        return;
    __u32 sum = (~word_at(ip + 10) & 0xffff) + (~old & 0xffff) + new;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    ip[at] = new >> 8;
    ip[at + 1] = new;
    ip[10] = sum >> 8;
    ip[11] = sum;
}

/* Writes DSCP and word into a packet for which has_room() holds. */
INLINE void wire_put(const struct wire *wire, __u32 dscp, __u32 word)
{
    __u8 *ip = wire->ip;
    if (wire->version == 4) {
        if (ip + IPV4_HEADER > wire->end)
            return;
        replace(ip, 0, (__u32)ip[0] << 8 | dscp << 2 | (ip[1] & 3));
        replace(ip, 4, word & 0xffff);
    } else {
        if (ip + IPV6_HEADER > wire->end)
            return;
        ip[0] = (ip[0] & 0xf0) | dscp >> 2;
        ip[1] = (dscp & 3) << 6 | (ip[1] & 0x30) | (word >> 16 & 15);
        ip[2] = word >> 8;
        ip[3] = word;
    }
}

INLINE void wire_write(const struct wire *wire, __u32 kind, __u32 code)
{
    __u32 word = kind << LABEL_BITS | code;
    wire_put(wire, word >> 16 << 2 | DSCP_POOL_2, word);
}

#endif
