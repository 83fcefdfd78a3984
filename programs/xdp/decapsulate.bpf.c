// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Decapsulates packets from GRE, IPIP and VXLAN tunnels with known remote ends and keys, and passes
// the inner packet. GRE may have a checksum, which is not verified, a key and a sequence number.

#include "packet.bpf.h"

#define VXLAN_PORT 4789

enum { GRE_CHECKSUM = 0x8000, GRE_KEY = 0x2000, GRE_SEQUENCE = 0x1000, GRE_OTHERS = 0x4fff };

struct gre {
	__be16 flags, protocol;
};

struct vxlan {
	__u8 flags, unused[3];
	__be32 network;		/* in the upper three bytes */
};

/* The remote end, and the key or network, 0 for none. */
struct tunnel {
	__be32 source, key;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct tunnel);
	__type(value, __u64);	/* packets */
} tunnels SEC(".maps");

INLINE int is_known(__be32 source, __be32 key)
{
	struct tunnel tunnel = { source, key };
	__u64 *packets = bpf_map_lookup_elem(&tunnels, &tunnel);

	if (packets)
		__sync_fetch_and_add(packets, 1);
	return packets != 0;
}

/* Removes everything up to the cursor, and puts the Ethernet header in front of an IP packet. */
INLINE int strip(struct xdp_md *context, struct cursor *cursor, __be16 protocol)
{
	int bytes = cursor->at - (void *)(long)context->data;
	struct ethhdr *link, copy;
	struct cursor whole = begin(context);

	link = TAKE(&whole, struct ethhdr);
	if (!link)
		return XDP_DROP;
	copy = *link;
	copy.h_proto = protocol;
	if (bpf_xdp_adjust_head(context, bytes - (int)sizeof(copy)))
		return XDP_DROP;
	whole = begin(context);
	link = TAKE(&whole, struct ethhdr);
	if (!link)
		return XDP_ABORTED;
	*link = copy;
	return XDP_PASS;
}

INLINE int leave_gre(struct xdp_md *context, struct cursor *cursor, __be32 source)
{
	struct gre *header = TAKE(cursor, struct gre);
	__be32 *key, number = 0;
	__be16 protocol;
	__u16 flags;

	if (!header)
		return XDP_DROP;
	flags = bpf_ntohs(header->flags);
	protocol = header->protocol;
	if (flags & GRE_OTHERS)
		return XDP_DROP;
	if (flags & GRE_CHECKSUM && !skip(cursor, 4))
		return XDP_DROP;
	if (flags & GRE_KEY) {
		key = TAKE(cursor, __be32);
		if (!key)
			return XDP_DROP;
		number = *key;
	}
	if (flags & GRE_SEQUENCE && !skip(cursor, 4))
		return XDP_DROP;
	if (protocol != bpf_htons(ETH_P_IP) && protocol != bpf_htons(ETH_P_IPV6))
		return XDP_DROP;
	return is_known(source, number) ? strip(context, cursor, protocol) : XDP_DROP;
}

INLINE int leave_vxlan(struct xdp_md *context, struct cursor *cursor, __be32 source)
{
	struct udphdr *datagram = TAKE(cursor, struct udphdr);
	struct vxlan *header;
	int bytes;

	if (!datagram || datagram->dest != bpf_htons(VXLAN_PORT))
		return XDP_PASS;
	header = TAKE(cursor, struct vxlan);
	if (!header || !(header->flags & 8))
		return XDP_DROP;
	if (!is_known(source, header->network & bpf_htonl(0xffffff00)))
		return XDP_DROP;
	bytes = cursor->at - (void *)(long)context->data;
	return bpf_xdp_adjust_head(context, bytes) ? XDP_DROP : XDP_PASS;
}

SEC("xdp") int decapsulate(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct iphdr *network = find_ipv4(&cursor);

	if (!network || network->frag_off & bpf_htons(FRAGMENT_OFFSET | MORE_FRAGMENTS))
		return XDP_PASS;
	switch (network->protocol) {
	case IPPROTO_GRE:
		return leave_gre(context, &cursor, network->saddr);
	case IPPROTO_UDP:
		return leave_vxlan(context, &cursor, network->saddr);
	case IPPROTO_IPIP:
		if (!is_known(network->saddr, 0))
			return XDP_DROP;
		return strip(context, &cursor, bpf_htons(ETH_P_IP));
	}
	return XDP_PASS;
}

LICENSE;
