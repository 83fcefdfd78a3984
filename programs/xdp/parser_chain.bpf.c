// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A chain of parsers, one program for each kind of header: each parses its header and tail-calls
// the next one. The offset of the next header is in front of the frame, as metadata. Packets
// without a parser pass, marked with the progress of parsing.

#include "packet.bpf.h"

enum { ETHERNET, VLAN, IPV4, IPV6, EXTENSION, TCP, UDP, PARSERS };

/* Metadata in front of the frame. */
struct progress {
	__u16 offset;	/* offset of the next header */
	__u16 depth;	/* number of parsed headers */
	__u32 seen;	/* bit n: parser n ran */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PARSERS);
	__type(key, __u32);
	__type(value, __u64);
} headers SEC(".maps");

int parse_ethernet(struct xdp_md *context);
int parse_vlan(struct xdp_md *context);
int parse_ipv4(struct xdp_md *context);
int parse_ipv6(struct xdp_md *context);
int parse_extension(struct xdp_md *context);
int parse_tcp(struct xdp_md *context);

/* UDP has no parser: execution continues after a call of an empty entry. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PARSERS);
	__uint(key_size, sizeof(__u32));
	__array(values, int(void *));
} parsers SEC(".maps") = {
	.values = {
		[VLAN] = (void *)&parse_vlan,
		[IPV4] = (void *)&parse_ipv4,
		[IPV6] = (void *)&parse_ipv6,
		[EXTENSION] = (void *)&parse_extension,
		[TCP] = (void *)&parse_tcp,
	},
};

/* Returns the progress, and the frame from the next header on; 0 if there is no metadata. */
INLINE struct progress *resume(struct xdp_md *context, struct cursor *cursor, __u32 parser)
{
	struct progress *progress = (void *)(long)context->data_meta;

	*cursor = begin(context);
	if ((void *)(progress + 1) > cursor->at)
		return 0;
	progress->seen |= 1 << parser;
	progress->depth++;
	count(&headers, parser, 1);
	return skip(cursor, progress->offset) ? progress : 0;
}

INLINE int go_on(struct xdp_md *context, struct progress *progress, __u32 bytes, __u32 parser)
{
	progress->offset += bytes;
	bpf_tail_call(context, &parsers, parser);
	return XDP_PASS;
}

INLINE int by_ethernet_protocol(struct xdp_md *context, struct progress *progress, __u32 bytes,
				__be16 protocol)
{
	switch (protocol) {
	case bpf_htons(ETH_P_8021Q):
	case bpf_htons(ETH_P_8021AD):
		return go_on(context, progress, bytes, VLAN);
	case bpf_htons(ETH_P_IP):
		return go_on(context, progress, bytes, IPV4);
	case bpf_htons(ETH_P_IPV6):
		return go_on(context, progress, bytes, IPV6);
	}
	return XDP_PASS;
}

INLINE int by_ip_protocol(struct xdp_md *context, struct progress *progress, __u32 bytes,
			  __u8 protocol)
{
	switch (protocol) {
	case 0:		/* hop by hop */
	case 43:	/* routing */
	case 60:	/* destination options */
		return go_on(context, progress, bytes, EXTENSION);
	case IPPROTO_TCP:
		return go_on(context, progress, bytes, TCP);
	case IPPROTO_UDP:
		return go_on(context, progress, bytes, UDP);
	}
	return XDP_PASS;
}

SEC("xdp") int parse_ethernet(struct xdp_md *context)
{
	struct progress *progress;
	struct cursor cursor;
	struct ethhdr *link;

	if (bpf_xdp_adjust_meta(context, -(int)sizeof(*progress)))
		return XDP_ABORTED;
	progress = (void *)(long)context->data_meta;
	if ((void *)(progress + 1) > (void *)(long)context->data)
		return XDP_ABORTED;
	__builtin_memset(progress, 0, sizeof(*progress));
	progress = resume(context, &cursor, ETHERNET);
	link = TAKE(&cursor, struct ethhdr);
	if (!progress || !link)
		return XDP_DROP;
	return by_ethernet_protocol(context, progress, sizeof(*link), link->h_proto);
}

SEC("xdp") int parse_vlan(struct xdp_md *context)
{
	struct cursor cursor;
	struct progress *progress = resume(context, &cursor, VLAN);
	struct vlan_tag *tag;

	if (!progress)
		return XDP_DROP;
	tag = TAKE(&cursor, struct vlan_tag);
	if (!tag)
		return XDP_DROP;
	return by_ethernet_protocol(context, progress, sizeof(*tag), tag->protocol);
}

SEC("xdp") int parse_ipv4(struct xdp_md *context)
{
	struct cursor cursor;
	struct progress *progress = resume(context, &cursor, IPV4);
	struct iphdr *network;

	if (!progress)
		return XDP_DROP;
	network = TAKE(&cursor, struct iphdr);
	if (!network || network->version != 4 || network->ihl < 5)
		return XDP_DROP;
	return by_ip_protocol(context, progress, network->ihl * 4, network->protocol);
}

SEC("xdp") int parse_ipv6(struct xdp_md *context)
{
	struct cursor cursor;
	struct progress *progress = resume(context, &cursor, IPV6);
	struct ipv6hdr *network;

	if (!progress)
		return XDP_DROP;
	network = take_ipv6(&cursor);
	if (!network)
		return XDP_DROP;
	return by_ip_protocol(context, progress, sizeof(*network), network->nexthdr);
}

SEC("xdp") int parse_extension(struct xdp_md *context)
{
	struct cursor cursor;
	struct progress *progress = resume(context, &cursor, EXTENSION);
	struct ipv6_opt_hdr *header;

	if (!progress)
		return XDP_DROP;
	header = TAKE(&cursor, struct ipv6_opt_hdr);
	if (!header)
		return XDP_DROP;
	return by_ip_protocol(context, progress, (header->hdrlen + 1) * 8, header->nexthdr);
}

SEC("xdp") int parse_tcp(struct xdp_md *context)
{
	struct cursor cursor;
	struct progress *progress = resume(context, &cursor, TCP);
	struct tcphdr *segment;

	if (!progress)
		return XDP_DROP;
	segment = TAKE(&cursor, struct tcphdr);
	return segment && segment->doff >= 5 ? XDP_PASS : XDP_DROP;
}

LICENSE;
