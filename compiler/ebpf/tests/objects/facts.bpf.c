// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Type facts that are left to the loader: those of the object itself are used.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct header {
	__u8 kind;
	__u16 low : 3, middle : 7, high : 6;
	struct {
		__s32 value;
	} list[4];
};
#pragma clang attribute pop

enum colour { RED = 3, GREEN = -9 };

SEC("xdp") int facts(struct xdp_md *context)
{
	struct header *header = (void *)(long)context->data;
	if ((void *)(header + 1) > (void *)(long)context->data_end)
		return XDP_DROP;
	int sum = header->list[2].value + BPF_CORE_READ_BITFIELD(header, middle);
	sum += bpf_core_type_size(struct header) * bpf_core_field_exists(header->kind);
	return sum + bpf_core_enum_value(enum colour, GREEN) + bpf_core_type_exists(struct header);
}
