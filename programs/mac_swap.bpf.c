// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sends every frame back to its ingress interface, with its two Ethernet addresses swapped. The
// kernel's counterpart of the graph `from_tor -> MacSwap -> to_tor`.

#include <linux/bpf.h>
#include <linux/if_ether.h>

__attribute__((section("xdp"), used))
int mac_swap(struct xdp_md *context)
{
	void *end = (void *)(long)context->data_end;
	struct ethhdr *header = (void *)(long)context->data;
	unsigned char target[ETH_ALEN];

	if ((void *)(header + 1) > end)
		return XDP_DROP;
	__builtin_memcpy(target, header->h_dest, ETH_ALEN);
	__builtin_memcpy(header->h_dest, header->h_source, ETH_ALEN);
	__builtin_memcpy(header->h_source, target, ETH_ALEN);
	return XDP_TX;
}

char program_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
