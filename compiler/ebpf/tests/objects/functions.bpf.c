// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Functions in the program's section and in others, shared by programs, and one by its address.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

static __attribute__((noinline)) int shared(__u32 value)
{
	return value * 3 + (value >> 4);
}

__attribute__((noinline, weak)) int global(__u32 value)
{
	return shared(value + 1) ^ 5;
}

SEC("xdp") static __attribute__((noinline)) int beside(__u32 value)
{
	return global(value) - 2;
}

static long visit(__u32 index, void *sum)
{
	*(__u64 *)sum += shared(index);
	return 0;
}

SEC("xdp") int calls(struct xdp_md *context)
{
	return beside(context->ingress_ifindex) + global(context->rx_queue_index);
}

SEC("xdp") int loops(struct xdp_md *context)
{
	__u64 sum = 0;
	bpf_loop(10, visit, &sum, 0);
	return sum;
}
