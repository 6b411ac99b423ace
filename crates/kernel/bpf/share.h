/* Fair shares of a link, as the cores of CSFQ, MCSFQ and HCSFQ estimate them.
 *
 * Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, figure 3; Pelsser, De Cnodder,
 * "Improvements to core stateless fair queueing", PfHSN 2002, figure 3 (MCSFQ: the share does not fall
 * without congestion). The readings are those of crates/core/src/estimate/fair_share.rs with a target
 * delay of 0.
 *
 * Deviations: rates are in Q16 of bit/s; fixed.h states the errors of exp(-T/K). The queue is the virtual
 * queue of core.h.
 *
 * src/settings.rs writes `settings` and reads `link` and `counts`; the order of the fields is the same
 * there.
 */
#ifndef APPORTION_SHARE_H
#define APPORTION_SHARE_H

#include "core.h"

/* How the larger functions of this file are compiled. A program with several shares compiles them as
 * separate functions (`SHARES_ARE_CALLED`), which the verifier walks once each. The verifier then knows
 * nothing about their arguments, which may be null. */
#ifdef SHARES_ARE_CALLED
#define SHARED __attribute__((noinline))
#else
#define SHARED INLINE
#endif

/* A time constant. */
struct constant {
    /* K in ns; 2^64 / K; 2^51 10^9 / K. */
    __u64 k, inverse, per_k;
};

enum flag {
    /* Packets leave without their label. */
    EGRESS = 1,
    /* Packets without a label pass instead of being dropped. */
    PASS_UNLABELLED = 2,
    /* The guaranteed rate G is subtracted before the rest is divided. */
    AGGREGATE_GUARANTEE = 4,
    /* An uncongested link stays uncongested at any arrival rate (2002, footnote 3); otherwise its share is
     * unknown (1998). */
    HOLDS = 8,
};

struct settings {
    /* C, Q16. */
    __u64 rate;
    struct constant k_alpha;
    /* K_c in ns. */
    __u64 k_c;
    /* Number of bits by which rates are shortened so that C has at most 31. */
    __u64 cut;
    /* 1 / the smallest weight, Q16. */
    __u64 most;
    /* The fraction of the share that remains after an uncongested window, Q32. */
    __u64 kept;
    /* The fraction of the share that remains after an overflow, Q32. */
    __u64 overflow_kept;
    /* Times of the virtual queue in ns: threshold, limit for excess packets, for debts (label 1), for all
     * packets. */
    __u64 threshold, excess_limit, debt_limit, limit;
    /* Nanoseconds per bit, Q32. */
    __u64 per_bit;
    /* Bytes charged for a frame in addition to its length. */
    __u64 overhead;
    __u64 flags;
};

/* One processor at a time updates the estimate. A processor that arrives meanwhile does not wait: it
 * decides by the current share, and adds its contribution to `missed`, which the next processor merges. A
 * lock of the kernel (bpf_spin_lock) costs more than the whole arithmetic. */
struct missed {
    /* Bits that contribute to A, F and G, and bits added to the virtual queue. */
    __u64 arrival, accepted, guaranteed, passed;
};

struct link {
    /* Whether a processor is updating the estimate. */
    __u32 busy;
    /* Whether alpha is known; a known share of 0 lets only guaranteed packets pass. */
    __u32 known;
    /* The paper's alpha and tmp_alpha, Q16. */
    __u64 alpha, largest;
    /* A, F and G, Q16, and bits that arrived at the instant of the last average. */
    __u64 arrival, accepted, guaranteed;
    __u64 pending_arrival, pending_accepted, pending_guaranteed;
    /* Times in ns: of the last average; of the start of the window; when the virtual queue is empty. */
    __u64 last, start, empty;
    struct missed missed;
    __u64 congested, periods, decreases;
};

#define DECREASES 30
/* The maximum of bits that wait to be averaged, so that products fit: 2 GB. */
#define MOST_PENDING (1ULL << 34)

struct arrival {
    __u64 now, bits;
    /* The label as a value in Q16, and as its code. */
    __u64 label;
    __u32 code;
    __u32 random;
};

/* Reads and counts a packet and its label. Returns whether a share decides about the packet; if not,
 * `verdict` is its verdict. */
INLINE int is_shared(struct __sk_buff *skb, const struct settings *s, struct counts *c, struct packet *packet,
                     struct arrival *p, int *verdict)
{
    *verdict = PASSES;
    if (!arrives(skb, s->overhead, c, packet))
        return 0;
    if (packet->word >> LABEL_BITS != KIND_RATE) {
        /* The packet passed no edge router. */
        c->unlabelled++;
        *verdict = s->flags & PASS_UNLABELLED ? PASSES : TC_ACT_SHOT;
        return 0;
    }
    __u32 code = packet->word & LABEL_MAX;
    struct arrival arrival = { .bits = 8 * packet->bytes, .label = label_decode(code) << 16, .code = code };
    *p = arrival;
    return 1;
}

/* The capacity that a share divides: that of a link, or the part of a customer in it. */
struct divided {
    /* C, and the upper bound of the share for a weight of 1 (0: the part of C that guaranteed traffic
     * leaves), Q16. */
    __u64 c, whole;
    /* Number of bits by which rates are shortened so that C has at most 31. */
    __u64 cut;
    /* 1 / the smallest weight, Q16. */
    __u64 most;
};

INLINE struct divided whole_link(const struct settings *s)
{
    struct divided link = { .c = s->rate, .cut = s->cut, .most = s->most };
    return link;
}

/* The average r after a gap in which `pending` bits arrived (1998, eq. (3)). */
INLINE __u64 averaged(__u64 r, __u64 pending, __u64 t, const struct gap *gap, __u64 per_k)
{
    __u64 kept = r - mul_64(r, gap->less);
    if (!pending)
        return kept;
    if (gap->is_short) {
        /* l/T (1 - e^-x) equals l/K (1 - deficit). */
        __u64 by_k = mul_64(pending << 29, per_k);
        return kept + by_k - mul_32(by_k, gap->deficit);
    }
    __u64 nano = pending * 1000000000, whole = nano / t;
    __u64 rate = whole << 16 | (((nano - whole * t) << 16) / t & 0xffff);
    return kept + mul_64(rate, gap->less);
}

/* Limits a gap to 2^47 ns, a day and a half: longer gaps give the same quotients. */
INLINE __u64 divisible(__u64 t)
{
    return t >> 47 ? 1ULL << 47 : t;
}

INLINE __u64 pended(__u64 sum)
{
    return sum < MOST_PENDING ? sum : MOST_PENDING - 1;
}

SHARED int average(struct link *link, const struct settings *s, const struct arrival *p, int dropped)
{
    if (!link || !s || !p)
        return 0;
    int excess = p->label || !(s->flags & AGGREGATE_GUARANTEE);
    if (excess) {
        link->pending_arrival = pended(link->pending_arrival + p->bits);
        if (!dropped)
            link->pending_accepted = pended(link->pending_accepted + p->bits);
    }
    if (!p->label)
        link->pending_guaranteed = pended(link->pending_guaranteed + p->bits);
    /* Packets that arrive at the same instant are counted with the next later packet. */
    if ((__s64)(p->now - link->last) <= 0)
        return 0;
    __u64 t = p->now - link->last, per_k = s->k_alpha.per_k;
    struct gap gap = gap_of(t, s->k_alpha.k, s->k_alpha.inverse);
    t = divisible(t);
    link->arrival = averaged(link->arrival, link->pending_arrival, t, &gap, per_k);
    link->accepted = averaged(link->accepted, link->pending_accepted, t, &gap, per_k);
    if (link->guaranteed | link->pending_guaranteed)
        link->guaranteed = averaged(link->guaranteed, link->pending_guaranteed, t, &gap, per_k);
    link->pending_arrival = link->pending_accepted = link->pending_guaranteed = 0;
    link->last = p->now;
    return 0;
}

/* The capacity available to excess traffic: C, or the part that guaranteed traffic leaves, at least a
 * hundredth. */
INLINE __u64 available(const struct link *link, const struct settings *s, __u64 c)
{
    if (!(s->flags & AGGREGATE_GUARANTEE) || !link->guaranteed)
        return c;
    __u64 least = c / 100;
    return c > link->guaranteed + least ? c - link->guaranteed : least;
}

/* Ends a congested window: alpha C / F, with F at least C / 1000. */
INLINE void scale(struct link *link, const struct divided *d, __u64 x)
{
    /* A share of zero stays zero. */
    if (!link->alpha)
        return;
    __u64 least = d->c / 1000;
    __u64 fr = (link->accepted > least ? link->accepted : least) >> d->cut;
    __u64 ratio = fr ? ((x >> d->cut) << 32) / fr : 0;
    __u64 most = mul_32_saturating(d->whole ? d->whole : x, d->most << 16);
    __u64 share = mul_32_saturating(link->alpha, ratio);
    link->alpha = share < most ? share : most;
    link->known = link->alpha != 0;
}

/* estimate_alpha of figure 3. */
SHARED int estimate(struct link *link, const struct settings *s, const struct divided *d, const struct arrival *p,
                    int calm)
{
    if (!link || !s || !d || !p)
        return 0;
    if (!link->known) {
        link->largest = p->label > link->largest ? p->label : link->largest;
        if (calm)
            return 0;
        link->alpha = link->largest ? link->largest : d->c / 2;
        link->known = link->alpha != 0;
        link->largest = 0;
    }
    int over = p->now >= link->start + s->k_c;
    __u64 x = available(link, s, d->c);
    int held = s->flags & HOLDS && calm && !link->congested;
    if (link->arrival >= x && !held) {
        if (!link->congested) {
            link->congested = 1;
            link->periods++;
            link->start = p->now;
            link->decreases = DECREASES;
        } else if (over) {
            scale(link, d, x);
            link->start = p->now;
        }
        return 0;
    }
    if (link->congested) {
        link->congested = 0;
        link->start = p->now;
        link->largest = 0;
        return 0;
    }
    link->largest = p->label > link->largest ? p->label : link->largest;
    if (over) {
        __u64 kept = mul_32(link->alpha, s->kept);
        link->alpha = link->largest > kept ? link->largest : kept;
        /* 1998: the share becomes unknown after an uncongested window and after a window without traffic.
         * 2002: it is 0 in the latter case. */
        link->known = s->flags & HOLDS ? 1 : !calm && link->alpha;
        link->largest = 0;
        link->start = p->now;
    }
    return 0;
}

/* Whether the packet is dropped by its label, with p = 1 - alpha / label: random < p, multiplied by the
 * label. */
INLINE int is_drawn(const struct link *link, const struct arrival *p)
{
    __u64 alpha = link->alpha;
    return link->known && p->label > alpha && mul_32(p->label, p->random) < p->label - alpha;
}

/* Whether the virtual queue has no room: its last part is reserved for guaranteed packets, once they
 * exceed a thousandth. */
INLINE int is_full(const struct link *link, const struct settings *s, const struct arrival *p, __u64 wait, __u64 takes)
{
    __u64 open = p->label > 1 << 16 ? s->excess_limit : s->debt_limit;
    return wait + takes > s->limit || (p->label && wait >= open && link->guaranteed > s->rate / 1000);
}

/* Merges the contributions of other processors made while this or an earlier processor held the estimate.
 * Atomic, since others may add to them at the same time. */
SHARED int take_up(struct link *link, const struct settings *s)
{
    if (!link || !s)
        return 0;
    struct missed *missed = &link->missed;
    if (!(missed->arrival | missed->guaranteed))
        return 0;
    link->pending_arrival = pended(link->pending_arrival + __sync_lock_test_and_set(&missed->arrival, 0));
    link->pending_accepted = pended(link->pending_accepted + __sync_lock_test_and_set(&missed->accepted, 0));
    link->pending_guaranteed = pended(link->pending_guaranteed + __sync_lock_test_and_set(&missed->guaranteed, 0));
    __u64 passed = __sync_lock_test_and_set(&missed->passed, 0);
    joined(&link->empty, link->last, s->per_bit, passed);
    return 0;
}

/* Reacts to an overflow of the buffer. */
INLINE void overflow(struct link *link, const struct settings *s)
{
    if (!link->decreases)
        return;
    link->decreases--;
    link->alpha = mul_32(link->alpha, s->overflow_kept);
}

/* Counts and labels a packet by its verdict, and returns the action for the kernel. */
INLINE int carried_out(const struct packet *packet, const struct settings *s, struct counts *c, enum verdict verdict,
                       const struct arrival *p, __u64 share)
{
    const struct wire *wire = &packet->wire;
    if (verdict != PASS) {
        if (verdict == EARLY)
            c->early++;
        else
            c->overflow++;
        return TC_ACT_SHOT;
    }
    if (s->flags & EGRESS) {
        wire_put(wire, 0, 0);
    } else if (share && p->label > share) {
        /* 0 means that a guarantee covers the packet: a share below 1 is written as 1. */
        __u32 most = label_encode(share > 1 << 16 ? share : 1 << 16);
        __u32 lower = first_code(wire, most, packet->segments);
        if (lower != p->code) {
            wire_write(wire, KIND_RATE, lower);
            c->relabelled++;
        }
    }
    return PASSES;
}

#endif
