// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A kernel function.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

extern int bpf_xdp_metadata_rx_hash(const struct xdp_md *context, __u32 *hash) __ksym;

SEC("xdp") int asks(struct xdp_md *context)
{
	__u32 hash = 0;
	return bpf_xdp_metadata_rx_hash(context, &hash);
}
