// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Writes metadata in front of a frame for its next receiver: a hash of the flow, the network
// header's offset, the queue, a number. If a frame already has metadata, more is added before it,
// as far as there is room.

#include "packet.bpf.h"

struct metadata {
	__u32 hash, number;
	__u16 network_offset, bytes;
	__u8 protocol, queue, version, unused;
};

__u32 last_number;
__u64 without_room;

SEC("xdp") int annotate(struct xdp_md *context)
{
	__u32 bytes = context->data_end - context->data;
	struct cursor cursor;
	struct metadata *metadata;
	struct ethhdr *link;
	__be16 protocol;
	void *start;

	if (bpf_xdp_adjust_meta(context, -(int)sizeof(*metadata))) {
		without_room++;
		return XDP_PASS;
	}
	cursor = begin(context);
	start = cursor.at;
	metadata = (void *)(long)context->data_meta;
	if ((void *)(metadata + 1) > start)
		return XDP_ABORTED;
	__builtin_memset(metadata, 0, sizeof(*metadata));
	metadata->number = ++last_number;
	metadata->bytes = bytes;
	metadata->queue = context->rx_queue_index;
	link = take_ethernet(&cursor, &protocol);
	if (!link)
		return XDP_PASS;
	metadata->network_offset = cursor.at - start;
	if (protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *network = TAKE(&cursor, struct iphdr);

		if (!network)
			return XDP_PASS;
		metadata->version = network->version;
		metadata->protocol = network->protocol;
		metadata->hash = mix(network->saddr, network->daddr);
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *network = TAKE(&cursor, struct ipv6hdr);
		__u32 hash = 0;

		if (!network)
			return XDP_PASS;
		metadata->version = network->version;
		metadata->protocol = network->nexthdr;
		for (int at = 0; at < 4; at++)
			hash = mix(hash ^ network->saddr.in6_u.u6_addr32[at],
				   network->daddr.in6_u.u6_addr32[at]);
		metadata->hash = hash;
	}
	return XDP_PASS;
}

LICENSE;
