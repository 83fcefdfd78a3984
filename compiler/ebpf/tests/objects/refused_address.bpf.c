// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// An address in data, which is not known before the program runs.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

int value = 1;
int *address = &value;

SEC("xdp") int follows(struct xdp_md *context)
{
	return *address;
}
