// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts IPv4 traffic by pairs of /24 networks, separately for each CPU. A frame of type 0x88b5
// (for experiments) requests the sums: the program iterates over the whole table, and writes the
// answer into the frame.

#include "packet.bpf.h"

#define QUESTION 0x88b5

struct pair {
	__be32 source, target;
};

struct traffic {
	__u64 packets, bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct pair);
	__type(value, struct traffic);
} pairs SEC(".maps");

/* Packets that were not counted because the table was full. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

struct sum {
	__u64 packets, bytes, pairs;
};

static long add_up(void *map, const void *key, struct traffic *traffic, struct sum *sum)
{
	(void)map, (void)key;
	sum->packets += traffic->packets;
	sum->bytes += traffic->bytes;
	sum->pairs++;
	return 0;
}

INLINE int answer(struct cursor *cursor)
{
	struct sum *place = TAKE(cursor, struct sum), sum = {};

	if (!place)
		return XDP_DROP;
	bpf_for_each_map_elem(&pairs, add_up, &sum, 0);
	*place = sum;
	return XDP_TX;
}

SEC("xdp") int account(struct xdp_md *context)
{
	__u64 bytes = context->data_end - context->data;
	const __be32 mask = bpf_htonl(0xffffff00);
	struct cursor cursor = begin(context);
	struct traffic first = { 1, bytes };
	struct traffic *traffic;
	struct iphdr *network;
	struct pair pair;
	__be16 protocol;

	if (!take_ethernet(&cursor, &protocol))
		return XDP_DROP;
	if (protocol == bpf_htons(QUESTION))
		return answer(&cursor);
	if (protocol != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	network = TAKE(&cursor, struct iphdr);
	if (!network)
		return XDP_DROP;
	pair.source = network->saddr & mask;
	pair.target = network->daddr & mask;
	traffic = bpf_map_lookup_elem(&pairs, &pair);
	if (traffic) {
		traffic->packets++;
		traffic->bytes += bytes;
	} else if (bpf_map_update_elem(&pairs, &pair, &first, BPF_NOEXIST)) {
		count(&lost, 0, 1);
	}
	return XDP_PASS;
}

LICENSE;
