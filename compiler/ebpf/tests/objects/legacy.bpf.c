// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Maps as they were defined before BTF.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct bpf_map_def {
	unsigned int type, key_size, value_size, max_entries, map_flags;
};

struct bpf_map_def SEC("maps") counters = { BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, 16 };
struct bpf_map_def SEC("maps") prefixes = { BPF_MAP_TYPE_LPM_TRIE, 8, 4, 100, BPF_F_NO_PREALLOC };

SEC("xdp_count") int count(struct xdp_md *context)
{
	__u32 key = 3;
	__u64 *counter = bpf_map_lookup_elem(&counters, &key);
	if (counter)
		__sync_fetch_and_add(counter, 1);
	return bpf_map_lookup_elem(&prefixes, &(__u64){ 32 }) ? XDP_PASS : XDP_DROP;
}
