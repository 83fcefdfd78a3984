// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Translates UDP and TCP between IPv6 and IPv4 as in RFC 7915: an IPv6 target under the well-known
// prefix 64:ff9b::/96 has the IPv4 target in its last four bytes; the IPv6 source is mapped to one
// of our IPv4 addresses by a table, which also maps replies back.

#include "packet.bpf.h"

#define PREFIX bpf_htonl(0x0064ff9b)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct in6_addr);
	__type(value, __be32);
} outward SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __be32);
	__type(value, struct in6_addr);
} inward SEC(".maps");

/* The two addresses of a header, in the layout for checksums. */
struct ends_ipv4 {
	__be32 source, target;
};
struct ends_ipv6 {
	struct in6_addr source, target;
};

/* Finds the checksum of a packet, and whether 0 means none (UDP over IPv4). */
INLINE __u16 *find_check(struct cursor *cursor, __u8 protocol)
{
	if (protocol == IPPROTO_UDP) {
		struct udphdr *datagram = TAKE(cursor, struct udphdr);

		return datagram ? &datagram->check : 0;
	}
	if (protocol == IPPROTO_TCP) {
		struct tcphdr *segment = TAKE(cursor, struct tcphdr);

		return segment ? &segment->check : 0;
	}
	return 0;
}

/* Updates a checksum for a change of the data, in 16 bits; UDP does not use 0. */
INLINE __u16 changed(__u16 check, __s64 difference, __u8 protocol)
{
	__u16 sum = ~fold((__u64)(__u16)~check + (__u32)difference);

	return sum || protocol != IPPROTO_UDP ? sum : 0xffff;
}

INLINE int to_ipv4(struct xdp_md *context, struct ethhdr *link, struct cursor *cursor)
{
	struct ipv6hdr *network = take_ipv6(cursor);
	struct ends_ipv4 new = {};
	struct ends_ipv6 old;
	struct ethhdr copy;
	struct iphdr *outer, header = {};
	__be32 *source;
	__u16 *check;
	__s64 difference;

	if (!network || network->daddr.in6_u.u6_addr32[0] != PREFIX)
		return XDP_PASS;
	if (network->daddr.in6_u.u6_addr32[1] || network->daddr.in6_u.u6_addr32[2])
		return XDP_PASS;
	if (network->hop_limit <= 1)
		return XDP_PASS;
	check = find_check(cursor, network->nexthdr);
	if (!check)
		return XDP_DROP;
	old.source = network->saddr;
	old.target = network->daddr;
	source = bpf_map_lookup_elem(&outward, &old.source);
	if (!source)
		return XDP_DROP;
	new.source = *source;
	new.target = old.target.in6_u.u6_addr32[3];
	difference = bpf_csum_diff((void *)&old, sizeof(old), (void *)&new, sizeof(new), 0);
	*check = changed(*check, difference, network->nexthdr);
	header.version = 4;
	header.ihl = 5;
	header.tos = network->priority << 4 | network->flow_lbl[0] >> 4;
	header.tot_len = bpf_htons(bpf_ntohs(network->payload_len) + sizeof(header));
	header.frag_off = bpf_htons(0x4000);
	header.ttl = network->hop_limit - 1;
	header.protocol = network->nexthdr;
	header.saddr = new.source;
	header.daddr = new.target;
	header.check = sum_ipv4(&header);
	copy = *link;
	copy.h_proto = bpf_htons(ETH_P_IP);
	if (bpf_xdp_adjust_head(context, sizeof(struct ipv6hdr) - sizeof(struct iphdr)))
		return XDP_ABORTED;
	*cursor = begin(context);
	link = TAKE(cursor, struct ethhdr);
	outer = TAKE(cursor, struct iphdr);
	if (!link || !outer)
		return XDP_ABORTED;
	*link = copy;
	*outer = header;
	return XDP_TX;
}

INLINE int to_ipv6(struct xdp_md *context, struct ethhdr *link, struct cursor *cursor)
{
	struct iphdr *network = TAKE(cursor, struct iphdr);
	struct ipv6hdr *outer, header = {};
	struct ends_ipv4 old;
	struct ends_ipv6 new = {};
	struct in6_addr *target;
	struct ethhdr copy;
	__s64 difference;
	__u16 *check;

	if (!network || network->version != 4 || network->ihl != 5 || network->ttl <= 1)
		return XDP_PASS;
	old.source = network->saddr;
	old.target = network->daddr;
	target = bpf_map_lookup_elem(&inward, &old.target);
	if (!target)
		return XDP_PASS;
	if (network->frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS))
		return XDP_DROP;
	check = find_check(cursor, network->protocol);
	if (!check || (!*check && network->protocol == IPPROTO_UDP))
		return XDP_DROP;
	new.source.in6_u.u6_addr32[0] = PREFIX;
	new.source.in6_u.u6_addr32[3] = old.source;
	new.target = *target;
	difference = bpf_csum_diff((void *)&old, sizeof(old), (void *)&new, sizeof(new), 0);
	*check = changed(*check, difference, network->protocol);
	header.version = 6;
	header.priority = network->tos >> 4;
	header.flow_lbl[0] = network->tos << 4;
	header.payload_len = bpf_htons(bpf_ntohs(network->tot_len) - sizeof(*network));
	header.nexthdr = network->protocol;
	header.hop_limit = network->ttl - 1;
	header.saddr = new.source;
	header.daddr = new.target;
	copy = *link;
	copy.h_proto = bpf_htons(ETH_P_IPV6);
	if (bpf_xdp_adjust_head(context, (int)sizeof(struct iphdr) - (int)sizeof(struct ipv6hdr)))
		return XDP_ABORTED;
	*cursor = begin(context);
	link = TAKE(cursor, struct ethhdr);
	outer = TAKE(cursor, struct ipv6hdr);
	if (!link || !outer)
		return XDP_ABORTED;
	*link = copy;
	*outer = header;
	return XDP_TX;
}

SEC("xdp") int translate(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);

	if (!link)
		return XDP_DROP;
	if (link->h_proto == bpf_htons(ETH_P_IPV6))
		return to_ipv4(context, link, &cursor);
	if (link->h_proto == bpf_htons(ETH_P_IP))
		return to_ipv6(context, link, &cursor);
	return XDP_PASS;
}

LICENSE;
