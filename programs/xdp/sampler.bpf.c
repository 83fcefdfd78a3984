// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Samples frames for user space: one frame of each run of frames goes into a ring with its first
// bytes, every TCP SYN with its addresses into a second ring, and one frame in a thousand, at
// random, becomes a perf event. Samples without room are counted.

#include "packet.bpf.h"

#define SNAPPED 64

volatile const __u32 every = 8;
__u32 since;
__u64 frames, lost;
/* In a section of its own, since the values differ between runs. */
SEC(".data.chance") __u64 by_chance = 0, unheard = 0;

struct sample {
	__u32 length, copied;
	__u8 bytes[SNAPPED];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} openings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} events SEC(".maps");

INLINE void take_sample(struct xdp_md *context, struct cursor whole)
{
	struct sample *sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
	__u32 length = context->data_end - context->data;
	__u8 *first = whole.at;

	if (!sample) {
		lost++;
		return;
	}
	if (length < sizeof(struct ethhdr)) {
		bpf_ringbuf_discard(sample, BPF_RB_NO_WAKEUP);
		return;
	}
	sample->length = length;
	__builtin_memset(sample->bytes, 0, SNAPPED);
	sample->copied = 0;
	for (__u32 at = 0; at < SNAPPED; at++) {
		if ((void *)(first + at + 1) > whole.end)
			break;
		sample->bytes[at] = first[at];
		sample->copied++;
	}
	bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}

SEC("xdp") int watch(struct xdp_md *context)
{
	struct cursor cursor = begin(context), whole = cursor;
	struct iphdr *network;
	struct tcphdr *segment;
	struct tuple tuple;

	frames++;
	if (++since >= every) {
		since = 0;
		take_sample(context, whole);
	}
	if (bpf_get_prandom_u32() % 1000 == 0) {
		__u64 now = bpf_ktime_get_ns();
		__u64 flags = BPF_F_CURRENT_CPU | (__u64)sizeof(struct ethhdr) << 32;

		by_chance++;
		if (bpf_perf_event_output(context, &events, flags, &now, sizeof(now)))
			unheard++;
	}
	network = find_ipv4(&cursor);
	if (!network || network->protocol != IPPROTO_TCP)
		return XDP_PASS;
	segment = TAKE(&cursor, struct tcphdr);
	if (!segment || !segment->syn)
		return XDP_PASS;
	tuple.source = network->saddr;
	tuple.target = network->daddr;
	tuple.source_port = segment->source;
	tuple.target_port = segment->dest;
	tuple.protocol = IPPROTO_TCP;
	if (bpf_ringbuf_output(&openings, &tuple, sizeof(tuple), BPF_RB_NO_WAKEUP))
		lost++;
	return XDP_PASS;
}

LICENSE;
