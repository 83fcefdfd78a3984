// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Tracks TCP connections: the state of each by the flags of both sides, and packets and bytes in
// both directions. A packet that fits no state is dropped; the least recently used connections are
// evicted for new ones.

#include "packet.bpf.h"

enum { OPENING = 1, ANSWERED, OPEN, CLOSING, CLOSED };

struct connection {
	__be32 low, high;
	__be16 low_port, high_port;
};

struct state {
	__u32 phase;
	__u8 opener, finished;	/* 1: the low end, 2: the high end; `finished` has both as bits */
	__u16 unused;
	__u64 packets[2], bytes[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 32768);
	__type(key, struct connection);
	__type(value, struct state);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, __u64);
} verdicts SEC(".maps");

INLINE int put_in_order(const struct iphdr *network, const struct tcphdr *segment,
			struct connection *connection)
{
	int is_low = network->saddr < network->daddr ||
		(network->saddr == network->daddr && segment->source <= segment->dest);

	connection->low = is_low ? network->saddr : network->daddr;
	connection->high = is_low ? network->daddr : network->saddr;
	connection->low_port = is_low ? segment->source : segment->dest;
	connection->high_port = is_low ? segment->dest : segment->source;
	return is_low ? 1 : 2;
}

/* Advances to the phase after a segment; returns 0 if the segment is not valid in this phase. */
static __noinline int advance(struct state *state, __u32 side, __u32 flags)
{
	int is_syn = flags & 2, is_ack = flags & 16, is_fin = flags & 1;

	if (!state)
		return 0;
	if (flags & 4) {
		state->phase = CLOSED;
		return 1;
	}
	switch (state->phase) {
	case OPENING:
		if (side == state->opener)
			return is_syn && !is_ack;
		if (!is_syn || !is_ack)
			return 0;
		state->phase = ANSWERED;
		return 1;
	case ANSWERED:
		if (side != state->opener)
			return is_syn && is_ack;
		if (is_syn || !is_ack)
			return 0;
		state->phase = OPEN;
		return 1;
	case OPEN:
	case CLOSING:
		if (is_syn)
			return 0;
		if (is_fin) {
			state->finished |= side;
			state->phase = state->finished == 3 ? CLOSED : CLOSING;
		}
		return 1;
	case CLOSED:
		return !is_syn && is_ack;
	}
	return 0;
}

INLINE int track(const struct connection *connection, __u32 side, __u32 flags, __u64 bytes)
{
	struct state *state = bpf_map_lookup_elem(&connections, connection);
	struct state first = { .phase = OPENING, .opener = side };
	int is_opening = (flags & 0x17) == 2;
	__u32 at = (side - 1) & 1;

	if (state && state->phase == CLOSED && is_opening) {
		bpf_map_delete_elem(&connections, connection);
		state = 0;
	}
	if (!state) {
		if (!is_opening)
			return 0;
		first.packets[at] = 1;
		first.bytes[at] = bytes;
		return !bpf_map_update_elem(&connections, connection, &first, BPF_NOEXIST);
	}
	if (!advance(state, side, flags))
		return 0;
	state->packets[at]++;
	state->bytes[at] += bytes;
	return 1;
}

SEC("xdp") int follow(struct xdp_md *context)
{
	__u64 bytes = context->data_end - context->data;
	struct cursor cursor = begin(context);
	struct iphdr *network = find_ipv4(&cursor);
	struct connection connection;
	struct tcphdr *segment;
	__u32 side, verdict;

	if (!network || network->protocol != IPPROTO_TCP)
		return XDP_PASS;
	if (network->frag_off & bpf_htons(FRAGMENT_OFFSET))
		return XDP_PASS;
	segment = TAKE(&cursor, struct tcphdr);
	if (!segment)
		return XDP_DROP;
	side = put_in_order(network, segment, &connection);
	verdict = track(&connection, side, ((__u8 *)segment)[13], bytes);
	count(&verdicts, verdict, 1);
	return verdict ? XDP_PASS : XDP_DROP;
}

LICENSE;
