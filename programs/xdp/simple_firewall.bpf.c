// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Allows connections to be opened from inside only. A TCP or UDP packet from the inner device
// creates an entry for its flow; one from outside needs an entry. The key has the ends of a flow in
// order, so both directions have the same key. Everything else is dropped.

#include "packet.bpf.h"

/* The two ends of a flow, the smaller one first. */
struct flow {
	__be32 low, high;
	__be16 low_port, high_port;
	__u32 protocol;
};

struct state {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct state);
} flows SEC(".maps");

/* The number of the inner device. */
ONE_VALUE(inside, __u32);

/* Egress devices of flows from inside, and of their replies. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u32);
} ways SEC(".maps");

enum { TO_OUTSIDE, TO_INSIDE };

INLINE void put_in_order(const struct tuple *tuple, struct flow *flow)
{
	int is_ordered = tuple->source < tuple->target ||
		(tuple->source == tuple->target && tuple->source_port < tuple->target_port);

	flow->low = is_ordered ? tuple->source : tuple->target;
	flow->high = is_ordered ? tuple->target : tuple->source;
	flow->low_port = is_ordered ? tuple->source_port : tuple->target_port;
	flow->high_port = is_ordered ? tuple->target_port : tuple->source_port;
	flow->protocol = tuple->protocol;
}

SEC("xdp") int filter(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	__u64 bytes = context->data_end - context->data;
	struct tuple tuple;
	struct state *state;
	struct flow flow;
	__u32 zero = 0, *device;
	int is_inside;

	if (!find_tuple(&cursor, &tuple))
		return XDP_DROP;
	put_in_order(&tuple, &flow);
	device = bpf_map_lookup_elem(&inside, &zero);
	if (!device)
		return XDP_ABORTED;
	is_inside = context->ingress_ifindex == *device;
	state = bpf_map_lookup_elem(&flows, &flow);
	if (state) {
		state->packets++;
		state->bytes += bytes;
	} else {
		struct state first = { 1, bytes };

		if (!is_inside || bpf_map_update_elem(&flows, &flow, &first, BPF_ANY))
			return XDP_DROP;
	}
	return bpf_redirect_map(&ways, is_inside ? TO_OUTSIDE : TO_INSIDE, XDP_ABORTED);
}

LICENSE;
