// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Translates between untagged frames and VLANs. The settings of a frame's VLAN (0 for untagged
// frames) determine whether its tag is removed, changed, or a new one is added; frames of VLANs
// without settings are dropped.

#include "packet.bpf.h"

enum { LEAVE, POP, PUSH, CHANGE };

struct treatment {
	__u32 action;
	__u16 vlan, unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u16);
	__type(value, struct treatment);
} treatments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u16);
	__type(value, __u64);
} frames SEC(".maps");

struct tagged {
	__u8 addresses[2 * ETH_ALEN];
	__be16 protocol;
	__be16 control;
	__be16 inner;
};

INLINE void count_frame(__u16 vlan)
{
	__u64 one = 1, *seen = bpf_map_lookup_elem(&frames, &vlan);

	if (seen)
		*seen += 1;
	else
		bpf_map_update_elem(&frames, &vlan, &one, BPF_NOEXIST);
}

INLINE int pop(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct tagged *frame = TAKE(&cursor, struct tagged);
	__u8 addresses[2 * ETH_ALEN];
	void *link;

	if (!frame)
		return XDP_DROP;
	__builtin_memcpy(addresses, frame->addresses, sizeof(addresses));
	if (bpf_xdp_adjust_head(context, sizeof(struct vlan_tag)))
		return XDP_ABORTED;
	cursor = begin(context);
	link = TAKE(&cursor, struct ethhdr);
	if (!link)
		return XDP_DROP;
	__builtin_memcpy(link, addresses, sizeof(addresses));
	return XDP_PASS;
}

INLINE int push(struct xdp_md *context, __u16 vlan)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	__u8 addresses[2 * ETH_ALEN];
	struct tagged *frame;

	if (!link)
		return XDP_DROP;
	__builtin_memcpy(addresses, link, sizeof(addresses));
	if (bpf_xdp_adjust_head(context, -(int)sizeof(struct vlan_tag)))
		return XDP_ABORTED;
	cursor = begin(context);
	frame = TAKE(&cursor, struct tagged);
	if (!frame)
		return XDP_DROP;
	__builtin_memcpy(frame->addresses, addresses, sizeof(addresses));
	frame->protocol = bpf_htons(ETH_P_8021Q);
	frame->control = bpf_htons(vlan & 0xfff);
	return XDP_TX;
}

SEC("xdp") int translate(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	struct vlan_tag *tag = 0;
	struct treatment *treatment;
	__u16 vlan = 0;

	if (!link)
		return XDP_DROP;
	if (link->h_proto == bpf_htons(ETH_P_8021Q)) {
		tag = TAKE(&cursor, struct vlan_tag);
		if (!tag)
			return XDP_DROP;
		vlan = bpf_ntohs(tag->control) & 0xfff;
	}
	treatment = bpf_map_lookup_elem(&treatments, &vlan);
	if (!treatment)
		return XDP_DROP;
	count_frame(vlan);
	switch (treatment->action) {
	case LEAVE:
		return XDP_PASS;
	case POP:
		return tag ? pop(context) : XDP_PASS;
	case PUSH:
		return push(context, treatment->vlan);
	case CHANGE:
		if (!tag)
			return XDP_PASS;
		/* Priority and drop eligibility are preserved. */
		tag->control = (tag->control & bpf_htons(0xf000)) | bpf_htons(treatment->vlan & 0xfff);
		return XDP_TX;
	}
	return XDP_ABORTED;
}

LICENSE;
