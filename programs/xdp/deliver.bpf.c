// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Delivers frames to user space through the AF_XDP socket of their queue, with anonymised
// addresses: the last byte of IPv4 addresses is overwritten in the frame, in any layout, by copying
// helpers. Frames for other hosts pass.

#include "packet.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { DELIVERED, CUT, OTHERS };

INLINE int anonymise(struct xdp_md *context, __u32 offset)
{
	__be32 addresses[2];

	if (bpf_xdp_load_bytes(context, offset, addresses, sizeof(addresses)))
		return 0;
	addresses[0] &= bpf_htonl(0xffffff00);
	addresses[1] &= bpf_htonl(0xffffff00);
	return !bpf_xdp_store_bytes(context, offset, addresses, sizeof(addresses));
}

SEC("xdp") int deliver(struct xdp_md *context)
{
	__u32 offset = sizeof(struct ethhdr);
	struct ethhdr link;
	__be16 protocol;

	if (bpf_xdp_load_bytes(context, 0, &link, sizeof(link)))
		return XDP_DROP;
	protocol = link.h_proto;
	if (protocol == bpf_htons(ETH_P_8021Q)) {
		if (bpf_xdp_load_bytes(context, offset + 2, &protocol, sizeof(protocol)))
			return XDP_DROP;
		offset += sizeof(struct vlan_tag);
	}
	if (protocol != bpf_htons(ETH_P_IP)) {
		count(&counters, OTHERS, 1);
		return XDP_PASS;
	}
	if (!anonymise(context, offset + 12)) {
		count(&counters, CUT, 1);
		return XDP_DROP;
	}
	count(&counters, DELIVERED, 1);
	return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
}

LICENSE;
