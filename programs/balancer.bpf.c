// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A load balancer: the backend of a flow is in a hash map; a new flow gets the next backend in
// turn. The frame goes to it in an NVGRE tunnel (RFC 7637): Ethernet, IPv4 and GRE headers with a
// key are put in front of the whole frame.

#include "peer.bpf.h"

struct backend {
	__u32 address;		/* end of the tunnel */
	__u32 key;		/* virtual subnet, in network byte order */
	__u8 target[ETH_ALEN];	/* of the next hop */
	__u16 spare;
};

struct settings {
	__u32 source;		/* start of the tunnel */
	__u32 backends;
	__u32 next;		/* the backend whose turn it is */
	__u8 link[ETH_ALEN];	/* our own address */
	__u16 spare;
};

struct gre {
	__u16 flags, protocol;
	__u32 key;
};

/* Bytes added in front of the frame. */
#define TUNNEL (sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct gre))

struct map_definition flows SECTION("maps") = {
	BPF_MAP_TYPE_HASH, sizeof(struct tuple), sizeof(__u32), 1048576, 0
};
struct map_definition backends SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct backend), 256, 0
};
struct map_definition settings SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct settings), 1, 0
};

/* Returns the number of the flow's backend. */
INLINE __u32 choose(const struct tuple *tuple, struct settings *own)
{
	__u32 *known = map_lookup(&flows, tuple);
	__u32 number;

	if (known)
		return *known;
	number = own->next;
	own->next = number + 1 >= own->backends ? 0 : number + 1;
	map_update(&flows, tuple, &number, BPF_ANY);
	return number;
}

/* Returns 8 bits of the flow for the end of the key, which switches use to choose a path. */
INLINE __u32 path_of(const struct tuple *tuple)
{
	__u32 ports = (__u32)tuple->target_port | (__u32)tuple->source_port << 16;
	__u32 mixed = __builtin_bswap32(tuple->source ^ tuple->target ^ ports);

	/* Ports are in network byte order: target first, once they are swapped as one word. */
	mixed ^= mixed >> 16;
	return (mixed ^ mixed >> 8) << 24;
}

/* Returns the checksum of a header that was built here, word by word. */
INLINE __u16 sum_of(const struct iphdr *network)
{
	const __u16 *words = (const void *)network;
	__u32 sum = 0;

	#pragma unroll
	for (int at = 0; at < 10; at++)
		sum += words[at];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum;
}

INLINE int job(struct xdp_md *context)
{
	struct packet packet;
	struct tuple tuple;
	struct settings *own;
	struct backend *backend;
	struct ethhdr *link;
	struct iphdr *network;
	struct gre *gre;
	__u32 zero = 0, number, length;

	if (!find_packet(context, &packet) || !find_tuple(&packet, &tuple))
		return XDP_DROP;
	length = packet.end - (void *)packet.link;
	own = map_lookup(&settings, &zero);
	if (!own)
		return XDP_DROP;
	number = choose(&tuple, own);
	backend = map_lookup(&backends, &number);
	if (!backend)
		return XDP_DROP;
	if (adjust_head(context, -(int)TUNNEL))
		return XDP_DROP;
	link = (void *)(long)context->data;
	network = (void *)(link + 1);
	gre = (void *)(network + 1);
	if ((void *)(gre + 1) > (void *)(long)context->data_end)
		return XDP_DROP;
	__builtin_memcpy(link->h_dest, backend->target, ETH_ALEN);
	__builtin_memcpy(link->h_source, own->link, ETH_ALEN);
	link->h_proto = __builtin_bswap16(ETH_P_IP);
	*network = (struct iphdr){
		.version = 4,
		.ihl = 5,
		.tot_len = __builtin_bswap16(TUNNEL - ETH_HLEN + length),
		.ttl = 64,
		.protocol = 47,
		.saddr = own->source,
		.daddr = backend->address,
	};
	network->frag_off = __builtin_bswap16(0x4000);
	network->check = sum_of(network);
	gre->flags = __builtin_bswap16(0x2000);
	gre->protocol = __builtin_bswap16(0x6558);
	gre->key = backend->key | path_of(&tuple);
	return XDP_TX;
}

PROGRAMS((int)TUNNEL);
