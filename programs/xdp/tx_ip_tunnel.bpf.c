// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Encapsulates packets to virtual addresses in a tunnel: IPv4 in IPv4, IPv6 in IPv6, by protocol,
// address and port. Other packets pass. Counts the packets of each protocol.

#include "packet.bpf.h"

/* IPv4 addresses have the other three words 0. */
struct address {
	__be32 word[4];
};

struct service {
	struct address target;
	__be16 port, family;
	__u32 protocol;
};

struct tunnel {
	struct address source, target;
	__u8 link_target[ETH_ALEN];
	__be16 family;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct service);
	__type(value, struct tunnel);
} tunnels SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} packets SEC(".maps");

/* Returns the target port of a TCP or UDP packet; 0 for other protocols, -1 if it is truncated. */
INLINE int find_port(struct cursor *cursor, __u8 protocol)
{
	__be16 *ports;

	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return 0;
	ports = take(cursor, 2 * sizeof(*ports));
	return ports ? ports[1] : -1;
}

/* Makes room for an outer header, and writes the frame's new Ethernet header. The cursor is then at
 * the end of that header. */
INLINE int make_room(struct xdp_md *context, struct cursor *cursor, const struct tunnel *tunnel,
		     int bytes, __be16 protocol)
{
	struct ethhdr *link, *old;

	if (bpf_xdp_adjust_head(context, -bytes))
		return 0;
	*cursor = begin(context);
	link = TAKE(cursor, struct ethhdr);
	if (!link || (void *)link + bytes + sizeof(*old) > cursor->end)
		return 0;
	old = (void *)link + bytes;
	__builtin_memcpy(link->h_source, old->h_dest, ETH_ALEN);
	__builtin_memcpy(link->h_dest, tunnel->link_target, ETH_ALEN);
	link->h_proto = protocol;
	return 1;
}

INLINE int tunnel_ipv4(struct xdp_md *context, struct cursor *cursor)
{
	struct iphdr *inner = take_ipv4(cursor), *outer;
	struct service service = {};
	struct tunnel *tunnel;
	__u16 bytes;
	__u8 tos;
	int port;

	if (!inner)
		return XDP_DROP;
	port = find_port(cursor, inner->protocol);
	if (port < 0)
		return XDP_DROP;
	service.target.word[0] = inner->daddr;
	service.protocol = inner->protocol;
	service.family = bpf_htons(ETH_P_IP);
	service.port = port;
	tunnel = bpf_map_lookup_elem(&tunnels, &service);
	if (!tunnel || tunnel->family != bpf_htons(ETH_P_IP))
		return XDP_PASS;
	bytes = bpf_ntohs(inner->tot_len);
	tos = inner->tos;
	if (!make_room(context, cursor, tunnel, sizeof(*outer), bpf_htons(ETH_P_IP)))
		return XDP_DROP;
	outer = TAKE(cursor, struct iphdr);
	if (!outer)
		return XDP_DROP;
	__builtin_memset(outer, 0, sizeof(*outer));
	outer->version = 4;
	outer->ihl = 5;
	outer->tos = tos;
	outer->tot_len = bpf_htons(bytes + sizeof(*outer));
	outer->ttl = 8;
	outer->protocol = IPPROTO_IPIP;
	outer->saddr = tunnel->source.word[0];
	outer->daddr = tunnel->target.word[0];
	outer->check = sum_ipv4(outer);
	count(&packets, service.protocol & 0xff, 1);
	return XDP_TX;
}

INLINE int tunnel_ipv6(struct xdp_md *context, struct cursor *cursor)
{
	struct ipv6hdr *inner = take_ipv6(cursor), *outer;
	struct service service = {};
	struct tunnel *tunnel;
	__u16 bytes;
	int port;

	if (!inner)
		return XDP_DROP;
	port = find_port(cursor, inner->nexthdr);
	if (port < 0)
		return XDP_DROP;
	__builtin_memcpy(&service.target, &inner->daddr, sizeof(service.target));
	service.protocol = inner->nexthdr;
	service.family = bpf_htons(ETH_P_IPV6);
	service.port = port;
	tunnel = bpf_map_lookup_elem(&tunnels, &service);
	if (!tunnel || tunnel->family != bpf_htons(ETH_P_IPV6))
		return XDP_PASS;
	bytes = bpf_ntohs(inner->payload_len);
	if (!make_room(context, cursor, tunnel, sizeof(*outer), bpf_htons(ETH_P_IPV6)))
		return XDP_DROP;
	outer = TAKE(cursor, struct ipv6hdr);
	if (!outer)
		return XDP_DROP;
	__builtin_memset(outer, 0, sizeof(*outer));
	outer->version = 6;
	outer->payload_len = bpf_htons(bytes + sizeof(*outer));
	outer->nexthdr = IPPROTO_IPV6;
	outer->hop_limit = 8;
	__builtin_memcpy(&outer->saddr, &tunnel->source, sizeof(outer->saddr));
	__builtin_memcpy(&outer->daddr, &tunnel->target, sizeof(outer->daddr));
	count(&packets, service.protocol & 0xff, 1);
	return XDP_TX;
}

SEC("xdp") int encapsulate(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);

	if (!link)
		return XDP_DROP;
	if (link->h_proto == bpf_htons(ETH_P_IP))
		return tunnel_ipv4(context, &cursor);
	if (link->h_proto == bpf_htons(ETH_P_IPV6))
		return tunnel_ipv6(context, &cursor);
	return XDP_PASS;
}

LICENSE;
