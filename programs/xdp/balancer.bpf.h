/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Maps and packet parsing of the load balancer. */

#define SERVICES 16
#define SERVERS 256
#define RING 1021	/* slots, a prime */
#define IDLE_NS 30000000000ull
#define GO_ON -1

struct address {
	__be32 word[4];		/* IPv4 has the other three words 0 */
};

struct virtual_address {
	struct address address;
	__be16 port, unused;
	__u32 protocol;
};

/* Flags of a service. */
enum {
	WITHOUT_SOURCE_PORT = 1,	/* all flows of a source go to one server */
	WITHOUT_TABLE = 2,		/* flows are not remembered */
	QUIC = 4,
	BY_TARGET_PORT = 8,		/* only the target port is hashed */
	TIMED = 16,			/* a server is chosen anew for flows that were idle */
};

struct service {
	__u32 flags, number;
};

enum { SERVER_IPV6 = 1 };

struct server {
	struct address address;
	__u32 flags;
};

struct flow {
	struct address source, target;
	__u32 ports;	/* source in the lower half, both in network byte order */
	__u32 protocol;
};

struct flow_state {
	__u32 server, unused;
	__u64 used_ns;
};

struct traffic {
	__u64 packets, bytes;
};

struct rate {
	__u64 since_ns, flows;
};

struct settings {
	__u64 new_flows_per_second;	/* 0: unlimited */
};

/* Parsed fields of a packet. */
struct packet {
	struct flow flow;
	__u16 bytes;	/* of the IP packet */
	__u8 tos;
	__u8 is_ipv6, is_opening, is_quoted;
};

enum { FROM_TABLE, FROM_RING, FROM_QUIC, WITHOUT_QUIC, ICMP_ERRORS, ICMP_ECHOS, COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SERVICES);
	__type(key, struct virtual_address);
	__type(value, struct service);
} services SEC(".maps");

/* Numbers of servers by slot; 0 is none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES * RING);
	__type(key, __u32);
	__type(value, __u32);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVERS);
	__type(key, __u32);
	__type(value, struct server);
} servers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, __u32);
} quic_servers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct flow);
	__type(value, struct flow_state);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES);
	__type(key, __u32);
	__type(value, struct traffic);
} service_traffic SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVERS);
	__type(key, __u32);
	__type(value, struct traffic);
} server_traffic SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rate);
} rates SEC(".maps");

ONE_VALUE(settings, struct settings);
/* Ethernet address of the next router, and our own. */
ONE_VALUE(gateways, __u8[2 * ETH_ALEN]);

INLINE __u32 hash_flow(const struct flow *flow, __u32 flags)
{
	__u32 hash = flow->protocol;

	if (flags & BY_TARGET_PORT)
		return mix(flow->ports >> 16, 0);
#pragma unroll
	for (int at = 0; at < 4; at++)
		hash = mix(hash, flow->source.word[at]);
#pragma unroll
	for (int at = 0; at < 4; at++)
		hash = mix(hash, flow->target.word[at]);
	return mix(hash, flags & WITHOUT_SOURCE_PORT ? flow->ports >> 16 : flow->ports);
}

/* Reads ports; those of a quoted packet are swapped. */
INLINE int parse_ports(struct cursor *cursor, struct packet *packet)
{
	struct {
		__be16 source, target;
	} *ports;

	if (packet->flow.protocol == IPPROTO_TCP && !packet->is_quoted) {
		struct tcphdr *segment = TAKE(cursor, struct tcphdr);

		if (!segment)
			return XDP_DROP;
		packet->is_opening = segment->syn;
		packet->flow.ports = segment->source | (__u32)segment->dest << 16;
		return GO_ON;
	}
	if (packet->flow.protocol != IPPROTO_TCP && packet->flow.protocol != IPPROTO_UDP)
		return XDP_PASS;
	ports = take(cursor, sizeof(*ports));
	if (!ports)
		return XDP_DROP;
	if (packet->is_quoted) {
		packet->flow.ports = ports->target | (__u32)ports->source << 16;
		return GO_ON;
	}
	packet->flow.ports = ports->source | (__u32)ports->target << 16;
	return take(cursor, sizeof(struct udphdr) - sizeof(*ports)) ? GO_ON : XDP_DROP;
}

/* Returns whether a service has this address, with any port and protocol. */
INLINE int is_virtual(const struct address *address)
{
	struct virtual_address target = { .address = *address };

	return bpf_map_lookup_elem(&services, &target) != 0;
}

/* Turns an echo request into a reply; the checksum is updated for the change of the type. */
INLINE int reply(struct ethhdr *link, struct icmp *message, __u8 old, __u8 new)
{
	__u32 sum = (__u16)~message->check + (__u16)~bpf_htons(old << 8) + bpf_htons(new << 8);

	message->type = new;
	message->check = ~fold(sum);
	swap_addresses(link);
	count(&counters, ICMP_ECHOS, 1);
	return XDP_TX;
}

INLINE int parse_icmp_ipv4(struct ethhdr *link, struct iphdr *network, struct cursor *cursor,
			   struct packet *packet)
{
	struct icmp *message = TAKE(cursor, struct icmp);
	struct iphdr *quoted;

	if (!message)
		return XDP_DROP;
	if (message->type == ICMP_ECHO) {
		__be32 source = network->saddr;

		if (!is_virtual(&packet->flow.target))
			return XDP_PASS;
		network->saddr = network->daddr;
		network->daddr = source;
		return reply(link, message, ICMP_ECHO, ICMP_ECHO_REPLY);
	}
	if (message->type != ICMP_UNREACHABLE || message->code != ICMP_TOO_BIG)
		return XDP_PASS;
	quoted = TAKE(cursor, struct iphdr);
	if (!quoted || quoted->ihl != 5)
		return XDP_DROP;
	count(&counters, ICMP_ERRORS, 1);
	packet->is_quoted = 1;
	packet->flow.protocol = quoted->protocol;
	packet->flow.source.word[0] = quoted->daddr;
	packet->flow.target.word[0] = quoted->saddr;
	return parse_ports(cursor, packet);
}

INLINE int parse_ipv4(struct ethhdr *link, struct cursor *cursor, struct packet *packet)
{
	struct iphdr *network = TAKE(cursor, struct iphdr);

	/* A packet with options, or a fragment, has its ports elsewhere or not at all. */
	if (!network || network->version != 4 || network->ihl != 5)
		return XDP_DROP;
	if (network->frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS))
		return XDP_DROP;
	packet->flow.source.word[0] = network->saddr;
	packet->flow.target.word[0] = network->daddr;
	packet->flow.protocol = network->protocol;
	packet->bytes = bpf_ntohs(network->tot_len);
	packet->tos = network->tos;
	if (network->protocol == IPPROTO_ICMP)
		return parse_icmp_ipv4(link, network, cursor, packet);
	return parse_ports(cursor, packet);
}

INLINE int parse_icmp_ipv6(struct ethhdr *link, struct ipv6hdr *network, struct cursor *cursor,
			   struct packet *packet)
{
	struct icmp *message = TAKE(cursor, struct icmp);
	struct ipv6hdr *quoted;

	if (!message)
		return XDP_DROP;
	if (message->type == ICMP6_ECHO) {
		struct in6_addr source = network->saddr;

		if (!is_virtual(&packet->flow.target))
			return XDP_PASS;
		network->saddr = network->daddr;
		network->daddr = source;
		return reply(link, message, ICMP6_ECHO, ICMP6_ECHO_REPLY);
	}
	if (message->type != ICMP6_TOO_BIG)
		return XDP_PASS;
	quoted = take_ipv6(cursor);
	if (!quoted)
		return XDP_DROP;
	count(&counters, ICMP_ERRORS, 1);
	packet->is_quoted = 1;
	packet->flow.protocol = quoted->nexthdr;
	__builtin_memcpy(&packet->flow.source, &quoted->daddr, sizeof(struct address));
	__builtin_memcpy(&packet->flow.target, &quoted->saddr, sizeof(struct address));
	return parse_ports(cursor, packet);
}

INLINE int parse_ipv6(struct ethhdr *link, struct cursor *cursor, struct packet *packet)
{
	struct ipv6hdr *network = take_ipv6(cursor);

	if (!network || network->nexthdr == IPPROTO_FRAGMENT)
		return XDP_DROP;
	packet->is_ipv6 = 1;
	__builtin_memcpy(&packet->flow.source, &network->saddr, sizeof(struct address));
	__builtin_memcpy(&packet->flow.target, &network->daddr, sizeof(struct address));
	packet->flow.protocol = network->nexthdr;
	packet->bytes = bpf_ntohs(network->payload_len) + sizeof(*network);
	packet->tos = network->priority << 4;
	if (network->nexthdr == IPPROTO_ICMPV6)
		return parse_icmp_ipv6(link, network, cursor, packet);
	return parse_ports(cursor, packet);
}
