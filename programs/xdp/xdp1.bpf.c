// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts frames by the protocol of their IPv4 or IPv6 header, per CPU, and drops them. Frames
// other than IP count as protocol 0; a frame that ends within its headers is not counted.

#include "packet.bpf.h"
#include "protocols.bpf.h"

SEC("xdp") int drop(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	__u32 protocol = 0;
	__be16 kind;

	if (!take_ethernet(&cursor, &kind) || take_protocol(&cursor, kind, &protocol) == CUT)
		return XDP_DROP;
	count(&protocols, protocol, 1);
	return XDP_DROP;
}

LICENSE;
