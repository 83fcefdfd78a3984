// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Gives each tenant its own tables: a VLAN is a tenant, and has a table of allowed targets and an
// array of counters, both inner maps of outer ones that user space changes with the tenants.

#include "packet.bpf.h"

enum { ALLOWED, DENIED, NO_IPV4, COUNTERS };

struct targets {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __be32);
	__type(value, __u64);	/* packets */
} targets_of_first SEC(".maps");

struct tenant_counters {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters_of_first SEC(".maps"), counters_of_second SEC(".maps");

/* By VLAN. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 64);
	__type(key, __u32);
	__array(values, struct targets);
} targets SEC(".maps");

/* By the VLAN's lower four bits. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 16);
	__type(key, __u32);
	__array(values, struct tenant_counters);
} counters SEC(".maps") = {
	.values = { [1] = &counters_of_first, [2] = &counters_of_second },
};

INLINE int judge(void *allowed, void *counts, __be32 target)
{
	__u64 *packets = bpf_map_lookup_elem(allowed, &target);

	if (!packets) {
		count(counts, DENIED, 1);
		return XDP_DROP;
	}
	__sync_fetch_and_add(packets, 1);
	count(counts, ALLOWED, 1);
	return XDP_PASS;
}

SEC("xdp") int isolate(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	void *allowed, *counts;
	struct iphdr *network;
	struct vlan_tag *tag;
	__u32 tenant, place;

	if (!link || link->h_proto != bpf_htons(ETH_P_8021Q))
		return XDP_DROP;
	tag = TAKE(&cursor, struct vlan_tag);
	if (!tag)
		return XDP_DROP;
	tenant = bpf_ntohs(tag->control) & 0xfff;
	place = tenant & 15;
	allowed = bpf_map_lookup_elem(&targets, &tenant);
	counts = bpf_map_lookup_elem(&counters, &place);
	if (!allowed || !counts)
		return XDP_DROP;
	if (tag->protocol != bpf_htons(ETH_P_IP)) {
		count(counts, NO_IPV4, 1);
		return XDP_PASS;
	}
	network = TAKE(&cursor, struct iphdr);
	return network ? judge(allowed, counts, network->daddr) : XDP_DROP;
}

LICENSE;
