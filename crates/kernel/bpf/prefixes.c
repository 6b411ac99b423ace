/* Assigns packets the class of the longest prefix that contains their address on one side: skb->priority,
 * by which HTB finds a leaf.
 *
 * The program runs at the egress hook, before the queue discipline.
 */
#include "prefix.h"

/* The address to look up, and the class of packets that no prefix contains or that are not IP; 0: they are
 * dropped. */
struct side {
    __u32 is_destination;
    __u32 others;
};
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct side) side SECTION(".maps");
/* Packets dropped because no class is assigned to them. */
ARRAY_OF_ONE(BPF_MAP_TYPE_PERCPU_ARRAY, __u64) dropped SECTION(".maps");

SECTION("classifier") int prefix_class(struct __sk_buff *skb)
{
    __u32 zero = 0;
    struct side *kept = bpf_map_lookup_elem(&side, &zero);
    if (!kept)
        return PASSES;
    struct wire wire = wire_of(skb);
    __u32 *class = prefix_of(&wire, kept->is_destination);
    __u32 chosen = class ? *class : kept->others;
    if (!chosen) {
        __u64 *count = bpf_map_lookup_elem(&dropped, &zero);
        if (count)
            (*count)++;
        return TC_ACT_SHOT;
    }
    skb->priority = chosen;
    return PASSES;
}
