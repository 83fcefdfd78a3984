// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Opens a port to a source that has sent UDP packets to secret ports in the right order. A packet
// to a wrong port restarts the sequence. Other traffic passes.

#include "packet.bpf.h"

#define KNOCKS 4

struct secret {
	__u16 knocks[KNOCKS], guarded, unused[3];
};

/* Set by the loader of the program. */
const volatile struct secret secret = { { 7000, 8000, 9000, 7001 }, 22, {} };

/* Number of correct knocks of a source. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __be32);
	__type(value, __u32);
} heard SEC(".maps");

/* Global variables, shared by all processors. */
__u64 opened, refused;
__u32 last_source;

INLINE void knock(__be32 source, __u16 port)
{
	__u32 first = 1, *right = bpf_map_lookup_elem(&heard, &source);

	if (!right) {
		if (port == secret.knocks[0])
			bpf_map_update_elem(&heard, &source, &first, BPF_NOEXIST);
		return;
	}
	if (*right >= KNOCKS)
		return;
	if (port != secret.knocks[*right & (KNOCKS - 1)]) {
		bpf_map_delete_elem(&heard, &source);
		return;
	}
	if (++*right == KNOCKS) {
		opened++;
		last_source = source;
	}
}

SEC("xdp") int guard(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct tuple tuple;
	__u32 *right;

	if (!find_tuple(&cursor, &tuple))
		return XDP_PASS;
	if (tuple.protocol == IPPROTO_UDP) {
		knock(tuple.source, bpf_ntohs(tuple.target_port));
		return XDP_PASS;
	}
	if (tuple.target_port != bpf_htons(secret.guarded))
		return XDP_PASS;
	right = bpf_map_lookup_elem(&heard, &tuple.source);
	if (right && *right >= KNOCKS)
		return XDP_PASS;
	__sync_fetch_and_add(&refused, 1);
	return XDP_DROP;
}

LICENSE;
