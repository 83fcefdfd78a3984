// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Routes IPv4: known targets are in an exact cache; for others the longest prefix gives the next
// hop, whose Ethernet address is in a table, and the result is stored in the cache. The frame gets
// new addresses and a decremented time to live, and leaves by the device of its route. Packets
// without a route or a neighbour, and those whose time to live expires, are left to the kernel.

#include "packet.bpf.h"

struct prefix {
	__u32 length;
	__be32 address;
};

struct route {
	__be32 gateway;	/* 0: the target itself is the neighbour */
	__u32 port;	/* index in `ports` */
};

struct hop {
	__u8 target[ETH_ALEN], source[ETH_ALEN];
	__u32 port;
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct prefix);
	__type(value, struct route);
} routes SEC(".maps");

/* Neighbours: their Ethernet address, and ours on their network. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, __u8[2 * ETH_ALEN]);
} neighbours SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, struct hop);
} cache SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { CACHED, ROUTED, NO_ROUTE, NO_NEIGHBOUR };

INLINE int find_hop(__be32 target, struct hop *hop)
{
	struct prefix prefix = { 32, target };
	struct route *route = bpf_map_lookup_elem(&routes, &prefix);
	__be32 neighbour;
	__u8 *addresses;

	if (!route) {
		count(&counters, NO_ROUTE, 1);
		return 0;
	}
	neighbour = route->gateway ? route->gateway : target;
	addresses = bpf_map_lookup_elem(&neighbours, &neighbour);
	if (!addresses) {
		count(&counters, NO_NEIGHBOUR, 1);
		return 0;
	}
	__builtin_memcpy(hop, addresses, 2 * ETH_ALEN);
	hop->port = route->port;
	bpf_map_update_elem(&cache, &target, hop, BPF_ANY);
	count(&counters, ROUTED, 1);
	return 1;
}

SEC("xdp") int route(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	struct iphdr *network;
	struct hop hop = {};
	struct hop *known;
	__be32 target;

	if (!link || link->h_proto != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	network = take_ipv4(&cursor);
	if (!network || network->ttl <= 1)
		return XDP_PASS;
	target = network->daddr;
	known = bpf_map_lookup_elem(&cache, &target);
	if (known) {
		hop = *known;
		count(&counters, CACHED, 1);
	} else if (!find_hop(target, &hop)) {
		return XDP_PASS;
	}
	decrement_ttl(network);
	__builtin_memcpy(link, &hop, 2 * ETH_ALEN);
	return bpf_redirect_map(&ports, hop.port, XDP_DROP);
}

LICENSE;
