// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts frames by receive queue, checks that they came by the expected device, and drops them or
// sends them back, as the settings say.

#include "packet.bpf.h"

#define QUEUES 64

enum { READ_FRAME = 1, SWAP_ADDRESSES = 2 };

struct settings {
	__u32 action, device, options;
};
ONE_VALUE(settings, struct settings);

struct record {
	__u64 processed, unexpected;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct record);
} total SEC(".maps");

/* The last one counts all queues with larger numbers. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES + 1);
	__type(key, __u32);
	__type(value, struct record);
} queues SEC(".maps");

SEC("xdp") int count_queues(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	__u32 zero = 0, queue = context->rx_queue_index;
	struct settings *chosen = bpf_map_lookup_elem(&settings, &zero);
	struct record *record = bpf_map_lookup_elem(&total, &zero);
	int is_expected;

	if (!chosen || !record || !link)
		return XDP_ABORTED;
	is_expected = context->ingress_ifindex == chosen->device;
	record->processed++;
	record->unexpected += !is_expected;
	if (queue > QUEUES)
		queue = QUEUES;
	record = bpf_map_lookup_elem(&queues, &queue);
	if (!record)
		return XDP_ABORTED;
	record->processed++;
	record->unexpected += !is_expected;
	if (chosen->options & READ_FRAME && link->h_proto == bpf_htons(ETH_P_LOOPBACK))
		return XDP_ABORTED;
	if (chosen->options & SWAP_ADDRESSES)
		swap_addresses(link);
	return chosen->action;
}

LICENSE;
