// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Answers connection requests without state: a SYN becomes a SYN and ACK whose sequence number is a
// hash of the flow with a secret. An ACK that returns that number proves that the source is real;
// the source is remembered, and its packets pass. Packets of other sources are dropped.

#include "packet.bpf.h"

struct secrets {
	__u32 half[2];
};
ONE_VALUE(secrets, struct secrets);

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tuple);
	__type(value, __u64);	/* packets */
} shown SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { ANSWERED, SHOWN, WRONG, UNKNOWN };

INLINE __u32 cookie_of(const struct tuple *tuple, const struct secrets *secret)
{
	__u32 ports = (__u32)tuple->source_port << 16 | tuple->target_port;

	return mix(mix(tuple->source ^ secret->half[0], tuple->target), ports ^ secret->half[1]);
}

/* A sum over the addresses, the protocol and length, and a TCP header without options. */
INLINE __u16 sum_tcp(const struct iphdr *network, const struct tcphdr *segment)
{
	const __u16 *words = (const void *)segment, *addresses = (const void *)&network->saddr;
	__u64 sum = bpf_htons(IPPROTO_TCP) + bpf_htons(sizeof(*segment));

#pragma unroll
	for (int at = 0; at < 4; at++)
		sum += addresses[at];
#pragma unroll
	for (unsigned int at = 0; at < sizeof(*segment) / 2; at++)
		sum += words[at];
	return ~fold(sum);
}

INLINE void answer(struct ethhdr *link, struct iphdr *network, struct tcphdr *segment, __u32 cookie)
{
	__be32 address = network->saddr;
	__be16 port = segment->source;

	swap_addresses(link);
	network->saddr = network->daddr;
	network->daddr = address;
	network->ttl = 64;
	network->tot_len = bpf_htons(sizeof(*network) + sizeof(*segment));
	network->check = 0;
	network->check = sum_ipv4(network);
	segment->source = segment->dest;
	segment->dest = port;
	segment->ack_seq = bpf_htonl(bpf_ntohl(segment->seq) + 1);
	segment->seq = cookie;
	segment->ack = 1;
	segment->doff = sizeof(*segment) / 4;
	segment->check = 0;
	segment->check = sum_tcp(network, segment);
}

SEC("xdp") int check(struct xdp_md *context)
{
	int longest = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct tcphdr);
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	int length = context->data_end - context->data;
	struct secrets *secret;
	struct tcphdr *segment;
	struct iphdr *network;
	struct tuple tuple;
	__u32 zero = 0, cookie;
	__u64 *packets, one = 1;

	if (!link || link->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	network = TAKE(&cursor, struct iphdr);
	if (!network || network->version != 4 || network->ihl != 5)
		return XDP_DROP;
	if (network->protocol != IPPROTO_TCP)
		return XDP_PASS;
	segment = TAKE(&cursor, struct tcphdr);
	secret = bpf_map_lookup_elem(&secrets, &zero);
	if (!segment || !secret || network->frag_off & bpf_htons(FRAGMENT_OFFSET))
		return XDP_DROP;
	tuple.source = network->saddr;
	tuple.target = network->daddr;
	tuple.source_port = segment->source;
	tuple.target_port = segment->dest;
	tuple.protocol = IPPROTO_TCP;
	cookie = cookie_of(&tuple, secret);
	if (segment->syn && !segment->ack && !segment->rst) {
		answer(link, network, segment, cookie);
		count(&counters, ANSWERED, 1);
		if (length > longest && bpf_xdp_adjust_tail(context, longest - length))
			return XDP_ABORTED;
		return XDP_TX;
	}
	packets = bpf_map_lookup_elem(&shown, &tuple);
	if (packets) {
		__sync_fetch_and_add(packets, 1);
		return XDP_PASS;
	}
	if (!segment->ack) {
		count(&counters, UNKNOWN, 1);
		return XDP_DROP;
	}
	if (bpf_ntohl(segment->ack_seq) - 1 != bpf_ntohl(cookie)) {
		count(&counters, WRONG, 1);
		return XDP_DROP;
	}
	count(&counters, SHOWN, 1);
	bpf_map_update_elem(&shown, &tuple, &one, BPF_ANY);
	return XDP_PASS;
}

LICENSE;
