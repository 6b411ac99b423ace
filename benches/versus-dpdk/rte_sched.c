/* Processor time of DPDK's rte_sched for one packet in and one out, with a queue for each of many flows.
 *
 *     rte_sched EAL-ARGUMENTS -- PIPES
 *
 * A flow is a pipe: one port, one subport, PIPES pipes, of which only the first best-effort queue is used.
 * Two packets for each pipe stand in the queues. Each round writes the tree path of scattered pipes into a
 * burst of packets, enqueues the burst and dequeues as many; what was dequeued is enqueued again in turn.
 *
 * Comparable: the work of a queue for each of many flows, found from a number in the packet, with the same
 * standing backlog and the same order of flows as crates/core/benches/disciplines.rs.
 *
 * Not comparable: rte_sched is a strict hierarchy with token buckets of subport and pipe, set so that none
 * ever limits. Only they share the link between pipes: a pipe that may send is served until it is empty.
 * Beneath, it has WRR between four queues of a pipe, and a fixed array with tail drop for each queue. It has
 * no shared buffer and so no push-out, and no drop policy across flows. Its packets are mbufs of two cache
 * lines reached through pointers; it serves eight pipes at once with prefetches.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_sched.h>

#define BACKLOG 2        /* packets for each pipe, as in disciplines.rs */
#define QUEUE_SIZE 32    /* chosen: no queue comes near it; with 64, a million pipes crash (22.11) */
#define PACKET_BYTES 64  /* chosen: small, so that the rate never limits */
#define MIN_BURST 4      /* with bursts of one, some pipes starve: see README.md */
#define MAX_BURST 32     /* the burst usual with DPDK */
#define PACKETS 4000000u /* chosen: about a second for each measurement */
#define MAX_TRIES 1000   /* chosen: dequeues for one burst before the queues count as stuck */

/* Bytes per second of port, subport and pipe: 100 Gbit/s, or 88 bytes (64 and overhead) in 7 ns, faster than
 * any packet here is served. */
#define RATE UINT64_C(12500000000)

static void stop(const char *what, int error)
{
	fprintf(stderr, "rte_sched: %s: %s\n", what, rte_strerror(error < 0 ? -error : error));
	exit(1);
}

static struct rte_sched_port *build(uint32_t pipes)
{
	struct rte_sched_subport_profile_params subport_profile = {
		.tb_rate = RATE, .tb_size = 1000000, .tc_period = 10,
	};
	struct rte_sched_pipe_params pipe_profile = {
		.tb_rate = RATE, .tb_size = 1000000, .tc_period = 10, .tc_ov_weight = 1,
		.wrr_weights = { 1, 1, 1, 1 },
	};
	/* A size of zero turns a traffic class off: a pipe must then give it no rate, but a subport has to. */
	struct rte_sched_subport_params subport = {
		.n_pipes_per_subport_enabled = pipes,
		.pipe_profiles = &pipe_profile, .n_pipe_profiles = 1, .n_max_pipe_profiles = 1,
	};
	for (int class = 0; class < RTE_SCHED_TRAFFIC_CLASSES_PER_PIPE; class++)
		subport_profile.tc_rate[class] = RATE;
	pipe_profile.tc_rate[RTE_SCHED_TRAFFIC_CLASS_BE] = RATE;
	subport.qsize[RTE_SCHED_TRAFFIC_CLASS_BE] = QUEUE_SIZE;
	struct rte_sched_port_params params = {
		.name = "port", .socket = 0, .rate = RATE, .mtu = 1522,
		.frame_overhead = RTE_SCHED_FRAME_OVERHEAD_DEFAULT, .n_subports_per_port = 1,
		.subport_profiles = &subport_profile, .n_subport_profiles = 1, .n_max_subport_profiles = 1,
		.n_pipes_per_subport = pipes,
	};
	struct rte_sched_port *port = rte_sched_port_config(&params);
	if (port == NULL)
		stop("the port was refused", EINVAL);
	int error = rte_sched_subport_config(port, 0, &subport, 0);
	if (error != 0)
		stop("the subport was refused", error);
	for (uint32_t pipe = 0; pipe < pipes; pipe++) {
		error = rte_sched_pipe_config(port, 0, pipe, 0);
		if (error != 0)
			stop("a pipe was refused", error);
	}
	return port;
}

struct bench {
	struct rte_sched_port *port;
	uint32_t pipes;
	uint32_t next;        /* packets sent so far */
	uint64_t empty_tries; /* dequeues that gave fewer packets than asked for */
};

static void enqueue(struct bench *bench, struct rte_mbuf **packets, uint32_t burst)
{
	for (uint32_t i = 0; i < burst; i++) {
		/* The multiplier is 2^32 over the golden ratio: scatters as disciplines.rs does. */
		uint32_t pipe = ((bench->next++ * 0x9e3779b1u) >> 7) & (bench->pipes - 1);
		rte_sched_port_pkt_write(bench->port, packets[i], 0, pipe, RTE_SCHED_TRAFFIC_CLASS_BE, 0,
					 RTE_COLOR_GREEN);
	}
	if ((uint32_t)rte_sched_port_enqueue(bench->port, packets, burst) != burst)
		stop("a queue was full and dropped", ENOSPC);
}

static void dequeue(struct bench *bench, struct rte_mbuf **packets, uint32_t burst)
{
	uint32_t have = 0;
	for (uint32_t tries = 0; have < burst; tries++) {
		have += (uint32_t)rte_sched_port_dequeue(bench->port, packets + have, burst - have);
		bench->empty_tries += have < burst;
		if (tries == MAX_TRIES)
			stop("packets stand in the queues and none comes out", EAGAIN);
	}
}

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void rounds(struct bench *bench, struct rte_mbuf **spare, uint32_t burst, uint32_t packets)
{
	for (uint32_t i = 0; i < packets; i += burst) {
		enqueue(bench, spare, burst);
		dequeue(bench, spare, burst);
	}
}

int main(int argc, char **argv)
{
	int used = rte_eal_init(argc, argv);
	if (used < 0)
		stop("EAL", rte_errno);
	uint32_t pipes = argc - used == 2 ? (uint32_t)strtoul(argv[used + 1], NULL, 10) : 0;
	if (pipes == 0 || pipes > 1u << 20 || (pipes & (pipes - 1)) != 0) {
		fprintf(stderr, "usage: rte_sched EAL-ARGUMENTS -- PIPES (a power of two up to 1048576)\n");
		return 2;
	}

	struct rte_mempool *pool =
		rte_pktmbuf_pool_create("packets", BACKLOG * pipes + MAX_BURST, 0, 0, 0, SOCKET_ID_ANY);
	if (pool == NULL)
		stop("no memory for packets", rte_errno);
	struct bench bench = { .port = build(pipes), .pipes = pipes };

	struct rte_mbuf *spare[MAX_BURST];
	for (uint32_t i = 0; i < BACKLOG * pipes + MAX_BURST; i++) {
		struct rte_mbuf *packet = rte_pktmbuf_alloc(pool);
		if (packet == NULL)
			stop("no packet", ENOMEM);
		packet->pkt_len = PACKET_BYTES;
		if (i < MAX_BURST)
			spare[i] = packet;
		else
			enqueue(&bench, &packet, 1);
	}

	for (uint32_t burst = MIN_BURST; burst <= MAX_BURST; burst *= MAX_BURST / MIN_BURST) {
		/* Once around the backlog first, so that the order of packets in memory is that of the steady
		 * state. */
		rounds(&bench, spare, burst, BACKLOG * pipes);
		bench.empty_tries = 0;
		double start = cpu_seconds();
		rounds(&bench, spare, burst, PACKETS);
		double seconds = cpu_seconds() - start;
		printf("rte_sched pipes %" PRIu32 " burst %" PRIu32 " ns_per_packet %.1f short_dequeues %" PRIu64 "\n",
		       pipes, burst, seconds * 1e9 / PACKETS, bench.empty_tries);
	}
	rte_sched_port_free(bench.port);
	return 0;
}
