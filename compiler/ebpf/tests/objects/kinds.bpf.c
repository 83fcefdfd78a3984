// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The section name determines the event that runs a program.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("xdp.frags") int fragments(struct xdp_md *context) { return XDP_PASS; }
SEC("xdp/devmap") int leaves(struct xdp_md *context) { return XDP_PASS; }
SEC("xdp.frags/cpumap") int arrives(struct xdp_md *context) { return XDP_PASS; }
SEC("?xdp") int optional(struct xdp_md *context) { return XDP_PASS; }
SEC("tc") int other(struct __sk_buff *context) { return 0; }
