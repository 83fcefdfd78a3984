// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sends every frame to the first device of a map, with its addresses swapped, and counts.
// `by_number` does so without the map, with a number that is a constant of the program, set before
// it is loaded. `on_the_way_out` may be attached to the device of the map.

#include "packet.bpf.h"

const volatile __u32 device = 1;

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 4);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

SEC("xdp") int by_map(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);

	if (!link)
		return XDP_DROP;
	count(&counters, 0, 1);
	swap_addresses(link);
	return bpf_redirect_map(&devices, 0, 0);
}

SEC("xdp") int by_number(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);

	if (!link)
		return XDP_DROP;
	count(&counters, 1, 1);
	swap_addresses(link);
	return bpf_redirect(device, 0);
}

SEC("xdp/devmap") int on_the_way_out(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);

	if (!link || context->egress_ifindex == context->ingress_ifindex)
		return XDP_DROP;
	link->h_source[ETH_ALEN - 1] = context->egress_ifindex;
	return XDP_PASS;
}

LICENSE;
