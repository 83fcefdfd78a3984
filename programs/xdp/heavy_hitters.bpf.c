// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Finds the flows with the most traffic: a count-min sketch (Cormode and Muthukrishnan 2005) of
// four rows counts bytes, and a flow whose smallest counter exceeds the threshold enters a table.
// The hash is a local function that is called for each row with its own seed.

#include "packet.bpf.h"

#define ROWS 4
#define COLUMNS 1024

struct row {
	__u32 bytes[COLUMNS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ROWS);
	__type(key, __u32);
	__type(value, struct row);
} sketch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct tuple);
	__type(value, __u32);	/* bytes, never underestimated */
} hitters SEC(".maps");

static const __u32 seeds[ROWS] = { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 };
volatile const __u32 threshold = 2000;

static __noinline __u32 hash(const struct tuple *tuple, __u32 seed)
{
	__u32 ports;

	if (!tuple)
		return 0;
	ports = (__u32)tuple->source_port << 16 | tuple->target_port;
	return mix(mix(tuple->source ^ seed, tuple->target), ports + tuple->protocol);
}

SEC("xdp") int watch(struct xdp_md *context)
{
	__u32 bytes = context->data_end - context->data, least = ~0u;
	struct cursor cursor = begin(context);
	struct tuple tuple;

	if (!find_tuple(&cursor, &tuple))
		return XDP_PASS;
	for (__u32 at = 0; at < ROWS; at++) {
		__u32 column = hash(&tuple, seeds[at]) % COLUMNS, index = at;
		struct row *row = bpf_map_lookup_elem(&sketch, &index);
		__u32 seen;

		if (!row)
			return XDP_ABORTED;
		seen = __sync_fetch_and_add(&row->bytes[column & (COLUMNS - 1)], bytes) + bytes;
		if (seen < least)
			least = seen;
	}
	if (least >= threshold)
		bpf_map_update_elem(&hitters, &tuple, &least, BPF_ANY);
	return XDP_PASS;
}

LICENSE;
