/* Programs for tests and measurements only; none is ever attached. */
#include "wire.h"

/* For each 16 bytes behind the Ethernet header: encodes and decodes the value in Q16 and the code found
 * there, and replaces them by the resulting code and value. */
SECTION("classifier") int codec(struct __sk_buff *skb)
{
    bpf_skb_pull_data(skb, skb->len);
    __u8 *at = (__u8 *)(long)skb->data + ETHERNET + 2, *end = (__u8 *)(long)skb->data_end;
    for (int i = 0; i < 200; i++) {
        if (at + 16 > end)
            break;
        __u64 *item = (__u64 *)at;
        item[0] = label_encode(item[0]);
        item[1] = label_decode(item[1]);
        at += 16;
    }
    return TC_ACT_OK;
}

/* Writes the low 20 bits of the mark as kind and label if the frame has room; bit 31 removes a label
 * instead. The verdict is the previous word, with bit 31 set if there was room. */
SECTION("classifier") int wire(struct __sk_buff *skb)
{
    struct wire wire = wire_of(skb);
    __u32 word = wire_word(&wire), room = has_room(&wire), new = skb->mark;
    if (room && !(new >> 31))
        wire_write(&wire, new >> LABEL_BITS & 7, new & LABEL_MAX);
    else if (room && word >> LABEL_BITS >= 1 && word >> LABEL_BITS <= 3)
        wire_put(&wire, 0, 0);
    return word | room << 31;
}

/* Computes 1 - e^(-T/K) for the gap T = cb[0..1] ns and K = cb[2] ns with inverse 2^64/K, and returns it
 * in cb[0..1] in Q64. */
SECTION("classifier") int decay(struct __sk_buff *skb)
{
    __u64 t = (__u64)skb->cb[1] << 32 | skb->cb[0], k = skb->cb[2];
    if (!k)
        return TC_ACT_SHOT;
    struct gap gap = gap_of(t, k, ~0ULL / k);
    skb->cb[0] = gap.less;
    skb->cb[1] = gap.less >> 32;
    return TC_ACT_OK;
}

/* Does nothing, to measure the cost of an empty program. */
SECTION("classifier") int empty(struct __sk_buff *skb)
{
    return TC_ACT_OK;
}
