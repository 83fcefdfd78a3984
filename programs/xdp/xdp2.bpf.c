// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts frames by the protocol of their IPv4 or IPv6 header, separately for each CPU, and sends
// those with such a header back to their sender. All others are dropped.

#include "packet.bpf.h"
#include "protocols.bpf.h"

SEC("xdp") int send_back(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link;
	__u32 protocol;
	__be16 kind;

	link = take_ethernet(&cursor, &kind);
	if (!link || take_protocol(&cursor, kind, &protocol) != IP)
		return XDP_DROP;
	count(&protocols, protocol, 1);
	swap_addresses(link);
	return XDP_TX;
}

LICENSE;
