// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts frames by the protocol of their IPv4 or IPv6 header, each CPU for itself, and sends those
// with such a header back to whom they came from. All others are dropped.

#include "packet.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} protocols SEC(".maps");

SEC("xdp") int send_back(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link;
	__u32 protocol;
	__be16 kind;

	link = take_ethernet(&cursor, &kind);
	if (!link)
		return XDP_DROP;
	if (kind == bpf_htons(ETH_P_IP)) {
		struct iphdr *network = TAKE(&cursor, struct iphdr);

		if (!network)
			return XDP_DROP;
		protocol = network->protocol;
	} else if (kind == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *network = TAKE(&cursor, struct ipv6hdr);

		if (!network)
			return XDP_DROP;
		protocol = network->nexthdr;
	} else {
		return XDP_DROP;
	}
	count(&protocols, protocol, 1);
	swap_addresses(link);
	return XDP_TX;
}

LICENSE;
