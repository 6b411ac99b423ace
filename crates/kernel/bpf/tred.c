/* Probabilistic packet scheduling at a link, as a tc program at the egress of a device: TRED, i.e. RED
 * with a drop probability that decreases with the tickets on a packet, and the exchange of the tickets of
 * passing packets for those that the next router issued to the link.
 *
 * Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, sections II-C,
 * II-D and II-G; Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN
 * 1(4), 1993, section 4. The readings are those of crates/core/src/aqm/tred.rs, drop_curve.rs,
 * crates/core/src/mark/currency_exchange.rs and ticket_policer.rs.
 *
 * Deviations: a classifier does not see the queue of its device. The program uses the virtual queue of
 * core.h, measured in transmission time: a packet of a threshold or limit has 1500 B. Tickets are
 * exchanged before the queue. Averages are in fixed point.
 *
 * src/tickets.rs writes `settings` and reads `state` and `counts`; the order of the fields is the same
 * there.
 */
#include "core.h"

enum flag {
    /* Tickets are taken into account; otherwise plain RED. */
    FACTOR = 1,
    /* Tickets are compared per byte; otherwise per packet. */
    PER_BYTE = 2,
    /* ExpectTkt is the number of tickets that a packet of a flow at its share carries; otherwise the mean
     * below K MinTkt. */
    SHARE = 4,
    /* A packet that was spared with probability 1 - p takes the tickets of the dropped packets. */
    RELABEL = 8,
    /* Drops are at least 1/p_b arrivals apart. */
    WAIT = 16,
    /* The factor multiplies p after the count that spaces drops is applied, or there is no such count. */
    AFTER = 32,
    NO_COUNT = 64,
    /* Tickets are exchanged. */
    EXCHANGE = 128,
    /* Tags are floating-point numbers; otherwise integers. */
    FLOATING = 256,
    /* Tags are rounded down, or randomly; otherwise to nearest. */
    DOWN = 512,
    STOCHASTIC = 1024,
};

struct settings {
    /* Nanoseconds per bit, Q32. */
    __u64 per_bit;
    /* Bytes charged for a frame in addition to its length. */
    __u64 overhead;
    __u64 flags;
    /* Transmission times of the virtual queue's limit and of one full packet, ns. */
    __u64 limit, full;
    /* MinThresh, MaxThresh, and the threshold above which every packet is dropped: ns, Q24. */
    __u64 min_th, max_th, ceiling;
    /* The slopes of p_b over the average queue above MinThresh and above MaxThresh, Q32 by 2^-64. */
    __u64 slope, gentle;
    /* MaxP, Q32. */
    __u64 max_p;
    /* w_q, Q64. */
    __u64 w_q;
    /* Transmission time of a mean packet in ns, Q16. */
    __u64 mean_packet;
    /* WinLength, and half of the window of MinTkt, in ns. */
    __u64 window, half;
    /* n; K in Q16, 0: all packets count; the fraction of its share that an aggressive flow keeps, Q32. */
    __u64 n, k, keep;
    /* The exchange: tickets per second that the next router issues, Q16; WinLength, and the windows of
     * ActualTktRate and of a change of the issue rate, ns; the first two in seconds, Q32. */
    __u64 issued, in_window, policing_window, issue_window, in_seconds, policing_seconds;
    /* The bound of the policing factor and its inverse, Q32; the largest tag. */
    __u64 bound, least_bound, largest;
};

struct state {
    /* Whether a processor is updating the state; whether the average was above MinThresh at the last
     * packet. */
    __u32 busy, above;
    /* The average queue in ns, Q24. */
    __u64 average;
    /* Packets since the last drop, or since the average exceeded MinThresh. */
    __u64 count;
    /* Times in ns: when the virtual queue is empty; until when idle time is included in the average; of
     * the last packet; of the last packet with tickets. */
    __u64 empty, resumed, last, front;
    /* The contents of the windows: tickets in Q20, bytes in Q16. ExpectTkt is their ratio. */
    __u64 tickets, bytes;
    /* MinTkt: the number of the current half of the window, its minimum label, and the minimum of the
     * previous half; ~0: none. */
    __u64 number, least, before;
    /* Contributions of other processors: packets, tickets in Q20, counted bytes in Q16, and bits added to
     * the virtual queue. */
    __u64 missed_count, missed_tickets, missed_bytes, missed_passed;
    /* The exchange: the part of the issue rate that is in effect, Q16, and the time of its last change;
     * the contents of the windows of InTktRate and ActualTktRate, Q20, and the time of each. */
    __u64 effective, changed, arrived, arrived_at, written, written_at;
    /* Tickets that arrived and were written on other processors, Q20. */
    __u64 missed_arrived, missed_written;
};

struct ticket_counts {
    struct counts all;
    /* Packets dropped since the average is too high; packets with tickets, and the tickets on them;
     * packets that ExpectTkt ignored; packets that could be dropped by their tickets; tickets that the
     * exchange wrote. */
    __u64 forced, labelled, tickets, filtered, judged, written;
};

TWO_OF(two_settings, struct settings);

ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct two_settings) settings SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct state) state SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_PERCPU_ARRAY, struct ticket_counts) counts SECTION(".maps");

#define ONE (1ULL << 32)
/* The maximum number of tickets counted for a packet, so that products fit. */
#define MOST_TICKETS (1ULL << 27)
/* The unit for which tickets are compared, in bytes. */
#define UNIT 65536
/* The maximum contents of the windows, so that sums fit. */
#define MOST_HELD (1ULL << 62)
#define NO_LABEL (~0ULL)

struct arrival {
    __u64 now, bits, bytes;
    /* InTkt, 0 without tickets, and as its code. */
    __u64 tickets;
    __u32 code, random, rounding;
};

/* ExpectTkt / InTkt of a packet, with the values that it follows from. */
struct worth {
    /* InTkt per unit, Q16. */
    __u64 worth;
    /* ExpectTkt per unit, Q16, 0 if unknown; and ExpectTkt / InTkt, Q32. */
    __u64 expect, lack;
    /* Counted bytes, Q16. */
    __u64 bytes;
};

/* In addition to the verdicts of core.h: dropped since the average is too high. */
#define FORCED_OUT 3

enum zone { FREE, FORCED, CURVE };

struct judgement {
    enum zone zone;
    /* Q32. */
    __u64 p;
};

/* The following functions are not inlined, so that the verifier walks each of them once. */
#define FUNCTION __attribute__((noinline))

INLINE __u64 bits_of(__u64 value)
{
    return highest_bit(value) + 1;
}

/* a / b in Q32, at most 2^63. */
FUNCTION __u64 ratio(__u64 a, __u64 b)
{
    __u64 whole = b ? a / b : ~0ULL;
    if (whole >> 31)
        return 1ULL << 63;
    __u64 cut = bits_of(b) > 32 ? bits_of(b) - 32 : 0;
    return (whole << 32) + (((a - whole * b) >> cut) << 32) / (b >> cut);
}

/* x^n in Q32, for n up to 16, by squaring: five steps. Saturates at 2^64 - 1. */
FUNCTION __u64 power(__u64 x, __u64 n)
{
    __u64 product = ONE;
    for (int i = 0; i < 5; i++) {
        if (n >> i & 1)
            product = mul_32_saturating(product, x);
        x = mul_32_saturating(x, x);
    }
    return product;
}

/* (1 - w)^m in Q64. */
FUNCTION __u64 kept_after(__u64 w, __u64 m)
{
    __u64 kept = ~0ULL, base = ~w;
    for (int i = 0; i < 48 && m; i++) {
        if (m & 1)
            kept = mul_64(kept, base) | 1;
        base = mul_64(base, base) | 1;
        m >>= 1;
    }
    return kept;
}

/* The contents of a window after `t`: Avg_rate W = (Avg_rate W + size) W / (T + W). */
INLINE __u64 held_after(__u64 held, __u64 t, __u64 window)
{
    return held - mul_64(held, t >> 47 ? ~0ULL : t * (~0ULL / (window + t)));
}

INLINE __u64 held(__u64 sum)
{
    return sum < MOST_HELD ? sum : MOST_HELD;
}

/* ExpectTkt per unit in Q16; 0 before any packet was counted. */
INLINE __u64 expected(const struct state *state)
{
    /* Q20 over Q16 and the unit of 2^16 bytes: 2^28. */
    __u64 bytes = state->bytes;
    if (!bytes)
        return 0;
    __u64 whole = state->tickets / bytes, cut = bits_of(bytes) > 36 ? bits_of(bytes) - 36 : 0;
    if (whole >> 31)
        return 1ULL << 59;
    return (whole << 28) + (((state->tickets - whole * bytes) >> cut) << 28) / (bytes >> cut);
}

/* Adds a label to MinTkt, and returns the minimum of the window. */
INLINE __u64 least(struct state *state, const struct settings *s, __u64 now, __u64 label)
{
    __u64 number = now / s->half;
    if (number != state->number) {
        state->before = number == state->number + 1 ? state->least : NO_LABEL;
        state->least = NO_LABEL;
        state->number = number;
    }
    if (label < state->least)
        state->least = label;
    return state->least < state->before ? state->least : state->before;
}

INLINE struct worth worth_of(const struct settings *s, const struct arrival *p)
{
    __u64 bytes = s->flags & PER_BYTE ? p->bytes : UNIT;
    struct worth worth = { .worth = (p->tickets << 32) / bytes, .bytes = bytes << 16, .lack = ONE };
    if (!worth.worth)
        worth.worth = 1;
    return worth;
}

/* Advances both windows to `now`, with the tickets and bytes that arrived. */
INLINE void move(struct state *state, const struct settings *s, __u64 now, __u64 tickets, __u64 bytes)
{
    __u64 t = now > state->front ? now - state->front : 0;
    state->tickets = held_after(held(state->tickets + tickets), t, s->window);
    state->bytes = held_after(held(state->bytes + bytes), t, s->window);
    state->front = now;
}

/* Computes ExpectTkt / InTkt of a packet with tickets. */
FUNCTION int compare(struct state *state, const struct settings *s, const struct arrival *p, struct worth *worth,
                     struct ticket_counts *c)
{
    if (!state || !s || !p || !worth || !c)
        return 0;
    c->labelled++;
    c->tickets += p->tickets;
    *worth = worth_of(s, p);
    /* Labels are compared in their encoded precision. */
    __u64 label = s->flags & PER_BYTE ? label_decode(label_encode(worth->worth)) : p->tickets;
    __u64 min_tkt = least(state, s, p->now, label), expect;
    min_tkt = (min_tkt > 1 ? min_tkt : 1) << 16;
    if (s->flags & SHARE) {
        /* The minimum is correct: flows with larger labels get the same division of the link for any
         * smaller ExpectTkt. */
        expect = expected(state);
        expect = expect > min_tkt ? expect : min_tkt;
    } else {
        if (!s->k || worth->worth < mul_32_saturating(min_tkt, s->k << 16))
            move(state, s, p->now, p->tickets << 20, worth->bytes);
        else
            c->filtered++;
        expect = expected(state);
    }
    worth->expect = expect;
    if (expect)
        worth->lack = ratio(expect, worth->worth);
    return 0;
}

/* InTkt min(1, ExpectTkt / InTkt) in Q20: at most the expected tickets for these bytes. */
INLINE __u64 due(const struct arrival *p, const struct worth *worth)
{
    __u64 own = p->tickets << 20, expected = mul_32_saturating(worth->expect << 4, worth->bytes);
    return worth->expect && expected < own ? expected : own;
}

/* The probability `p` after `count` packets without a drop. */
INLINE __u64 spread(__u64 p, __u64 count, __u64 flags)
{
    __u64 sum = mul_32_saturating(p, count << 32);
    if (sum >= 2 * ONE || (!(flags & WAIT) && sum >= ONE))
        return ONE;
    if (p >= ONE)
        p = ONE - 1;
    if (!(flags & WAIT))
        return ratio(p, ONE - sum);
    return sum < ONE ? 0 : ratio(p, 2 * ONE - sum);
}

INLINE __u64 at_most_one(__u64 p)
{
    return p < ONE ? p : ONE;
}

/* p_b of the average, Q32. */
INLINE __u64 curve(const struct settings *s, __u64 average)
{
    if (average >= s->max_th)
        return at_most_one(s->max_p + mul_64(average - s->max_th, s->gentle));
    return at_most_one(mul_64(average - s->min_th, s->slope));
}

/* The drop probability of a packet with ExpectTkt / InTkt = `lack`, after `count` packets; ALONE: without
 * a count. */
#define ALONE (~0ULL)
FUNCTION __u64 probability(const struct settings *s, __u64 average, __u64 lack, __u64 count)
{
    if (!s)
        return 0;
    __u64 kept = lack ? ratio(s->keep, lack) : ONE, most;
    /* Above MaxThresh a packet needs as many times more tickets. */
    if (average > s->max_th)
        kept = mul_32_saturating(kept, ratio(s->max_th, average));
    most = kept < ONE ? ONE - kept : 0;
    if (!most)
        return 0;
    __u64 p = curve(s, average), factor = s->flags & FACTOR ? power(lack, s->n) : ONE;
    if (s->flags & NO_COUNT || count == ALONE)
        p = mul_32_saturating(p, factor);
    else if (s->flags & AFTER)
        p = mul_32_saturating(spread(p, count, s->flags), factor);
    else
        p = spread(at_most_one(mul_32_saturating(p, factor)), count, s->flags);
    return p < most ? p : most;
}

/* Counts an arrival, and returns the decision that follows from the average. */
INLINE struct judgement judge(struct state *state, const struct settings *s, __u64 wait, __u64 lack)
{
    struct judgement judgement = { .zone = FREE };
    /* Bounded so that the product with p fits. */
    if (state->count < 1 << 30)
        state->count++;
    if (state->average <= s->min_th || wait <= s->full) {
        state->above = 0;
    } else if (state->average >= s->ceiling) {
        judgement.zone = FORCED;
    } else if (!state->above) {
        state->above = 1;
        state->count = 1;
    } else {
        judgement.zone = CURVE;
        judgement.p = probability(s, state->average, lack, state->count);
    }
    return judgement;
}

/* Updates the average queue for idle time and for the queue that a packet finds. */
FUNCTION int observe(struct state *state, const struct settings *s, __u64 now, __u64 wait)
{
    if (!state || !s)
        return 0;
    if (!wait) {
        /* During idle time, small packets could have been sent, each of which would have seen an empty
         * queue. */
        __u64 from = state->empty > state->resumed ? state->empty : state->resumed;
        __u64 idle = now > from ? now - from : 0, m;
        m = s->mean_packet ? (idle >> 47 ? 1ULL << 63 : idle << 16) / s->mean_packet : 0;
        if (m)
            state->average = mul_64(state->average, kept_after(s->w_q, m));
        state->resumed = now;
    }
    /* 1993, eq. (1). */
    state->average = state->average - mul_64(state->average, s->w_q) + mul_64(wait << 24, s->w_q);
    return 0;
}

/* Updates InTktRate for an arriving packet with tickets. */
INLINE void arrive(struct state *state, const struct settings *s, const struct arrival *p)
{
    __u64 t = p->now > state->arrived_at ? p->now - state->arrived_at : 0;
    state->arrived = held_after(held(state->arrived + (p->tickets << 20)), t, s->in_window);
    state->arrived_at = p->now;
}

/* Moves the rate in effect towards the issue rate, as an average over the window would. */
INLINE void approach(struct state *state, const struct settings *s, __u64 now)
{
    __u64 gap = now > state->changed ? now - state->changed : 0, sum = s->issue_window + gap;
    __u64 part = !sum || gap >> 47 ? ~0ULL : gap * (~0ULL / sum);
    if (state->effective < s->issued)
        state->effective += mul_64(s->issued - state->effective, part);
    else
        state->effective -= mul_64(state->effective - s->issued, part);
    if (part >= ~0ULL - sum)
        state->effective = s->issued;
    state->changed = now;
}

/* OutTktRate / ActualTktRate, within its bounds, Q32. */
INLINE __u64 policing(const struct state *state, const struct settings *s, __u64 now)
{
    __u64 t = now > state->written_at ? now - state->written_at : 0;
    __u64 due = mul_32_saturating(state->effective << 4, s->policing_seconds);
    __u64 written = held_after(state->written, t, s->policing_window);
    if (!(due | written))
        return ONE;
    __u64 factor = ratio(due, written);
    factor = factor < s->bound ? factor : s->bound;
    return factor > s->least_bound ? factor : s->least_bound;
}

/* The tag for a number of tickets in Q16. */
INLINE __u64 tag_of(const struct settings *s, __u64 tickets, __u32 random)
{
    if (s->flags & STOCHASTIC)
        tickets += random >> 16;
    if (s->flags & (STOCHASTIC | DOWN))
        tickets &= ~0xffffULL;
    __u64 tag = s->flags & FLOATING ? label_decode(label_encode(tickets)) : (tickets + (1 << 15)) >> 16;
    tag = tag < s->largest ? tag : s->largest;
    return tag ? tag : 1;
}

/* The tickets that a packet with `tickets` leaves with: InTkt OutTktRate / InTktRate OutTktRate /
 * ActualTktRate. */
FUNCTION __u64 exchanged(struct state *state, const struct settings *s, __u64 now, __u64 tickets, __u32 random)
{
    if (!state || !s)
        return 1;
    /* The tickets issued at the start count as a full window from the first packet on. */
    if (!state->written_at)
        state->written_at = state->changed = now;
    approach(state, s, now);
    /* A packet is worth at most the tickets issued in one window. */
    __u64 share = at_most_one(ratio(tickets << 20, state->arrived));
    __u64 worth = mul_32_saturating(mul_32_saturating(state->effective, s->in_seconds), share);
    worth = mul_32_saturating(worth, policing(state, s, now));
    __u64 tag = tag_of(s, worth >> 60 ? 1ULL << 60 : worth, random);
    __u64 t = now > state->written_at ? now - state->written_at : 0;
    __u64 counted = tag < MOST_TICKETS ? tag : MOST_TICKETS;
    state->written = held_after(held(state->written + (counted << 20)), t, s->policing_window);
    state->written_at = now;
    return tag;
}

/* The label of a passing packet: the tickets of the packets that were not spared, or the tickets of the
 * next currency. */
INLINE __u32 outgoing(struct state *state, const struct settings *s, const struct arrival *p, __u64 p_drop,
                      struct ticket_counts *c)
{
    __u32 code = p->code;
    __u64 tickets = p->tickets;
    if (p_drop && s->flags & RELABEL) {
        code = label_encode(ratio(p->tickets << 16, ONE - p_drop));
        tickets = label_decode(code);
        tickets = tickets < MOST_TICKETS ? tickets : MOST_TICKETS;
    }
    if (!(s->flags & EXCHANGE))
        return code;
    __u64 tag = exchanged(state, s, p->now, tickets, p->rounding);
    c->written += tag;
    return label_encode(tag << 16);
}

/* Merges the contributions of other processors made while this or an earlier processor held the state:
 * packets that no average includes yet. */
INLINE void take_up(struct state *state, const struct settings *s)
{
    if (!(state->missed_count | state->missed_passed))
        return;
    state->count += __sync_lock_test_and_set(&state->missed_count, 0);
    state->tickets = held(state->tickets + __sync_lock_test_and_set(&state->missed_tickets, 0));
    state->bytes = held(state->bytes + __sync_lock_test_and_set(&state->missed_bytes, 0));
    state->arrived = held(state->arrived + __sync_lock_test_and_set(&state->missed_arrived, 0));
    state->written = held(state->written + __sync_lock_test_and_set(&state->missed_written, 0));
    joined(&state->empty, state->last, s->per_bit, __sync_lock_test_and_set(&state->missed_passed, 0));
}

/* The verdict on a packet; `code` becomes its new label. */
INLINE int admit(struct state *state, const struct settings *s, const struct arrival *p, struct ticket_counts *c,
                          __u32 *code)
{
    __u64 wait = waiting(&state->empty, &state->last, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    struct worth worth = { .lack = ONE };
    observe(state, s, p->now, wait);
    if (p->tickets && s->flags & EXCHANGE)
        arrive(state, s, p);
    if (p->tickets)
        compare(state, s, p, &worth, c);
    struct judgement judgement = judge(state, s, wait, worth.lack);
    state->last = p->now;
    int full = wait + takes > s->limit, dropped = judgement.zone == FORCED;
    if (judgement.zone == CURVE) {
        c->judged++;
        dropped = p->random < judgement.p;
    }
    if (p->tickets && s->flags & SHARE)
        move(state, s, p->now, due(p, &worth), full || dropped ? 0 : worth.bytes);
    if (full || dropped) {
        state->count = 0;
        if (!full && judgement.zone == FORCED) {
            c->forced++;
            return FORCED_OUT;
        }
        return full ? OVERFLOW : EARLY;
    }
    state->empty = p->now + wait + takes;
    if (p->tickets)
        *code = outgoing(state, s, p, judgement.p, c);
    return PASS;
}

/* The decision while another processor holds the state: by the current values, each packet by itself. */
INLINE int admit_meanwhile(struct state *state, const struct settings *s, const struct arrival *p,
                                    struct ticket_counts *c, __u32 *code)
{
    __u64 wait = waiting(&state->empty, &state->last, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    struct worth worth = { .lack = ONE };
    if (p->tickets) {
        __u64 expect = expected(state);
        worth = worth_of(s, p);
        worth.expect = expect;
        worth.lack = expect ? ratio(expect, worth.worth) : ONE;
        c->labelled++;
        c->tickets += p->tickets;
    }
    __u64 average = state->average, p_drop = 0;
    int full = wait + takes > s->limit, dropped = 0;
    __sync_fetch_and_add(&state->missed_count, 1);
    if (average > s->min_th && wait > s->full && average < s->ceiling) {
        p_drop = probability(s, average, worth.lack, ALONE);
        c->judged++;
        dropped = p->random < p_drop;
    } else if (average >= s->ceiling && wait > s->full && !full) {
        c->forced++;
        return FORCED_OUT;
    }
    if (p->tickets && s->flags & EXCHANGE)
        __sync_fetch_and_add(&state->missed_arrived, p->tickets << 20);
    if (p->tickets) {
        __sync_fetch_and_add(&state->missed_tickets, s->flags & SHARE ? due(p, &worth) : p->tickets << 20);
        if (!(s->flags & SHARE) || !(full || dropped))
            __sync_fetch_and_add(&state->missed_bytes, worth.bytes);
    }
    if (full || dropped)
        return full ? OVERFLOW : EARLY;
    __sync_fetch_and_add(&state->missed_passed, p->bits);
    if (p->tickets) {
        /* The tickets written count from the next packet on. */
        struct state alone = *state;
        *code = outgoing(&alone, s, p, p_drop, c);
        if (s->flags & EXCHANGE)
            __sync_fetch_and_add(&state->missed_written, label_decode(*code) << 20);
    }
    return PASS;
}

/* The tickets of a frame, at least one; 0 without a ticket label. */
INLINE __u64 tickets_of(__u32 word)
{
    if (word >> LABEL_BITS != KIND_TICKETS)
        return 0;
    __u64 tickets = label_decode(word & LABEL_MAX);
    tickets = tickets ? tickets : 1;
    return tickets < MOST_TICKETS ? tickets : MOST_TICKETS;
}

INLINE int handle(struct __sk_buff *skb, const struct settings *s, struct state *kept, struct ticket_counts *c)
{
    struct packet packet;
    if (!arrives(skb, s->overhead, &c->all, &packet))
        return PASSES;
    struct arrival p = {
        .bits = 8 * packet.bytes,
        .bytes = packet.bytes,
        .tickets = tickets_of(packet.word),
        .code = packet.word & LABEL_MAX,
    };
    if (!p.tickets)
        c->all.unlabelled++;
    int is_busy = __sync_lock_test_and_set(&kept->busy, 1);
    if (!is_busy)
        take_up(kept, s);
    /* The clock is read after the contributions of other processors are merged, since their packets came
     * before, and again after a long preemption. */
    p.now = time_of(skb);
    p.random = test_hook ? skb->cb[2] : bpf_get_prandom_u32();
    p.rounding = test_hook ? skb->cb[3] : bpf_get_prandom_u32();
    if (!is_busy && p.now > kept->last + STOPPED)
        take_up(kept, s);
    if (p.now < kept->last)
        p.now = kept->last;
    __u32 code = p.code;
    int verdict;
    if (is_busy) {
        verdict = admit_meanwhile(kept, s, &p, c, &code);
        c->all.meanwhile++;
    } else {
        verdict = admit(kept, s, &p, c, &code);
        /* An exchange instead of a store: earlier writes become visible before it. */
        (void)__sync_lock_test_and_set(&kept->busy, 0);
    }
    if (verdict != PASS) {
        if (verdict == EARLY)
            c->all.early++;
        else if (verdict == OVERFLOW)
            c->all.overflow++;
        return TC_ACT_SHOT;
    }
    if (code != p.code) {
        wire_write(&packet.wire, KIND_TICKETS, first_code(&packet.wire, code, packet.segments));
        c->all.relabelled++;
    }
    return PASSES;
}

SECTION("classifier") int tred(struct __sk_buff *skb)
{
    __u32 zero = 0;
    struct two_settings *s = bpf_map_lookup_elem(&settings, &zero);
    struct state *kept = bpf_map_lookup_elem(&state, &zero);
    struct ticket_counts *c = bpf_map_lookup_elem(&counts, &zero);
    if (!s || !kept || !c)
        return PASSES;
    __u32 slot = begin(&c->all, &s->current);
    return end(&c->all, handle(skb, &s->of[slot], kept, c));
}
