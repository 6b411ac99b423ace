/* Assigns the packets of each flow the class that user space chose: skb->priority, by which HTB finds a
 * leaf.
 *
 * The program runs at the egress hook, before the queue discipline. A flow that is not in the map keeps
 * its priority, and goes to the default class of the HTB.
 */
#include "wire.h"

/* The fields that identify a flow; user space sets the others to 0 in its keys. */
enum field { SOURCE = 1, DESTINATION = 2, PORTS = 4, PROTOCOL = 8 };

struct flow {
    /* Addresses in network byte order; an IPv4 address takes the first 4 B. */
    __u8 source[16], destination[16];
    __u8 source_port[2], destination_port[2];
    __u8 protocol, version;
    __u8 zero[2];
};

struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_HASH);
    MAP_NUMBER(max_entries, 65536);
    MAP_TYPE(key, struct flow);
    MAP_TYPE(value, __u32);
} flows SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, __u32) fields SECTION(".maps");

#define COPY(to, from, length) __builtin_memcpy(to, from, length)

SECTION("classifier") int flow_class(struct __sk_buff *skb)
{
    __u32 zero = 0;
    __u32 *kept = bpf_map_lookup_elem(&fields, &zero);
    struct wire wire = wire_of(skb);
    if (!kept || !wire.version)
        return PASSES;
    struct flow flow = { .version = wire.version };
    __u8 *ip = wire.ip, *transport;
    int whole = 1;
    if (wire.version == 4) {
        if (ip + IPV4_HEADER > wire.end)
            return PASSES;
        if (*kept & SOURCE)
            COPY(flow.source, ip + 12, 4);
        if (*kept & DESTINATION)
            COPY(flow.destination, ip + 16, 4);
        flow.protocol = ip[9];
        /* Only the first fragment has ports; it is treated like the other fragments. */
        whole = !(word_at(ip + 6) & 0x3fff);
        transport = ip + 4 * (ip[0] & 15);
    } else {
        if (ip + IPV6_HEADER > wire.end)
            return PASSES;
        if (*kept & SOURCE)
            COPY(flow.source, ip + 8, 16);
        if (*kept & DESTINATION)
            COPY(flow.destination, ip + 24, 16);
        flow.protocol = ip[6];
        transport = ip + IPV6_HEADER;
    }
    int has_ports = whole && (flow.protocol == 6 || flow.protocol == 17);
    if (has_ports && *kept & PORTS && transport + 4 <= wire.end) {
        COPY(flow.source_port, transport, 2);
        COPY(flow.destination_port, transport + 2, 2);
    }
    if (!(*kept & PROTOCOL))
        flow.protocol = 0;
    __u32 *class = bpf_map_lookup_elem(&flows, &flow);
    if (class)
        skb->priority = *class;
    return PASSES;
}
