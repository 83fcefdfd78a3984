// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Distributes frames: broadcasts and multicasts to all devices of a map except the ingress device,
// known Ethernet addresses to their device, IP flows to a CPU by their hash. Learns addresses, as a
// bridge does.

#include "packet.bpf.h"

#define CPUS 4

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 64);
	__type(key, __u32);
	__type(value, struct bpf_devmap_val);
} devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, CPUS);
	__type(key, __u32);
	__type(value, struct bpf_cpumap_val);
} cpus SEC(".maps");

struct station {
	__u8 address[ETH_ALEN];
	__u16 unused;
};

/* The device of each station. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct station);
	__type(value, __u32);
} stations SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { TO_ALL, TO_DEVICE, TO_CPU, TO_NOBODY };

INLINE void learn(const struct ethhdr *link, __u32 device)
{
	struct station station = {};
	__u32 *known;

	__builtin_memcpy(station.address, link->h_source, ETH_ALEN);
	known = bpf_map_lookup_elem(&stations, &station);
	if (!known)
		bpf_map_update_elem(&stations, &station, &device, BPF_ANY);
	else if (*known != device)
		*known = device;
}

SEC("xdp") int spread(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct station station = {};
	struct iphdr *network;
	struct ethhdr *link;
	__be16 protocol;
	__u32 *device;

	link = take_ethernet(&cursor, &protocol);
	if (!link)
		return XDP_DROP;
	if (!(link->h_source[0] & 1))
		learn(link, context->ingress_ifindex);
	if (link->h_dest[0] & 1) {
		count(&counters, TO_ALL, 1);
		return bpf_redirect_map(&devices, 0, BPF_F_BROADCAST | BPF_F_EXCLUDE_INGRESS);
	}
	__builtin_memcpy(station.address, link->h_dest, ETH_ALEN);
	device = bpf_map_lookup_elem(&stations, &station);
	if (device) {
		count(&counters, TO_DEVICE, 1);
		return bpf_redirect_map(&devices, *device, XDP_PASS);
	}
	network = TAKE(&cursor, struct iphdr);
	if (protocol == bpf_htons(ETH_P_IP) && network) {
		count(&counters, TO_CPU, 1);
		return bpf_redirect_map(&cpus, mix(network->saddr, network->daddr) % CPUS,
					XDP_DROP);
	}
	count(&counters, TO_NOBODY, 1);
	return XDP_DROP;
}

SEC("xdp/cpumap") int on_its_cpu(struct xdp_md *context)
{
	struct cursor cursor = begin(context);

	return TAKE(&cursor, struct ethhdr) ? XDP_PASS : XDP_DROP;
}

LICENSE;
