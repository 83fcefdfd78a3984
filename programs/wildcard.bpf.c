// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A firewall with rules under 16 masks: the five-tuple is looked up under each mask, and the rule
// of the highest priority applies. All rules are in one hash map, with the number of their mask in
// the key. A frame without a rule, or with an action other than 0, is dropped.

#include "peer.bpf.h"

#define MASKS 16

struct masks {
	struct tuple mask[MASKS];
};

struct rule {
	__u16 priority;	/* from 1; the larger one takes precedence */
	__u16 action;
};

struct map_definition masks SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct masks), 1, 0
};
struct map_definition rules SECTION("maps") = {
	BPF_MAP_TYPE_HASH, sizeof(struct tuple), sizeof(struct rule), 16384, 0
};

INLINE int job(struct xdp_md *context)
{
	struct packet packet;
	struct tuple tuple, key;
	struct rule *rule, best = { 0, 1 };
	struct masks *all;
	__u32 zero = 0;

	if (!find_packet(context, &packet) || !find_tuple(&packet, &tuple))
		return XDP_DROP;
	all = map_lookup(&masks, &zero);
	if (!all)
		return XDP_DROP;
	#pragma unroll
	for (__u32 at = 0; at < MASKS; at++) {
		const struct tuple *mask = &all->mask[at];

		key.source = tuple.source & mask->source;
		key.target = tuple.target & mask->target;
		key.source_port = tuple.source_port & mask->source_port;
		key.target_port = tuple.target_port & mask->target_port;
		key.protocol = (tuple.protocol & mask->protocol) | at << 8;
		rule = map_lookup(&rules, &key);
		if (rule && rule->priority > best.priority)
			best = *rule;
	}
	return best.action == 0 ? XDP_TX : XDP_DROP;
}

PROGRAMS(0);
