/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared code of the kernel's counterparts of Freeport's network functions. A program includes this
 * file, defines `job` before or after it, and ends with PROGRAMS, which makes three programs of it.
 *
 *   xdp          the job alone, as it would be attached to an interface
 *   xdp.stamped  writes the next flow into the frame, runs the job, and removes the bytes that the
 *                job added in front, so that repeated runs on one frame have many flows
 *   xdp.stamp    only the writing and the removal, to measure their cost
 */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>

#define SECTION(name) __attribute__((section(name), used))
#define INLINE static __attribute__((always_inline)) inline

/* Map definitions, from which the bench's loader creates maps. */
struct map_definition {
	__u32 type, key_size, value_size, max_entries, map_flags;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*const map_update)(void *map, const void *key, const void *value, __u64 flags) =
	(void *)BPF_FUNC_map_update_elem;
static long (*const adjust_head)(struct xdp_md *context, int bytes) =
	(void *)BPF_FUNC_xdp_adjust_head;

/* The bytes of a frame without options from the time to live to the ports. */
struct stamp {
	__u64 half[2];
};
#define STAMP_OFFSET 22

struct state {
	__u32 next;	/* number of the next frame's stamp */
	__u32 count;	/* number of stamps */
	__u64 passed;	/* frames that the job let pass */
};

struct map_definition stamps SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct stamp), 1, 0
};
struct map_definition states SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct state), 1, 0
};

/* A five-tuple as in the packet; three bytes of the last word are 0. */
struct tuple {
	__u32 source, target;
	__u16 source_port, target_port;
	__u32 protocol;
};

/* A frame with complete Ethernet and IPv4 headers; 0 if there are none. */
struct packet {
	struct ethhdr *link;
	struct iphdr *network;
	void *end;
};

INLINE int find_packet(struct xdp_md *context, struct packet *packet)
{
	void *start = (void *)(long)context->data;

	packet->end = (void *)(long)context->data_end;
	packet->link = start;
	packet->network = (void *)(packet->link + 1);
	if ((void *)(packet->network + 1) > packet->end)
		return 0;
	if (packet->link->h_proto != __builtin_bswap16(ETH_P_IP))
		return 0;
	return packet->network->version == 4 && packet->network->ihl >= 5;
}

/* Finds the tuple of a packet: ports are 0 for fragments and packets without ports. */
INLINE int find_tuple(const struct packet *packet, struct tuple *tuple)
{
	const struct iphdr *network = packet->network;
	__u16 *ports = (void *)network + network->ihl * 4;

	tuple->source = network->saddr;
	tuple->target = network->daddr;
	tuple->protocol = network->protocol;
	tuple->source_port = tuple->target_port = 0;
	if (network->frag_off & __builtin_bswap16(0x3fff))
		return 1;
	if (network->protocol != 6 && network->protocol != 17)
		return 1;
	if ((void *)(ports + 2) > packet->end)
		return 0;
	tuple->source_port = ports[0];
	tuple->target_port = ports[1];
	return 1;
}

/* Writes the next stamp; returns the state, or 0 for a frame that is too short. */
INLINE struct state *write_stamp(struct xdp_md *context)
{
	void *start = (void *)(long)context->data, *end = (void *)(long)context->data_end;
	__u32 zero = 0, number;
	struct state *state = map_lookup(&states, &zero);
	struct stamp *stamp;
	__u64 *place = start + STAMP_OFFSET;

	if (!state)
		return 0;
	number = state->next;
	state->next = number + 1 == state->count ? 0 : number + 1;
	stamp = map_lookup(&stamps, &number);
	if (!stamp || (void *)(place + 2) > end)
		return 0;
	place[0] = stamp->half[0];
	place[1] = stamp->half[1];
	return state;
}

/* GROWTH is the number of bytes that the job adds in front of a frame that it passes. */
#define PROGRAMS(GROWTH)						\
	SECTION("xdp") int plain(struct xdp_md *context)		\
	{								\
		return job(context);					\
	}								\
	SECTION("xdp.stamped") int stamped(struct xdp_md *context)	\
	{								\
		struct state *state = write_stamp(context);		\
		int verdict;						\
									\
		if (!state)						\
			return XDP_ABORTED;				\
		verdict = job(context);					\
		if (verdict != XDP_TX)					\
			return verdict;					\
		state->passed++;					\
		if (GROWTH && adjust_head(context, GROWTH))		\
			return XDP_ABORTED;				\
		return verdict;						\
	}								\
	SECTION("xdp.stamp") int stamp_only(struct xdp_md *context)	\
	{								\
		if (!write_stamp(context))				\
			return XDP_ABORTED;				\
		if (GROWTH && adjust_head(context, 0))			\
			return XDP_ABORTED;				\
		return XDP_TX;						\
	}								\
	char program_license[] SECTION("license") = "Dual BSD/GPL"
