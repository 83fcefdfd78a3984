// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts frames by the protocol of their IPv4 or IPv6 header, each CPU for itself, and drops them.
// What is no IP counts as protocol 0; a frame that ends within its headers is not counted.

#include "packet.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} protocols SEC(".maps");

SEC("xdp") int drop(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	__u32 protocol = 0;
	__be16 kind;

	if (!take_ethernet(&cursor, &kind))
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
	}
	count(&protocols, protocol, 1);
	return XDP_DROP;
}

LICENSE;
