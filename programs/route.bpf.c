// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Routes IPv4: checks the header, finds the longest prefix of the target, decrements the time to
// live, updates the checksum, and writes the Ethernet addresses of the next hop.

#include "peer.bpf.h"

struct prefix {
	__u32 length;
	__u32 address;
};

struct next_hop {
	__u8 target[ETH_ALEN];
	__u8 source[ETH_ALEN];
};

struct map_definition routes SECTION("maps") = {
	BPF_MAP_TYPE_LPM_TRIE, sizeof(struct prefix), sizeof(struct next_hop), 16384,
	BPF_F_NO_PREALLOC
};

/* Returns whether the checksum of a header without options is correct. */
INLINE int is_sum_right(const struct iphdr *network)
{
	const __u16 *words = (const void *)network;
	__u32 sum = 0;

	#pragma unroll
	for (int at = 0; at < 10; at++)
		sum += words[at];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (sum & 0xffff) == 0xffff;
}

INLINE int job(struct xdp_md *context)
{
	struct packet packet;
	struct prefix prefix = { .length = 32 };
	struct next_hop *next_hop;
	__u32 sum;

	if (!find_packet(context, &packet))
		return XDP_DROP;
	if (packet.network->ihl != 5 || !is_sum_right(packet.network) || packet.network->ttl <= 1)
		return XDP_DROP;
	prefix.address = packet.network->daddr;
	next_hop = map_lookup(&routes, &prefix);
	if (!next_hop)
		return XDP_DROP;
	packet.network->ttl--;
	/* RFC 1141: the high byte of a word was decremented. */
	sum = packet.network->check + __builtin_bswap16(0x0100);
	packet.network->check = sum + (sum >= 0xffff);
	__builtin_memcpy(packet.link->h_dest, next_hop->target, ETH_ALEN);
	__builtin_memcpy(packet.link->h_source, next_hop->source, ETH_ALEN);
	return XDP_TX;
}

PROGRAMS(0);
