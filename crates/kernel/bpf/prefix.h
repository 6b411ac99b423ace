/* Lookup of address prefixes: the longest prefix that contains an address of a packet, source or
 * destination, decides.
 *
 * IPv4 addresses are looked up as IPv4-mapped IPv6 addresses, ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2).
 */
#ifndef APPORTION_PREFIX_H
#define APPORTION_PREFIX_H

#include "wire.h"

struct address {
    /* The number of bits that match: all bits of an address that is looked up. */
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

/* Copies an address of `length` bytes to the end of the 16 bytes. */
#define COPY(to, from, length) __builtin_memcpy((to) + 16 - (length), from, length)

/* The number of the prefix; 0 if no prefix contains the address. */
INLINE __u32 *prefix_of(const struct wire *wire, __u32 is_destination)
{
    struct address address = { .length = 128 };
    const __u8 *ip = wire->ip;
    if (wire->version == 4 && ip + IPV4_HEADER <= wire->end) {
        address.bytes[10] = address.bytes[11] = 0xff;
        if (is_destination)
            COPY(address.bytes, ip + 16, 4);
        else
            COPY(address.bytes, ip + 12, 4);
    } else if (wire->version == 6 && ip + IPV6_HEADER <= wire->end) {
        if (is_destination)
            COPY(address.bytes, ip + 24, 16);
        else
            COPY(address.bytes, ip + 8, 16);
    } else {
        return 0;
    }
    return bpf_map_lookup_elem(&prefixes, &address);
}

#endif
