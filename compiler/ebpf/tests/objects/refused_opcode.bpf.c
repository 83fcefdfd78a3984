// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A slot that is not a valid instruction.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp") int asks(struct xdp_md *context)
{
	int result = 1;
	asm volatile(".8byte 0xff");
	return result;
}
