/* Fair shares of a link, as the cores of CSFQ, MCSFQ and HCSFQ estimate them.
 *
 * Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, figure 3; Pelsser, De Cnodder, "Improvements to
 * core stateless fair queueing", PfHSN 2002, figure 3 (MCSFQ: the share does not fall without congestion). The same
 * readings as crates/core/src/estimate/fair_share.rs with a target delay of 0.
 *
 * Deviations: rates are in Q16 of a bit a second; fixed.h states the errors of exp(-T/K). The queue is the virtual one of core.h.
 *
 * src/settings.rs writes `settings` and reads `link` and `counts`; the order of the fields is the same there.
 */
#ifndef APPORTION_SHARE_H
#define APPORTION_SHARE_H

#include "core.h"

/* How the larger functions of this file are compiled. A program with several shares makes them functions of their own
 * (`SHARES_ARE_CALLED`), which the verifier walks once each. It knows nothing of their arguments then, which may be null. */
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
    /* Packets without a label pass rather than being dropped. */
    PASS_UNLABELLED = 2,
    /* G is set aside before the rest is divided. */
    AGGREGATE_GUARANTEE = 4,
    /* A calm link stays uncongested whatever arrives (2002, footnote 3); else its share is unknown (1998). */
    HOLDS = 8,
};

struct settings {
    /* C, Q16. */
    __u64 rate;
    struct constant k_alpha;
    /* K_c in ns. */
    __u64 k_c;
    /* Bits by which rates are cut so that C has 31 at most. */
    __u64 cut;
    /* 1 / the smallest weight, Q16. */
    __u64 most;
    /* The part of the share that an uncongested window keeps, Q32. */
    __u64 kept;
    /* The part of the share that an overflow keeps, Q32. */
    __u64 overflow_kept;
    /* Of the virtual queue, in ns: threshold, limit for excess packets, for those of debts (label 1), for all. */
    __u64 threshold, excess_limit, debt_limit, limit;
    /* Nanoseconds a bit, Q32. */
    __u64 per_bit;
    /* Bytes charged for a frame in addition to its length. */
    __u64 overhead;
    __u64 flags;
};

/* One processor at a time changes the estimate. Another that comes meanwhile does not wait: it decides by the share as it
 * stands, and leaves what it would have counted in `missed`, for the next one to take up. A lock of the kernel
 * (bpf_spin_lock) costs more than all of the arithmetic. */
struct missed {
    /* Bits: of A, F and G, and those that joined the virtual queue. */
    __u64 arrival, accepted, guaranteed, passed;
};

struct link {
    /* Whether a processor is at it. */
    __u32 busy;
    /* Whether alpha is known; a share that is known and 0 lets nothing but guaranteed packets pass. */
    __u32 known;
    /* The paper's alpha and tmp_alpha, Q16. */
    __u64 alpha, largest;
    /* A, F and G, Q16, and bits that arrived at the time of the last average. */
    __u64 arrival, accepted, guaranteed;
    __u64 pending_arrival, pending_accepted, pending_guaranteed;
    /* Of the last average; of the window's start; when the virtual queue is empty. ns. */
    __u64 last, start, empty;
    struct missed missed;
    __u64 congested, periods, decreases;
};

#define DECREASES 30
/* What waits to be averaged is at most this, so that products fit: 2 GB. */
#define MOST_PENDING (1ULL << 34)

struct arrival {
    __u64 now, bits;
    /* Q16, and as it is written. */
    __u64 label;
    __u32 code;
    __u32 random;
};

/* Reads a packet and counts it, with its label; whether a share decides about it. If not, `verdict` is what becomes of it. */
INLINE int is_shared(struct __sk_buff *skb, const struct settings *s, struct counts *c, struct packet *packet,
                     struct arrival *p, int *verdict)
{
    *verdict = PASSES;
    if (!arrives(skb, s->overhead, c, packet))
        return 0;
    if (packet->word >> LABEL_BITS != KIND_RATE) {
        /* It passed no edge. */
        c->unlabelled++;
        *verdict = s->flags & PASS_UNLABELLED ? PASSES : TC_ACT_SHOT;
        return 0;
    }
    __u32 code = packet->word & LABEL_MAX;
    struct arrival arrival = { .bits = 8 * packet->bytes, .label = label_decode(code) << 16, .code = code };
    *p = arrival;
    return 1;
}

/* What a share divides: a link, or the part of a customer in it. */
struct divided {
    /* C, and what bounds the share for a weight of 1 (0: what guaranteed traffic leaves of C), Q16. */
    __u64 c, whole;
    /* Bits by which rates are cut so that C has 31 at most. */
    __u64 cut;
    /* 1 / the smallest weight, Q16. */
    __u64 most;
};

INLINE struct divided whole_link(const struct settings *s)
{
    struct divided link = { .c = s->rate, .cut = s->cut, .most = s->most };
    return link;
}

/* r after a gap in which `pending` bits came. 1998, eq. (3). */
INLINE __u64 averaged(__u64 r, __u64 pending, __u64 t, const struct gap *gap, __u64 per_k)
{
    __u64 kept = r - mul_64(r, gap->less);
    if (!pending)
        return kept;
    if (gap->is_short) {
        /* l/T (1 - e^-x) is l/K (1 - deficit). */
        __u64 by_k = mul_64(pending << 29, per_k);
        return kept + by_k - mul_32(by_k, gap->deficit);
    }
    __u64 nano = pending * 1000000000, whole = nano / t;
    __u64 rate = whole << 16 | (((nano - whole * t) << 16) / t & 0xffff);
    return kept + mul_64(rate, gap->less);
}

/* Longer gaps divide alike; 2^47 ns are a day and a half. */
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
    /* Packets of one instant are counted with the next that comes later. */
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

/* What excess traffic can have: C, or what guaranteed traffic leaves, at least a hundredth. */
INLINE __u64 available(const struct link *link, const struct settings *s, __u64 c)
{
    if (!(s->flags & AGGREGATE_GUARANTEE) || !link->guaranteed)
        return c;
    __u64 least = c / 100;
    return c > link->guaranteed + least ? c - link->guaranteed : least;
}

/* The end of a congested window: alpha C / F, with F at least C / 1000. */
INLINE void scale(struct link *link, const struct divided *d, __u64 x)
{
    /* A share of nothing stays one. */
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
        /* 1998: the share of a calm link is unknown again, and that of one that saw nothing. 2002: that is 0. */
        link->known = s->flags & HOLDS ? 1 : !calm && link->alpha;
        link->largest = 0;
        link->start = p->now;
    }
    return 0;
}

/* Whether the label has it dropped: p = 1 - alpha / label. It is dropped if random < p, both times the label. */
INLINE int is_drawn(const struct link *link, const struct arrival *p)
{
    __u64 alpha = link->alpha;
    return link->known && p->label > alpha && mul_32(p->label, p->random) < p->label - alpha;
}

/* Whether the virtual queue has no room: the last of it is for guaranteed packets, once more than a thousandth is. */
INLINE int is_full(const struct link *link, const struct settings *s, const struct arrival *p, __u64 wait, __u64 takes)
{
    __u64 open = p->label > 1 << 16 ? s->excess_limit : s->debt_limit;
    return wait + takes > s->limit || (p->label && wait >= open && link->guaranteed > s->rate / 1000);
}

/* What others left while this or an earlier processor was busy. Atomic: they may do so now. */
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

/* The buffer was full. */
INLINE void overflow(struct link *link, const struct settings *s)
{
    if (!link->decreases)
        return;
    link->decreases--;
    link->alpha = mul_32(link->alpha, s->overflow_kept);
}

/* What the kernel does with a packet of this verdict: it is counted and labelled. */
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
        /* 0 says that a guarantee covers the packet: a share below 1 is written as 1. */
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
