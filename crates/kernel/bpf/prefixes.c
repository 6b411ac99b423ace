/* Gives packets the class of the longest prefix that holds their address on one side: skb->priority, by which HTB finds a leaf.
 *
 * It runs at the egress hook, before the queue discipline. IPv4 addresses are looked up as IPv6 has them, ::ffff:a.b.c.d
 * (RFC 4291 section 2.5.5.2).
 */
#include "wire.h"

struct address {
    /* Of the whole of an address to look up. */
    __u32 length;
    __u8 bytes[16];
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_LPM_TRIE);
    MAP_NUMBER(max_entries, 262144);
    MAP_NUMBER(map_flags, BPF_F_NO_PREALLOC);
    MAP_TYPE(key, struct address);
    MAP_TYPE(value, __u32);
} prefixes SECTION(".maps");

/* Which address counts, and the class of packets whose address no prefix holds, or that are not IP; 0: they are dropped. */
struct side {
    __u32 is_destination;
    __u32 others;
};
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct side) side SECTION(".maps");

/* Puts an address of `length` bytes at the end of the 16. */
#define COPY(to, from, length) __builtin_memcpy((to) + 16 - (length), from, length)

SECTION("classifier") int prefix_class(struct __sk_buff *skb)
{
    __u32 zero = 0;
    struct side *kept = bpf_map_lookup_elem(&side, &zero);
    if (!kept)
        return TC_ACT_OK;
    struct wire wire = wire_of(skb);
    struct address address = { .length = 128 };
    __u8 *ip = wire.ip;
    if (wire.version == 4 && ip + IPV4_HEADER <= wire.end) {
        address.bytes[10] = address.bytes[11] = 0xff;
        if (kept->is_destination)
            COPY(address.bytes, ip + 16, 4);
        else
            COPY(address.bytes, ip + 12, 4);
    } else if (wire.version == 6 && ip + IPV6_HEADER <= wire.end) {
        if (kept->is_destination)
            COPY(address.bytes, ip + 24, 16);
        else
            COPY(address.bytes, ip + 8, 16);
    }
    __u32 *class = wire.version ? bpf_map_lookup_elem(&prefixes, &address) : 0;
    __u32 chosen = class ? *class : kept->others;
    if (!chosen)
        return TC_ACT_SHOT;
    skb->priority = chosen;
    return TC_ACT_OK;
}
