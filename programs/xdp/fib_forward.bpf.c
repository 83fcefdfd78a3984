// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Forwards IPv4 and IPv6 by the routes and neighbours of its host, and counts the results of the
// lookup. Packets that it cannot forward pass, so that the host resolves or answers them.

#include "packet.bpf.h"

#define AF_INET 2
#define AF_INET6 10

/* By the result of the lookup; the last one is for errors. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} results SEC(".maps");

SEC("xdp") int forward(struct xdp_md *context)
{
	struct bpf_fib_lookup question = {};
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	struct ipv6hdr *network_ipv6 = 0;
	struct iphdr *network = 0;
	long result;

	if (!link)
		return XDP_DROP;
	if (link->h_proto == bpf_htons(ETH_P_IP)) {
		network = take_ipv4(&cursor);
		if (!network || network->ttl <= 1)
			return XDP_PASS;
		question.family = AF_INET;
		question.tos = network->tos;
		question.l4_protocol = network->protocol;
		question.tot_len = bpf_ntohs(network->tot_len);
		question.ipv4_src = network->saddr;
		question.ipv4_dst = network->daddr;
	} else if (link->h_proto == bpf_htons(ETH_P_IPV6)) {
		network_ipv6 = take_ipv6(&cursor);
		if (!network_ipv6 || network_ipv6->hop_limit <= 1)
			return XDP_PASS;
		question.family = AF_INET6;
		question.flowinfo = *(__be32 *)network_ipv6 & bpf_htonl(0x0fffffff);
		question.l4_protocol = network_ipv6->nexthdr;
		question.tot_len = bpf_ntohs(network_ipv6->payload_len) + sizeof(*network_ipv6);
		__builtin_memcpy(question.ipv6_src, &network_ipv6->saddr, 16);
		__builtin_memcpy(question.ipv6_dst, &network_ipv6->daddr, 16);
	} else {
		return XDP_PASS;
	}
	question.ifindex = context->ingress_ifindex;
	result = bpf_fib_lookup(context, &question, sizeof(question), 0);
	count(&results, result < 0 || result > 14 ? 15 : result, 1);
	if (result == BPF_FIB_LKUP_RET_BLACKHOLE || result == BPF_FIB_LKUP_RET_UNREACHABLE ||
	    result == BPF_FIB_LKUP_RET_PROHIBIT)
		return XDP_DROP;
	if (result != BPF_FIB_LKUP_RET_SUCCESS)
		return XDP_PASS;
	if (network)
		decrement_ttl(network);
	else if (network_ipv6)
		network_ipv6->hop_limit--;
	__builtin_memcpy(link->h_dest, question.dmac, ETH_ALEN);
	__builtin_memcpy(link->h_source, question.smac, ETH_ALEN);
	return bpf_redirect(question.ifindex, 0);
}

LICENSE;
