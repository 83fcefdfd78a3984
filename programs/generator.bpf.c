// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Generates and receives the traffic of peers between two interfaces. The frames that the kernel's
// test facility sends are in a few buffers that are reused in the state in which they return, so
// every header field that may have been changed is rewritten.
//
//   xdp.send   writes the addresses and the next flow, and sends the frame to an interface
//   xdp.pass   passes a frame to the network stack
//   xdp.count  counts a frame and drops it
//   xdp.keep   as xdp.count, and keeps the first bytes of the first frames

#include "peer.bpf.h"

#define KEPT_FRAMES 4096
#define KEPT_WORDS 7

struct settings {
	__u32 interface;
	__u8 link[2 * ETH_ALEN];
};

struct kept {
	__u64 words[KEPT_WORDS];
};

struct map_definition settings SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct settings), 1, 0
};
struct map_definition counts SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(__u64), 1, 0
};
struct map_definition kept SECTION("maps") = {
	BPF_MAP_TYPE_ARRAY, sizeof(__u32), sizeof(struct kept), KEPT_FRAMES, 0
};

static long (*const redirect)(__u32 interface, __u64 flags) = (void *)BPF_FUNC_redirect;

SECTION("xdp.send") int send(struct xdp_md *context)
{
	__u32 zero = 0;
	struct settings *own = map_lookup(&settings, &zero);
	__u8 *start;

	if (!own || !write_stamp(context))
		return XDP_ABORTED;
	start = (void *)(long)context->data;
	if (start + sizeof(own->link) > (__u8 *)(long)context->data_end)
		return XDP_ABORTED;
	__builtin_memcpy(start, own->link, sizeof(own->link));
	return redirect(own->interface, 0);
}

SECTION("xdp.pass") int pass(struct xdp_md *context)
{
	return XDP_PASS;
}

SECTION("xdp.count") int count(struct xdp_md *context)
{
	__u32 zero = 0;
	__u64 *number = map_lookup(&counts, &zero);

	if (number)
		++*number;
	return XDP_DROP;
}

SECTION("xdp.keep") int keep(struct xdp_md *context)
{
	__u64 *words = (void *)(long)context->data, *number;
	__u32 at = 0;
	struct kept *place;

	number = map_lookup(&counts, &at);
	if (!number || (void *)(words + KEPT_WORDS) > (void *)(long)context->data_end)
		return XDP_DROP;
	at = (*number)++;
	place = map_lookup(&kept, &at);
	if (!place)
		return XDP_DROP;
	#pragma unroll
	for (int word = 0; word < KEPT_WORDS; word++)
		place->words[word] = words[word];
	return XDP_DROP;
}

char program_license[] SECTION("license") = "Dual BSD/GPL";
