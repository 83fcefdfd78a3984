// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A kernel variable; a weak one may be missing.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern const int maybe __ksym __weak;
extern const int needed __ksym;

SEC("xdp") int asks(struct xdp_md *context)
{
	return &maybe ? XDP_DROP : (long)&needed;
}
