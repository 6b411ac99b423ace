/* The core of CSFQ and MCSFQ as a tc program at the egress of a device.
 *
 * The order is that of crates/core/src/aqm/csfq.rs: decide by the current share, count, relabel by the
 * share after counting. Papers, readings and deviations: share.h.
 */
#include "share.h"

TWO_OF(two_settings, struct settings);

ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct two_settings) settings SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct link) link SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_PERCPU_ARRAY, struct counts) counts SECTION(".maps");

/* The decision of the processor that holds the estimate. `share` becomes the updated alpha, if it is
 * known. */
INLINE enum verdict admit(struct link *link, const struct settings *s, struct arrival *p, __u64 *share)
{
    __u64 wait = waiting(&link->empty, &link->last, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    int dropped = is_drawn(link, p);
    average(link, s, p, dropped);
    struct divided whole = whole_link(s);
    estimate(link, s, &whole, p, wait <= s->threshold);
    if (dropped)
        return EARLY;
    if (is_full(link, s, p, wait, takes)) {
        overflow(link, s);
        return OVERFLOW;
    }
    link->empty = p->now + wait + takes;
    *share = link->known ? link->alpha : 0;
    return PASS;
}

/* The decision while another processor holds the estimate. The label is not recorded, and an overflow does
 * not reduce alpha. */
INLINE enum verdict admit_meanwhile(struct link *link, const struct settings *s, struct arrival *p, __u64 *share)
{
    __u64 wait = waiting(&link->empty, &link->last, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    int dropped = is_drawn(link, p), full = is_full(link, s, p, wait, takes);
    if (p->label || !(s->flags & AGGREGATE_GUARANTEE)) {
        __sync_fetch_and_add(&link->missed.arrival, p->bits);
        if (!dropped)
            __sync_fetch_and_add(&link->missed.accepted, p->bits);
    }
    if (!p->label)
        __sync_fetch_and_add(&link->missed.guaranteed, p->bits);
    if (dropped || full)
        return dropped ? EARLY : OVERFLOW;
    __sync_fetch_and_add(&link->missed.passed, p->bits);
    *share = link->known ? link->alpha : 0;
    return PASS;
}

INLINE int handle(struct __sk_buff *skb, const struct settings *s, struct link *l, struct counts *c)
{
    struct packet packet;
    struct arrival p;
    int passes;
    if (!is_shared(skb, s, c, &packet, &p, &passes))
        return passes;
    int is_busy = __sync_lock_test_and_set(&l->busy, 1);
    if (!is_busy)
        take_up(l, s);
    /* The clock is read after the contributions of other processors are merged, since their packets came
     * before. A processor may be preempted in between for long. */
    p.now = time_of(skb);
    p.random = test_hook ? skb->cb[2] : bpf_get_prandom_u32();
    /* If this processor was preempted before it read the clock, others have left further contributions,
     * while the link sent. */
    if (!is_busy && p.now > l->last + STOPPED)
        take_up(l, s);
    /* The clocks of processors may differ a little: time does not go back. */
    if (p.now < l->last)
        p.now = l->last;
    __u64 share = 0;
    enum verdict verdict;
    if (is_busy) {
        verdict = admit_meanwhile(l, s, &p, &share);
        c->meanwhile++;
    } else {
        verdict = admit(l, s, &p, &share);
        /* An exchange instead of a store: earlier writes become visible before it. */
        (void)__sync_lock_test_and_set(&l->busy, 0);
    }
    return carried_out(&packet, s, c, verdict, &p, share);
}

SECTION("classifier") int csfq(struct __sk_buff *skb)
{
    __u32 zero = 0;
    struct two_settings *s = bpf_map_lookup_elem(&settings, &zero);
    struct link *l = bpf_map_lookup_elem(&link, &zero);
    struct counts *c = bpf_map_lookup_elem(&counts, &zero);
    if (!s || !l || !c)
        return PASSES;
    __u32 slot = begin(c, &s->current);
    return end(c, handle(skb, &s->of[slot], l, c));
}
