// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An access list by source prefix, for IPv4 and IPv6: the longest prefix decides whether a packet
// passes. Its value has bits for the protocols to which it applies.

#include "packet.bpf.h"

enum { DENY_TCP = 1, DENY_UDP = 2, DENY_OTHERS = 4 };

struct prefix_ipv4 {
	__u32 length;
	__be32 address;
};

struct prefix_ipv6 {
	__u32 length;
	struct in6_addr address;
};

struct rule {
	__u32 denied;
	__u32 number;
	__u64 packets;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix_ipv4);
	__type(value, struct rule);
} rules_ipv4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct prefix_ipv6);
	__type(value, struct rule);
} rules_ipv6 SEC(".maps");

INLINE int judge(struct rule *rule, __u8 protocol)
{
	__u32 kind = DENY_OTHERS;

	if (!rule)
		return XDP_DROP;
	if (protocol == IPPROTO_TCP)
		kind = DENY_TCP;
	else if (protocol == IPPROTO_UDP)
		kind = DENY_UDP;
	__sync_fetch_and_add(&rule->packets, 1);
	return rule->denied & kind ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int filter(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	__be16 protocol;

	if (!take_ethernet(&cursor, &protocol))
		return XDP_DROP;
	if (protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *network = TAKE(&cursor, struct iphdr);
		struct prefix_ipv4 key = { .length = 32 };

		if (!network)
			return XDP_DROP;
		key.address = network->saddr;
		return judge(bpf_map_lookup_elem(&rules_ipv4, &key), network->protocol);
	}
	if (protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *network = TAKE(&cursor, struct ipv6hdr);
		struct prefix_ipv6 key = { .length = 128 };

		if (!network)
			return XDP_DROP;
		key.address = network->saddr;
		return judge(bpf_map_lookup_elem(&rules_ipv6, &key), network->nexthdr);
	}
	return XDP_PASS;
}

LICENSE;
