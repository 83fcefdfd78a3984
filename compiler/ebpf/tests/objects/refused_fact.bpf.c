// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Whether a kernel's type matches an expected one cannot be determined from an object.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

struct buffer___old {
	int length;
} __attribute__((preserve_access_index));

SEC("xdp") int asks(struct xdp_md *context)
{
	return bpf_core_type_exists(struct buffer___old);
}
