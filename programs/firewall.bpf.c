// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A firewall with exact rules: the five-tuple is looked up in a hash map, and the frame passes if
// its rule has action 0. A frame without a rule is dropped.

#include "peer.bpf.h"

struct map_definition rules SECTION("maps") = {
	BPF_MAP_TYPE_HASH, sizeof(struct tuple), sizeof(__u32), 131072, 0
};

INLINE int job(struct xdp_md *context)
{
	struct packet packet;
	struct tuple tuple;
	__u32 *action;

	if (!find_packet(context, &packet) || !find_tuple(&packet, &tuple))
		return XDP_DROP;
	action = map_lookup(&rules, &tuple);
	return action && *action == 0 ? XDP_TX : XDP_DROP;
}

PROGRAMS(0);
