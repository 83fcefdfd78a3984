// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Counts frames by length, in classes that double, and maintains minimum, maximum, mean and
// deviation, with signed arithmetic: a Welford recurrence in fixed point.

#include "packet.bpf.h"

#define CLASSES 16

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLASSES);
	__type(key, __u32);
	__type(value, __u64);
} classes SEC(".maps");

/* Lengths are in 256ths of a byte. */
struct summary {
	__s64 frames, mean, squares;
	__u32 least, largest;
};
ONE_VALUE(summary_of_frames, struct summary);

INLINE __u32 class_of(__u32 bytes)
{
	__u32 class = 0;

	for (int shift = 8; shift; shift >>= 1) {
		if (bytes >> shift) {
			bytes >>= shift;
			class += shift;
		}
	}
	return class;
}

/* Divides signed numbers by their magnitudes: the division of version 3 of this instruction set is
 * unsigned. */
INLINE __s64 divide(__s64 value, __u64 by)
{
	return value < 0 ? -(__s64)(-(__u64)value / by) : (__s64)((__u64)value / by);
}

SEC("xdp") int measure(struct xdp_md *context)
{
	__u32 bytes = context->data_end - context->data, zero = 0;
	struct summary *summary = bpf_map_lookup_elem(&summary_of_frames, &zero);
	__s64 length = (__s64)bytes << 8, away;
	__u32 class = class_of(bytes);
	__u64 *counter = bpf_map_lookup_elem(&classes, &class);

	if (!summary || !counter)
		return XDP_ABORTED;
	__sync_fetch_and_add(counter, 1);
	if (!summary->frames++ || bytes < summary->least)
		summary->least = bytes;
	if (bytes > summary->largest)
		summary->largest = bytes;
	away = length - summary->mean;
	summary->mean += divide(away, summary->frames);
	summary->squares += (away >> 8) * ((length - summary->mean) >> 8);
	return XDP_PASS;
}

LICENSE;
