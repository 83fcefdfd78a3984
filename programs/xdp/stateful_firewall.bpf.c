// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Exactly the firewall of hXDP's publication: the 5-tuple of TCP and UDP over IPv4 without options,
// a key that both directions share, an entry created by the first packet from inside, and no way in
// without one. `simple_firewall` beside it also supports VLAN tags and options, counts the traffic
// of flows, and has a setting for the inner device.

#include "packet.bpf.h"

const volatile __u32 inside = 1;

/* The two ends of a flow, address and port, the smaller one first. */
struct flow {
	__u64 low, high, protocol;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct flow);
	__type(value, __u64);
} flows SEC(".maps");

/* Egress devices, by the number of the ingress device. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u32);
} ways SEC(".maps");

struct ports {
	__be16 source, target;
};

/* Uses one branch, where two conditional values would need two. */
INLINE void swap(struct flow *flow)
{
	__u64 high = flow->low;

	flow->low = flow->high;
	flow->high = high;
	asm volatile("" : "+r"(flow->low), "+r"(flow->high));
}

SEC("xdp") int firewall(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end;
	struct ethhdr *link = (void *)(long)context->data;
	struct iphdr *network = (void *)(link + 1);
	struct ports *ports = (void *)(network + 1);
	__u64 first = 0;
	struct flow flow;

	if ((void *)(ports + 1) > end || link->h_proto != bpf_htons(ETH_P_IP))
		return XDP_DROP;
	if (*(__u8 *)network != 0x45 || network->frag_off & bpf_htons(FRAGMENT_OFFSET))
		return XDP_DROP;
	flow.protocol = network->protocol;
	if (network->protocol != IPPROTO_TCP && network->protocol != IPPROTO_UDP)
		return XDP_DROP;
	flow.low = (__u64)network->saddr << 16 | ports->source;
	flow.high = (__u64)network->daddr << 16 | ports->target;
	if (flow.low > flow.high)
		swap(&flow);
	if (!bpf_map_lookup_elem(&flows, &flow) &&
	    (context->ingress_ifindex != inside ||
	     bpf_map_update_elem(&flows, &flow, &first, BPF_ANY)))
		return XDP_DROP;
	return bpf_redirect_map(&ways, context->ingress_ifindex, XDP_ABORTED);
}

LICENSE;
