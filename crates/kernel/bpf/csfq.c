/* The core of CSFQ and MCSFQ as a tc program at the egress of a device.
 *
 * Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, figure 3; Pelsser, De Cnodder, "Improvements to
 * core stateless fair queueing", PfHSN 2002, figure 3 (MCSFQ: the share does not fall without congestion). The same
 * readings as crates/core/src/estimate/fair_share.rs with a target delay of 0, and the order of
 * crates/core/src/aqm/csfq.rs: decide by the share as it is, count, relabel by the share as it is then.
 *
 * Deviations: rates are in Q16 of a bit a second; fixed.h states the errors of exp(-T/K). A classifier does not see the
 * queue of its device: the queue here is a virtual one, which is served at the rate of the link and holds `limit`.
 *
 * src/settings.rs writes `settings` and reads `link` and `counts`; the order of the fields is the same there.
 */
#include "wire.h"

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
    /* K_alpha in ns; 2^64 / K_alpha; 2^51 10^9 / K_alpha; K_c in ns. */
    __u64 k_alpha, inverse, per_k, k_c;
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

struct counts {
    __u64 packets, bytes, early, overflow, unlabelled, no_ip, relabelled, meanwhile;
};

ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct settings) settings SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct link) link SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_PERCPU_ARRAY, struct counts) counts SECTION(".maps");

/* For tests: with 1, cb[0..1] of a packet is the time and cb[2] the random number. */
const volatile __u32 test_hook = 0;

#define DECREASES 30
/* ns since the last packet after which this processor may have been stopped. Chosen: ten times what a packet takes. */
#define STOPPED 20000
/* IEEE 802.1Q. */
#define VLAN_TAG 4
/* What waits to be averaged is at most this, so that products fit: 2 GB. */
#define MOST_PENDING (1ULL << 34)

struct arrival {
    __u64 now, bits;
    /* Q16. */
    __u64 label;
    __u32 random;
};

/* r after a gap in which `pending` bits came. 1998, eq. (3). */
INLINE __u64 averaged(__u64 r, __u64 pending, __u64 t, const struct gap *gap, const struct settings *s)
{
    __u64 kept = r - mul_64(r, gap->less);
    if (!pending)
        return kept;
    if (gap->is_short) {
        /* l/T (1 - e^-x) is l/K (1 - deficit). */
        __u64 by_k = mul_64(pending << 29, s->per_k);
        return kept + by_k - mul_32(by_k, gap->deficit);
    }
    __u64 nano = pending * 1000000000, whole = nano / t;
    __u64 rate = whole << 16 | (((nano - whole * t) << 16) / t & 0xffff);
    return kept + mul_64(rate, gap->less);
}

INLINE __u64 pended(__u64 sum)
{
    return sum < MOST_PENDING ? sum : MOST_PENDING - 1;
}

INLINE void average(struct link *link, const struct settings *s, const struct arrival *p, int dropped)
{
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
        return;
    __u64 t = p->now - link->last;
    struct gap gap = gap_of(t, s->k_alpha, s->inverse);
    /* Longer gaps divide alike; 2^47 ns are a day and a half. */
    if (t >> 47)
        t = 1ULL << 47;
    link->arrival = averaged(link->arrival, link->pending_arrival, t, &gap, s);
    link->accepted = averaged(link->accepted, link->pending_accepted, t, &gap, s);
    if (link->guaranteed | link->pending_guaranteed)
        link->guaranteed = averaged(link->guaranteed, link->pending_guaranteed, t, &gap, s);
    link->pending_arrival = link->pending_accepted = link->pending_guaranteed = 0;
    link->last = p->now;
}

/* What excess traffic can have: C, or what guaranteed traffic leaves, at least a hundredth. */
INLINE __u64 available(const struct link *link, const struct settings *s)
{
    if (!(s->flags & AGGREGATE_GUARANTEE) || !link->guaranteed)
        return s->rate;
    __u64 least = s->rate / 100;
    return s->rate > link->guaranteed + least ? s->rate - link->guaranteed : least;
}

/* The end of a congested window: alpha C / F, with F at least C / 1000. */
INLINE void scale(struct link *link, const struct settings *s, __u64 x)
{
    /* A share of nothing stays one. */
    if (!link->alpha)
        return;
    __u64 least = s->rate / 1000;
    __u64 fr = (link->accepted > least ? link->accepted : least) >> s->cut;
    __u64 ratio = fr ? ((x >> s->cut) << 32) / fr : 0;
    __u64 most = mul_32_saturating(x, s->most << 16);
    __u64 share = mul_32_saturating(link->alpha, ratio);
    link->alpha = share < most ? share : most;
    link->known = link->alpha != 0;
}

/* estimate_alpha of figure 3. */
INLINE void estimate(struct link *link, const struct settings *s, const struct arrival *p, int calm)
{
    if (!link->known) {
        link->largest = p->label > link->largest ? p->label : link->largest;
        if (calm)
            return;
        link->alpha = link->largest ? link->largest : s->rate / 2;
        link->known = link->alpha != 0;
        link->largest = 0;
    }
    int over = p->now >= link->start + s->k_c;
    __u64 x = available(link, s);
    int held = s->flags & HOLDS && calm && !link->congested;
    if (link->arrival >= x && !held) {
        if (!link->congested) {
            link->congested = 1;
            link->periods++;
            link->start = p->now;
            link->decreases = DECREASES;
        } else if (over) {
            scale(link, s, x);
            link->start = p->now;
        }
        return;
    }
    if (link->congested) {
        link->congested = 0;
        link->start = p->now;
        link->largest = 0;
        return;
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
}

enum verdict { PASS, EARLY, OVERFLOW };

/* Whether the label has it dropped: p = 1 - alpha / label. It is dropped if random < p, both times the label. */
INLINE int is_drawn(const struct link *link, const struct arrival *p)
{
    __u64 alpha = link->alpha;
    return link->known && p->label > alpha && mul_32(p->label, p->random) < p->label - alpha;
}

/* A processor may be stopped after it read the clock, while others went on: time is at least that of the last packet, which is looked at after
 * the queue. */
INLINE __u64 wait_at(const struct link *link, __u64 now)
{
    __u64 empty = *(const volatile __u64 *)&link->empty, last = *(const volatile __u64 *)&link->last;
    now = now > last ? now : last;
    return empty > now ? empty - now : 0;
}

/* Whether the virtual queue has no room: the last of it is for guaranteed packets, once more than a thousandth is. */
INLINE int is_full(const struct link *link, const struct settings *s, const struct arrival *p, __u64 wait, __u64 takes)
{
    __u64 open = p->label > 1 << 16 ? s->excess_limit : s->debt_limit;
    return wait + takes > s->limit || (p->label && wait >= open && link->guaranteed > s->rate / 1000);
}

/* What others left while this or an earlier processor was busy. Atomic: they may do so now. */
INLINE void take_up(struct link *link, const struct settings *s)
{
    struct missed *missed = &link->missed;
    if (!(missed->arrival | missed->guaranteed))
        return;
    link->pending_arrival = pended(link->pending_arrival + __sync_lock_test_and_set(&missed->arrival, 0));
    link->pending_accepted = pended(link->pending_accepted + __sync_lock_test_and_set(&missed->accepted, 0));
    link->pending_guaranteed = pended(link->pending_guaranteed + __sync_lock_test_and_set(&missed->guaranteed, 0));
    __u64 passed = __sync_lock_test_and_set(&missed->passed, 0);
    /* They came after the last one that was counted, and the link has been sending since. */
    link->empty = (link->empty > link->last ? link->empty : link->last) + mul_32_saturating(s->per_bit, passed);
}

/* The decision, by the processor that is at it. `share` becomes alpha as it is then, if it is known. */
INLINE enum verdict admit(struct link *link, const struct settings *s, struct arrival *p, __u64 *share)
{
    __u64 wait = wait_at(link, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    int dropped = is_drawn(link, p);
    average(link, s, p, dropped);
    estimate(link, s, p, wait <= s->threshold);
    if (dropped)
        return EARLY;
    if (is_full(link, s, p, wait, takes)) {
        if (link->decreases) {
            link->decreases--;
            link->alpha = mul_32(link->alpha, s->overflow_kept);
        }
        return OVERFLOW;
    }
    link->empty = p->now + wait + takes;
    *share = link->known ? link->alpha : 0;
    return PASS;
}

/* The decision while another processor is at it. Neither the label is noted nor does an overflow lower alpha. */
INLINE enum verdict admit_meanwhile(struct link *link, const struct settings *s, struct arrival *p, __u64 *share)
{
    __u64 wait = wait_at(link, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
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

SECTION("classifier") int csfq(struct __sk_buff *skb)
{
    __u32 zero = 0;
    struct settings *s = bpf_map_lookup_elem(&settings, &zero);
    struct link *l = bpf_map_lookup_elem(&link, &zero);
    struct counts *c = bpf_map_lookup_elem(&counts, &zero);
    if (!s || !l || !c)
        return TC_ACT_OK;
    struct wire wire = wire_of(skb);
    if (!wire.version || is_neighbour_discovery(&wire)) {
        c->no_ip++;
        return TC_ACT_OK;
    }
    __u32 word = wire_word(&wire), code = word & LABEL_MAX;
    /* Of a super-packet each segment has its overhead, and the tag that the kernel keeps beside the frame. */
    __u64 segments = skb->gso_segs > 1 ? skb->gso_segs : 1;
    __u64 bytes = skb->len + segments * (s->overhead + (skb->vlan_present ? VLAN_TAG : 0));
    c->packets++;
    c->bytes += bytes;
    if (word >> LABEL_BITS != KIND_RATE) {
        /* It passed no edge. */
        c->unlabelled++;
        return s->flags & PASS_UNLABELLED ? TC_ACT_OK : TC_ACT_SHOT;
    }
    struct arrival p = { .bits = 8 * bytes, .label = label_decode(code) << 16 };
    int is_busy = __sync_lock_test_and_set(&l->busy, 1);
    if (!is_busy)
        take_up(l, s);
    /* Read after what others left has been taken up: they came before. A processor may be stopped in between for long. */
    p.now = test_hook ? (__u64)skb->cb[1] << 32 | skb->cb[0] : bpf_ktime_get_ns();
    p.random = test_hook ? skb->cb[2] : bpf_get_prandom_u32();
    /* If it was stopped before that reading, others have left more meanwhile, while the link sent. */
    if (!is_busy && p.now > l->last + STOPPED)
        take_up(l, s);
    /* Clocks of processors may differ a little: time does not go back. */
    if (p.now < l->last)
        p.now = l->last;
    __u64 share = 0;
    enum verdict verdict;
    if (is_busy) {
        verdict = admit_meanwhile(l, s, &p, &share);
        c->meanwhile++;
    } else {
        verdict = admit(l, s, &p, &share);
        /* An exchange and not a store: what was written before is seen before. */
        (void)__sync_lock_test_and_set(&l->busy, 0);
    }
    if (verdict != PASS) {
        if (verdict == EARLY)
            c->early++;
        else
            c->overflow++;
        return TC_ACT_SHOT;
    }
    if (s->flags & EGRESS) {
        wire_put(&wire, 0, 0);
    } else if (share && p.label > share) {
        /* 0 says that a guarantee covers the packet: a share below 1 is written as 1. */
        __u32 most = label_encode(share > 1 << 16 ? share : 1 << 16);
        __u32 lower = first_code(&wire, most, segments);
        if (lower != code) {
            wire_write(&wire, KIND_RATE, lower);
            c->relabelled++;
        }
    }
    return TC_ACT_OK;
}
