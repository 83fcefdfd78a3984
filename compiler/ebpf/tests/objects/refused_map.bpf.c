// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A map with an unknown field.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(entries, 3);
} wrong SEC(".maps");

SEC("xdp") int uses(struct xdp_md *context)
{
	return bpf_map_lookup_elem(&wrong, context) ? 1 : 2;
}
