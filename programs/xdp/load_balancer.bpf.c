// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A layer 4 load balancer of the kind that large sites put in front of their servers. A packet to a
// virtual address (IPv4 or IPv6, port, protocol) goes to one of its servers in an outer IP header:
//
// 1. A QUIC connection id names the server, if the service has that flag.
// 2. A known flow keeps its server: the table of flows evicts the least recently used.
// 3. Otherwise a hash of the flow selects in the service's consistent-hash ring, which user space
//    fills by weight, such that few flows move when servers are added or removed.
//
// ICMP errors about a flow follow it, by the packet that they quote; echo requests to a virtual
// address are answered here. Packets to other addresses pass.

#include "packet.bpf.h"
#include "balancer.bpf.h"

/* Returns whether connections are opened faster than the settings allow: new flows are then not
 * remembered, so that known ones keep their place in the table. */
static __noinline int is_flooded(void)
{
	__u32 zero = 0;
	struct rate *rate = bpf_map_lookup_elem(&rates, &zero);
	struct settings *chosen = bpf_map_lookup_elem(&settings, &zero);
	__u64 now;

	if (!rate || !chosen || !chosen->new_flows_per_second)
		return 0;
	now = bpf_ktime_get_ns();
	if (now - rate->since_ns > 1000000000) {
		rate->since_ns = now;
		rate->flows = 0;
	}
	return ++rate->flows > chosen->new_flows_per_second;
}

/* Returns the server's number in the connection id of a QUIC packet, plus 1; 0 if there is none.
 * The id begins with the bits 01, and the number is its second and third byte. */
INLINE __u32 find_quic_server(struct cursor *cursor)
{
	__u8 *first = TAKE(cursor, __u8), *id;
	__u32 number, *server;

	if (!first)
		return 0;
	if (*first & 0x80) {
		/* A long header: version and length of the id. Clients choose the first ids. */
		__u8 *length;

		if ((*first & 0x30) < 0x20 || !take(cursor, 4))
			return 0;
		length = TAKE(cursor, __u8);
		if (!length || *length < 3)
			return 0;
	}
	id = take(cursor, 3);
	if (!id || id[0] >> 6 != 1)
		return 0;
	number = id[1] << 8 | id[2];
	server = bpf_map_lookup_elem(&quic_servers, &number);
	return server && *server ? *server : 0;
}

/* Returns whether a flow of the table is still valid; if so its time of use is updated. */
INLINE int is_fresh(struct flow_state *known, const struct service *service)
{
	__u64 now;

	if (!(service->flags & TIMED))
		return 1;
	now = bpf_ktime_get_ns();
	if (now - known->used_ns > IDLE_NS)
		return 0;
	known->used_ns = now;
	return 1;
}

/* Returns the server of a packet's flow: from the table, or from the ring and into the table. */
INLINE __u32 choose_server(struct packet *packet, const struct service *service)
{
	int is_remembered = !(service->flags & WITHOUT_TABLE);
	struct flow_state *known, state = {};
	__u32 place, *server, hash;

	if (is_remembered && !packet->is_opening) {
		known = bpf_map_lookup_elem(&flows, &packet->flow);
		if (known && is_fresh(known, service)) {
			count(&counters, FROM_TABLE, 1);
			return known->server;
		}
	}
	hash = hash_flow(&packet->flow, service->flags);
	place = service->number * RING + hash % RING;
	server = bpf_map_lookup_elem(&rings, &place);
	if (!server)
		return 0;
	count(&counters, FROM_RING, 1);
	if (is_remembered && *server && !is_flooded()) {
		state.server = *server;
		state.used_ns = service->flags & TIMED ? bpf_ktime_get_ns() : 0;
		bpf_map_update_elem(&flows, &packet->flow, &state, BPF_ANY);
	}
	return *server;
}

INLINE void write_outer_ipv4(struct iphdr *outer, const struct packet *packet,
			     const struct server *server)
{
	const __u32 *ends = (const void *)&packet->flow.source;

	__builtin_memset(outer, 0, sizeof(*outer));
	outer->version = 4;
	outer->ihl = 5;
	outer->tos = packet->tos;
	outer->tot_len = bpf_htons(packet->bytes + sizeof(*outer));
	outer->ttl = 64;
	outer->protocol = IPPROTO_IPIP;
	/* Different flows get different sources, which spreads them over the server's queues. */
	outer->saddr = bpf_htonl(0xac100000 | (mix(ends[0], packet->flow.ports) & 0xffff));
	outer->daddr = server->address.word[0];
	outer->check = sum_ipv4(outer);
}

INLINE void write_outer_ipv6(struct ipv6hdr *outer, const struct packet *packet,
			     const struct server *server)
{
	const __u32 *ends = (const void *)&packet->flow.source;

	__builtin_memset(outer, 0, sizeof(*outer));
	outer->version = 6;
	outer->priority = packet->tos >> 4;
	outer->payload_len = bpf_htons(packet->bytes);
	outer->nexthdr = packet->is_ipv6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
	outer->hop_limit = 64;
	outer->saddr.in6_u.u6_addr32[0] = bpf_htonl(0x01000000);
	outer->saddr.in6_u.u6_addr32[3] = mix(ends[3] ^ ends[0], packet->flow.ports);
	__builtin_memcpy(&outer->daddr, &server->address, sizeof(outer->daddr));
}

INLINE int encapsulate(struct xdp_md *context, const struct packet *packet,
		       const struct server *server)
{
	int with_ipv6 = server->flags & SERVER_IPV6, bytes;
	struct cursor cursor;
	struct ethhdr *link;
	__u32 zero = 0;
	__u8 *gateway;

	/* No server accepts IPv6 in IPv4. */
	if (packet->is_ipv6 && !with_ipv6)
		return XDP_DROP;
	gateway = bpf_map_lookup_elem(&gateways, &zero);
	bytes = with_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
	if (!gateway || bpf_xdp_adjust_head(context, -bytes))
		return XDP_DROP;
	cursor = begin(context);
	link = TAKE(&cursor, struct ethhdr);
	if (!link)
		return XDP_DROP;
	__builtin_memcpy(link->h_dest, gateway, ETH_ALEN);
	__builtin_memcpy(link->h_source, gateway + ETH_ALEN, ETH_ALEN);
	if (with_ipv6) {
		struct ipv6hdr *outer = TAKE(&cursor, struct ipv6hdr);

		if (!outer)
			return XDP_DROP;
		link->h_proto = bpf_htons(ETH_P_IPV6);
		write_outer_ipv6(outer, packet, server);
	} else {
		struct iphdr *outer = TAKE(&cursor, struct iphdr);

		if (!outer)
			return XDP_DROP;
		link->h_proto = bpf_htons(ETH_P_IP);
		write_outer_ipv4(outer, packet, server);
	}
	return XDP_TX;
}

INLINE void add(void *statistics, __u32 which, __u64 bytes)
{
	struct traffic *traffic = bpf_map_lookup_elem(statistics, &which);

	if (traffic) {
		traffic->packets++;
		traffic->bytes += bytes;
	}
}

INLINE int balance(struct xdp_md *context, struct cursor *cursor, struct packet *packet)
{
	struct virtual_address target = {};
	struct service *service;
	struct server *server;
	__u32 number = 0;

	target.address = packet->flow.target;
	target.port = packet->flow.ports >> 16;
	target.protocol = packet->flow.protocol;
	service = bpf_map_lookup_elem(&services, &target);
	if (!service) {
		/* A service for all ports has port 0. */
		target.port = 0;
		service = bpf_map_lookup_elem(&services, &target);
		if (!service)
			return XDP_PASS;
		if (!(service->flags & QUIC))
			packet->flow.ports &= 0xffff;
	}
	if (service->number >= SERVICES)
		return XDP_DROP;
	if (service->flags & QUIC && !packet->is_quoted) {
		number = find_quic_server(cursor);
		count(&counters, number ? FROM_QUIC : WITHOUT_QUIC, 1);
	}
	if (!number)
		number = choose_server(packet, service);
	server = bpf_map_lookup_elem(&servers, &number);
	if (!number || !server)
		return XDP_DROP;
	add(&service_traffic, service->number, packet->bytes);
	add(&server_traffic, number, packet->bytes);
	return encapsulate(context, packet, server);
}

SEC("xdp") int balancer(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	struct packet packet = {};
	int verdict;

	if (!link)
		return XDP_DROP;
	if (link->h_proto == bpf_htons(ETH_P_IP))
		verdict = parse_ipv4(link, &cursor, &packet);
	else if (link->h_proto == bpf_htons(ETH_P_IPV6))
		verdict = parse_ipv6(link, &cursor, &packet);
	else
		return XDP_PASS;
	if (verdict != GO_ON)
		return verdict;
	return balance(context, &cursor, &packet);
}

LICENSE;
