// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Allocates source ports to flows from a pool: a SYN pops one from a stack, an RST or FIN pushes it
// back, and adds it to a queue for user space. A Bloom filter avoids the table's lookup for flows
// that were never seen.

#include "packet.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1024);
	__type(value, __u32);
} free_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 256);
	__type(value, __u32);
} given_back SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__uint(max_entries, 4096);
	__type(value, struct tuple);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct tuple);
	__type(value, __u32);
} lent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { LENT, GIVEN_BACK, EXHAUSTED, FORGOTTEN };

INLINE int lend(const struct tuple *tuple)
{
	__u32 port;

	if (bpf_map_pop_elem(&free_ports, &port)) {
		count(&counters, EXHAUSTED, 1);
		return XDP_DROP;
	}
	if (bpf_map_update_elem(&lent, tuple, &port, BPF_NOEXIST)) {
		bpf_map_push_elem(&free_ports, &port, BPF_ANY);
		return XDP_PASS;
	}
	bpf_map_push_elem(&seen, tuple, BPF_ANY);
	count(&counters, LENT, 1);
	return XDP_PASS;
}

INLINE int give_back(const struct tuple *tuple)
{
	__u32 *port = bpf_map_lookup_elem(&lent, tuple), number, oldest;

	if (!port)
		return XDP_DROP;
	number = *port;
	bpf_map_delete_elem(&lent, tuple);
	if (!bpf_map_peek_elem(&given_back, &oldest) && oldest == number)
		return XDP_ABORTED;
	/* A full queue drops the oldest value. */
	if (bpf_map_push_elem(&given_back, &number, 0)) {
		bpf_map_push_elem(&given_back, &number, BPF_EXIST);
		count(&counters, FORGOTTEN, 1);
	}
	bpf_map_push_elem(&free_ports, &number, BPF_ANY);
	count(&counters, GIVEN_BACK, 1);
	return XDP_PASS;
}

SEC("xdp") int pool(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct iphdr *network = find_ipv4(&cursor);
	struct tuple tuple;
	struct tcphdr *segment;

	if (!network || network->protocol != IPPROTO_TCP)
		return XDP_PASS;
	segment = TAKE(&cursor, struct tcphdr);
	if (!segment || network->frag_off & bpf_htons(FRAGMENT_OFFSET))
		return XDP_PASS;
	tuple.source = network->saddr;
	tuple.target = network->daddr;
	tuple.source_port = segment->source;
	tuple.target_port = segment->dest;
	tuple.protocol = IPPROTO_TCP;
	if (segment->syn)
		return lend(&tuple);
	if (bpf_map_peek_elem(&seen, &tuple))
		return XDP_DROP;
	if (segment->fin || segment->rst)
		return give_back(&tuple);
	return bpf_map_lookup_elem(&lent, &tuple) ? XDP_PASS : XDP_DROP;
}

LICENSE;
