// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Answers an IPv4 packet that is too long for the path behind this host: the packet is truncated to
// its first bytes, and sent back to its source as the ICMP message "fragmentation needed" (RFC 792,
// RFC 1191). Others pass.

#include "packet.bpf.h"

/* An ICMP error quotes the packet's IP header and 8 bytes: with options at most 68 bytes. */
#define QUOTED (sizeof(struct iphdr) + 8)
#define GROWTH (sizeof(struct iphdr) + sizeof(struct icmp))

struct settings {
	__u32 longest;	/* maximum bytes of a frame that passes; 0 means 600 */
	__u32 mtu;	/* reported in the message */
};
ONE_VALUE(settings, struct settings);
ONE_VALUE(answered, __u64);

INLINE __u16 sum_icmp(const struct icmp *message)
{
	const __u16 *words = (const void *)message;
	__u64 sum = 0;

#pragma unroll
	for (unsigned int at = 0; at < (sizeof(*message) + QUOTED) / 2; at++)
		sum += words[at];
	return ~fold(sum);
}

/* Writes the headers before the quotation, once there is room for them. */
INLINE int write_answer(struct xdp_md *context, __u32 mtu)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	struct iphdr *network = TAKE(&cursor, struct iphdr);
	struct icmp *message;
	struct iphdr *quoted;
	struct ethhdr old;

	if (!link || !network)
		return XDP_ABORTED;
	message = TAKE(&cursor, struct icmp);
	if (!message)
		return XDP_ABORTED;
	/* The old Ethernet header lies before the quotation, at the end of the message's header. */
	quoted = take(&cursor, QUOTED);
	if (!quoted)
		return XDP_ABORTED;
	__builtin_memcpy(&old, (void *)quoted - sizeof(old), sizeof(old));
	__builtin_memcpy(link->h_dest, old.h_source, ETH_ALEN);
	__builtin_memcpy(link->h_source, old.h_dest, ETH_ALEN);
	link->h_proto = old.h_proto;

	__builtin_memset(message, 0, sizeof(*message));
	message->type = ICMP_UNREACHABLE;
	message->code = ICMP_TOO_BIG;
	message->half[1] = bpf_htons(mtu);
	message->check = sum_icmp(message);

	__builtin_memset(network, 0, sizeof(*network));
	network->version = 4;
	network->ihl = 5;
	network->tot_len = bpf_htons(GROWTH + QUOTED);
	network->ttl = 64;
	network->protocol = IPPROTO_ICMP;
	network->saddr = quoted->daddr;
	network->daddr = quoted->saddr;
	network->check = sum_ipv4(network);
	count(&answered, 0, 1);
	return XDP_TX;
}

SEC("xdp") int too_big(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	int length = cursor.end - (void *)(long)context->data;
	int kept = sizeof(struct ethhdr) + QUOTED;
	struct settings *chosen;
	__u32 zero = 0, longest, mtu;

	chosen = bpf_map_lookup_elem(&settings, &zero);
	if (!chosen || !link || link->h_proto != bpf_htons(ETH_P_IP) || !take_ipv4(&cursor))
		return XDP_PASS;
	longest = chosen->longest ? chosen->longest : 600;
	mtu = chosen->mtu ? chosen->mtu : longest - sizeof(struct ethhdr);
	if (length <= (int)longest || length < kept)
		return XDP_PASS;
	if (bpf_xdp_adjust_tail(context, kept - length))
		return XDP_ABORTED;
	if (bpf_xdp_adjust_head(context, -(int)GROWTH))
		return XDP_ABORTED;
	return write_answer(context, mtu);
}

LICENSE;
