// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Instructions of version 4: signed division and moves, swaps, and sign-extending loads.
// -mcpu=v4
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp") int signs(struct xdp_md *context)
{
	int *word = (void *)(long)context->data;
	short *half = (void *)(word + 1);
	if ((void *)(word + 2) > (void *)(long)context->data_end)
		return XDP_DROP;
	long quotient = *word / (*half | 1) + *half % 7;
	return __builtin_bswap64(quotient) ^ (signed char)quotient;
}
