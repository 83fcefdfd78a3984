// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A value of the kernel configuration.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern int CONFIG_HZ __kconfig;

SEC("xdp") int asks(struct xdp_md *context)
{
	return CONFIG_HZ;
}
