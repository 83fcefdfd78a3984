// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Verifies the checksum of UDP datagrams of any length, two bytes at a time in a loop that calls a
// function (bpf_loop), drops datagrams with a wrong one, and fills in missing ones.

#include "packet.bpf.h"

#define MOST_WORDS 2048

struct walk {
	struct xdp_md *context;
	__u32 offset, end;	/* of the datagram in the frame */
	__u64 sum;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { RIGHT, WRONG, FILLED, CUT };

static long add_word(__u32 at, struct walk *walk)
{
	__u32 offset = (walk->offset + 2 * at) & 0x1fff;
	__u8 *place = (void *)(long)walk->context->data;
	void *end = (void *)(long)walk->context->data_end;

	place += offset;
	if (offset + 1 >= walk->end) {
		if (offset < walk->end && (void *)(place + 1) <= end)
			walk->sum += place[0];
		return 1;
	}
	if ((void *)(place + 2) > end)
		return 1;
	walk->sum += place[0] | place[1] << 8;
	return 0;
}

SEC("xdp") int verify(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct walk walk = { .context = context };
	struct iphdr *network = find_ipv4(&cursor);
	const __u16 *addresses;
	struct udphdr *datagram;
	__u16 bytes, sum;

	if (!network || network->protocol != IPPROTO_UDP)
		return XDP_PASS;
	if (network->frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS))
		return XDP_PASS;
	walk.offset = cursor.at - (void *)(long)context->data;
	datagram = TAKE(&cursor, struct udphdr);
	if (!datagram)
		return XDP_DROP;
	bytes = bpf_ntohs(datagram->len);
	walk.end = walk.offset + bytes;
	if (bytes < sizeof(*datagram) || walk.end > context->data_end - context->data) {
		count(&counters, CUT, 1);
		return XDP_DROP;
	}
	walk.sum = datagram->len + bpf_htons(IPPROTO_UDP);
	addresses = (const void *)&network->saddr;
	for (int at = 0; at < 4; at++)
		walk.sum += addresses[at];
	bpf_loop(MOST_WORDS, add_word, &walk, 0);
	sum = ~fold(walk.sum);
	if (!datagram->check) {
		datagram->check = sum ? sum : 0xffff;
		count(&counters, FILLED, 1);
		return XDP_TX;
	}
	count(&counters, sum ? WRONG : RIGHT, 1);
	return sum ? XDP_DROP : XDP_PASS;
}

LICENSE;
