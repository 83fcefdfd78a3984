// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The minimal actions of a program on a packet: drop it, send it back, send it to another device.
// Measurements with these show the cost of the machine itself.

#include "packet.bpf.h"

const volatile __u32 device = 1;

SEC("xdp") int drop(struct xdp_md *context)
{
	(void)context;
	return XDP_DROP;
}

SEC("xdp") int transmit(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct ethhdr *link = TAKE(&cursor, struct ethhdr);
	__u16 *target = (__u16 *)link->h_dest, *source = (__u16 *)link->h_source;

	if (!link)
		return XDP_DROP;
	for (int at = 0; at < 3; at++) {
		__u16 half = target[at];

		target[at] = source[at];
		source[at] = half;
	}
	return XDP_TX;
}

SEC("xdp") int redirect(struct xdp_md *context)
{
	(void)context;
	return bpf_redirect(device, 0);
}

LICENSE;
