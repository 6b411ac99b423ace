/* The core of HCSFQ as a tc program at the egress of a device: the link is divided among customers, and
 * the part of each customer among its flows.
 *
 * Yu, Wu, Braverman, Stoica, Jin, "Twenty years after: hierarchical core-stateless fair queueing", NSDI
 * 2021: labels carry the rates of flows, and a router keeps state for the inner nodes of the tree. The
 * order and the readings are those of crates/core/src/aqm/hcsfq.rs; the equations of each node, and
 * deviations: share.h.
 *
 * The state is one node for the root and one for each customer, in an array that user space sizes; packets
 * add no state. The customer of a packet is the customer of the longest prefix that contains its inside
 * address.
 *
 * src/hierarchy.rs writes `settings`, `weights` and `prefixes` and reads the other maps; the order of the
 * fields is the same there.
 */
#define SHARES_ARE_CALLED
#include "prefix.h"
#include "share.h"

struct hierarchy {
    struct settings link;
    /* The time constant K of the rates of customers. */
    struct constant k;
    /* Time constant of their means in ns, 0: none; 2^51 10^9 / `credit`. */
    __u64 credit, per_credit;
    /* 1 / the smallest weight of a customer, Q16. */
    __u64 most;
    /* Whether the inside address is the destination. */
    __u64 is_destination;
    /* Whether a label of 1 marks a debt, which a guarantee covers later. */
    __u64 pays_debts;
};

struct weight {
    /* The weight W and 1/W, Q32. */
    __u64 w, inverse;
};

/* The state of a customer, updated by the processor that holds the root. */
struct customer {
    /* The share FS_n of its flows in C_n. */
    struct link share;
    /* C_n, Q16; 0 before the first packet. */
    __u64 c;
    /* A_n and its mean over `credit`, Q16; bits that arrived at the instant of the last average; this
     * instant in ns. */
    __u64 arrival, mean, pending, last;
    /* The last label of the customer as a flow of the root, Q16. */
    __u64 label;
    /* Packets, bits and drops, summed over all processors. */
    __u64 packets, bits, dropped;
};

/* G of all customers, updated by guaranteed packets only: Q16, bits, ns. `missed` as in share.h. */
struct covered {
    __u64 rate, pending, last, missed;
};

TWO_OF(two_hierarchies, struct hierarchy);

ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct two_hierarchies) settings SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct link) link SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_ARRAY, struct covered) covered SECTION(".maps");
ARRAY_OF_ONE(BPF_MAP_TYPE_PERCPU_ARRAY, struct counts) counts SECTION(".maps");
/* Indexed by the number of the customer, 0 for all others. User space sets the number of customers. Each
 * customer has two weights, one for each of the two sets of settings. */
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 2);
    MAP_TYPE(key, __u32);
    MAP_TYPE(value, struct weight);
} weights SECTION(".maps");
struct {
    MAP_NUMBER(type, BPF_MAP_TYPE_ARRAY);
    MAP_NUMBER(max_entries, 1);
    MAP_TYPE(key, __u32);
    MAP_TYPE(value, struct customer);
} customers SECTION(".maps");

/* The nodes and settings that a decision uses. */
struct tree {
    const struct hierarchy *h;
    struct link *root;
    struct covered *covered;
    struct customer *customer;
    const struct weight *weight;
};

/* The average after a further time `t`, with `pending` bits. */
SHARED __u64 rate_after(__u64 t, __u64 rate, __u64 pending, const struct constant *of)
{
    if (!of)
        return 0;
    struct gap gap = gap_of(t, of->k, of->inverse);
    return averaged(rate, pending, divisible(t), &gap, of->per_k);
}

/* A_n / W_n as a label encodes it, for a packet that arrived; `unknown` if A_n is not known yet. */
SHARED __u64 customer_label(struct customer *n, const struct weight *weight, const struct hierarchy *h, const struct arrival *p,
                            __u64 unknown)
{
    if (!n || !weight || !h || !p)
        return 0;
    __u64 t = p->now > n->last ? p->now - n->last : 0, rate;
    n->pending = pended(n->pending + p->bits);
    if (t) {
        n->arrival = rate_after(t, n->arrival, n->pending, &h->k);
        n->pending = 0;
        n->last = p->now;
    }
    rate = n->arrival;
    if (h->credit) {
        /* The mean over `credit` is divided by 1 + T / credit. At least rate / 1.5 counts. */
        __u64 mean = n->mean - mul_64(n->mean, t >> 47 ? ~0ULL : t * (~0ULL / (h->credit + t)));
        n->mean = mean + mul_64(p->bits << 29, h->per_credit);
        __u64 least = rate / 3 * 2;
        if (n->mean < rate)
            rate = n->mean > least ? n->mean : least;
    }
    rate = rate ? mul_32_saturating(rate, weight->inverse) : unknown;
    n->label = label_decode(label_encode(rate > 1 << 16 ? rate : 1 << 16)) << 16;
    return n->label;
}

/* C_n: max(W_n FS, G_n), and C as long as the total arrival rate does not exceed C. At least 1 b/s, since
 * C_n is a divisor. */
INLINE __u64 capacity(const struct tree *tree)
{
    __u64 c = tree->h->link.rate;
    if (!tree->root->known || !tree->root->congested)
        return c;
    __u64 part = mul_32_saturating(tree->root->alpha, tree->weight->w), covered = tree->customer->share.guaranteed;
    part = part > covered ? part : covered;
    part = part < c ? part : c;
    return part > 1 << 16 ? part : 1 << 16;
}

/* Scales a rate, bounded so that the sum of two fits. */
INLINE __u64 scaled(__u64 rate, __u64 ratio)
{
    __u64 product = mul_32_saturating(rate, ratio);
    return product >> 62 ? 1ULL << 62 : product;
}

INLINE __u64 bits_beyond(__u64 c)
{
    __u64 bits = highest_bit(c) + 1;
    return bits > 31 ? bits - 31 : 0;
}

/* Sets C_n. If more arrives than C_n, FS_n and F change at once, as if C_n had been so for long. */
INLINE void set_part(struct customer *n, __u64 c)
{
    if (c != n->c && n->share.congested) {
        __u64 cut = bits_beyond(n->c), whole = c / n->c;
        __u64 ratio = whole >> 31 ? 1ULL << 63 : whole << 32 | (((c - whole * n->c) >> cut) << 32) / (n->c >> cut);
        n->share.alpha = scaled(n->share.alpha, ratio);
        n->share.accepted = scaled(n->share.accepted, ratio);
        n->share.pending_accepted = pended(mul_32_saturating(n->share.pending_accepted, ratio));
    }
    n->c = c;
}

/* Updates the root's estimate. Whether the packet would pass if its customer were a single flow is drawn
 * at random, and not kept. */
INLINE void update_root(const struct tree *tree, const struct arrival *p, __u64 counted, int calm, __u32 random)
{
    const struct settings *s = &tree->h->link;
    struct link *root = tree->root;
    struct customer *n = tree->customer;
    struct arrival as_flow = { .now = p->now, .bits = p->bits, .random = random };
    as_flow.label = customer_label(n, tree->weight, tree->h, p, root->accepted / 2);
    int dropped = is_drawn(root, &as_flow);
    if (root->known && mul_32_saturating(root->alpha, tree->weight->w) < n->share.guaranteed) {
        /* The customer has the rate that its guarantees cover: this part passes and is set aside, the rest
         * does not pass. */
        dropped = counted != 0;
        if (!counted)
            as_flow.label = 0;
    }
    average(root, s, &as_flow, dropped);
    struct divided whole = whole_link(s);
    whole.most = tree->h->most;
    estimate(root, s, &whole, &as_flow, calm);
}

INLINE void update_covered(const struct tree *tree, const struct arrival *p)
{
    struct covered *covered = tree->covered;
    covered->pending = pended(covered->pending + p->bits);
    if ((__s64)(p->now - covered->last) <= 0)
        return;
    covered->rate = rate_after(p->now - covered->last, covered->rate, covered->pending, &tree->h->link.k_alpha);
    covered->pending = 0;
    covered->last = p->now;
}

/* Whether guaranteed packets take more than a thousandth of the link. */
INLINE int has_guarantees(const struct tree *tree, __u64 now)
{
    const struct covered *covered = tree->covered;
    const struct settings *s = &tree->h->link;
    __u64 rate = covered->rate;
    if (!(rate | covered->pending))
        return 0;
    if ((__s64)(now - covered->last) > 0)
        rate = rate_after(now - covered->last, rate, covered->pending, &s->k_alpha);
    return rate > s->rate / 1000;
}

/* Whether the virtual queue has no room, or only the room reserved for guaranteed packets. */
INLINE int has_no_room(const struct tree *tree, const struct arrival *p, __u64 wait, __u64 takes)
{
    const struct settings *s = &tree->h->link;
    __u64 open = p->label > 1 << 16 ? s->excess_limit : s->debt_limit;
    return wait + takes > s->limit || (p->label && wait >= open && has_guarantees(tree, p->now));
}

/* The part of a label that is counted: a guarantee covers debts too, if there are guarantees. */
INLINE __u64 counted_label(const struct tree *tree, const struct arrival *p)
{
    int is_debt = tree->h->pays_debts && p->label <= 1 << 16 && tree->customer->share.guaranteed;
    return is_debt ? 0 : p->label;
}

/* The decision of the processor that holds the estimates. `share` becomes the updated FS_n, if it is
 * known. */
INLINE enum verdict admit(const struct tree *tree, struct arrival *p, __u32 random, __u64 *share)
{
    const struct settings *s = &tree->h->link;
    struct link *root = tree->root;
    struct customer *n = tree->customer;
    if (!n->c) {
        n->c = s->rate;
        n->share.congested = 1;
        n->share.decreases = DECREASES;
    }
    __u64 wait = waiting(&root->empty, &root->last, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    int calm = wait <= s->threshold;
    __u64 counted = counted_label(tree, p);
    update_root(tree, p, counted, calm, random);
    if (!p->label)
        update_covered(tree, p);
    set_part(n, capacity(tree));
    struct arrival of_flow = *p;
    of_flow.label = counted;
    int dropped = is_drawn(&n->share, &of_flow);
    average(&n->share, s, &of_flow, dropped);
    struct divided part = { .c = n->c, .whole = s->rate, .cut = bits_beyond(n->c), .most = s->most };
    estimate(&n->share, s, &part, &of_flow, calm);
    if (dropped)
        return EARLY;
    if (has_no_room(tree, p, wait, takes)) {
        overflow(root, s);
        if (n->share.congested)
            overflow(&n->share, s);
        return OVERFLOW;
    }
    root->empty = p->now + wait + takes;
    *share = n->share.known ? n->share.alpha : 0;
    return PASS;
}

INLINE void miss(struct missed *missed, __u64 bits, int is_covered, int dropped)
{
    if (is_covered) {
        __sync_fetch_and_add(&missed->guaranteed, bits);
        return;
    }
    __sync_fetch_and_add(&missed->arrival, bits);
    if (!dropped)
        __sync_fetch_and_add(&missed->accepted, bits);
}

/* The decision while another processor holds the estimates: by the current shares; the next packets merge
 * what it counts. */
INLINE enum verdict admit_meanwhile(const struct tree *tree, struct arrival *p, __u32 random, __u64 *share)
{
    const struct settings *s = &tree->h->link;
    struct customer *n = tree->customer;
    __u64 wait = waiting(&tree->root->empty, &tree->root->last, p->now), takes = mul_32_saturating(s->per_bit, p->bits);
    struct arrival of_flow = *p, as_flow = *p;
    of_flow.label = counted_label(tree, p);
    as_flow.label = n->label;
    as_flow.random = random;
    int dropped = is_drawn(&n->share, &of_flow), full = has_no_room(tree, p, wait, takes);
    int is_above = tree->root->known && mul_32_saturating(tree->root->alpha, tree->weight->w) < n->share.guaranteed;
    miss(&tree->root->missed, p->bits, is_above && !of_flow.label, is_above || is_drawn(tree->root, &as_flow));
    miss(&n->share.missed, p->bits, !of_flow.label, dropped);
    if (!p->label)
        __sync_fetch_and_add(&tree->covered->missed, p->bits);
    if (dropped || full)
        return dropped ? EARLY : OVERFLOW;
    __sync_fetch_and_add(&tree->root->missed.passed, p->bits);
    *share = n->share.known ? n->share.alpha : 0;
    return PASS;
}

/* Merges the contributions of other processors made while this or an earlier processor held the root; a
 * customer's are merged when its next packet arrives. */
INLINE void take_up_all(const struct tree *tree)
{
    struct customer *n = tree->customer;
    const struct missed *of = &n->share.missed;
    __u64 before = n->share.pending_arrival + n->share.pending_guaranteed;
    take_up(tree->root, &tree->h->link);
    if (of->arrival | of->guaranteed) {
        take_up(&n->share, &tree->h->link);
        __u64 bits = n->share.pending_arrival + n->share.pending_guaranteed - before;
        n->pending = pended(n->pending + bits);
        if (tree->h->credit)
            n->mean += mul_64(bits << 29, tree->h->per_credit);
    }
    if (tree->covered->missed)
        tree->covered->pending = pended(tree->covered->pending + __sync_lock_test_and_set(&tree->covered->missed, 0));
}

/* The verdict on a packet, once its time and random numbers have been read. */
INLINE enum verdict decide(struct __sk_buff *skb, const struct tree *tree, struct arrival *p, struct counts *c, __u64 *share)
{
    struct link *root = tree->root;
    int is_busy = __sync_lock_test_and_set(&root->busy, 1);
    if (!is_busy)
        take_up_all(tree);
    /* As in csfq.c: read after the contributions of other processors are merged, and again after a long
     * preemption. */
    p->now = time_of(skb);
    p->random = test_hook ? skb->cb[2] : bpf_get_prandom_u32();
    __u32 random = test_hook ? skb->cb[3] : bpf_get_prandom_u32();
    if (!is_busy && p->now > root->last + STOPPED)
        take_up_all(tree);
    if (p->now < root->last)
        p->now = root->last;
    enum verdict verdict;
    if (is_busy) {
        verdict = admit_meanwhile(tree, p, random, share);
        c->meanwhile++;
    } else {
        verdict = admit(tree, p, random, share);
        /* An exchange instead of a store: earlier writes become visible before it. */
        (void)__sync_lock_test_and_set(&root->busy, 0);
    }
    return verdict;
}

/* Finds the customer of a packet, and completes the nodes and settings of the decision. */
INLINE int find_customer(struct tree *tree, __u32 number, __u32 slot)
{
    __u32 of_weight = 2 * number + slot;
    tree->customer = bpf_map_lookup_elem(&customers, &number);
    tree->weight = bpf_map_lookup_elem(&weights, &of_weight);
    return tree->customer && tree->weight;
}

INLINE int handle(struct __sk_buff *skb, struct tree *tree, __u32 slot, struct counts *c)
{
    const struct settings *s = &tree->h->link;
    struct packet packet;
    struct arrival p;
    int passes;
    if (!is_shared(skb, s, c, &packet, &p, &passes))
        return passes;
    __u32 *number = prefix_of(&packet.wire, tree->h->is_destination);
    if (!find_customer(tree, number ? *number : 0, slot) && !find_customer(tree, 0, slot))
        return PASSES;
    __u64 share = 0;
    enum verdict verdict = decide(skb, tree, &p, c, &share);
    __sync_fetch_and_add(&tree->customer->packets, 1);
    __sync_fetch_and_add(&tree->customer->bits, p.bits);
    if (verdict != PASS)
        __sync_fetch_and_add(&tree->customer->dropped, 1);
    return carried_out(&packet, s, c, verdict, &p, share);
}

SECTION("classifier") int hcsfq(struct __sk_buff *skb)
{
    __u32 zero = 0;
    struct two_hierarchies *h = bpf_map_lookup_elem(&settings, &zero);
    struct tree tree = { .root = bpf_map_lookup_elem(&link, &zero), .covered = bpf_map_lookup_elem(&covered, &zero) };
    struct counts *c = bpf_map_lookup_elem(&counts, &zero);
    if (!h || !tree.root || !tree.covered || !c)
        return PASSES;
    __u32 slot = begin(c, &h->current);
    tree.h = &h->of[slot];
    return end(c, handle(skb, &tree, slot, c));
}
