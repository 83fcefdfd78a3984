// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A jump into the middle of a constant of two slots.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp") int jumps(struct xdp_md *context)
{
	asm volatile("goto +1\n r1 = 1 ll" ::: "r1");
	return 1;
}
