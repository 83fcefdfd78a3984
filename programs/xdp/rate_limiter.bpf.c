// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Limits the rate of each IPv4 source with a token bucket: a token is a byte; the bucket fills with
// time up to its burst, and a packet passes if there are tokens for all of it. Sources without a
// bucket pass when all buckets are in use.

#include "packet.bpf.h"

struct settings {
	__u64 bytes_per_second, burst;
};
ONE_VALUE(settings, struct settings);

struct bucket {
	struct bpf_spin_lock lock;
	__u32 dropped;
	__u64 tokens, filled_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __be32);
	__type(value, struct bucket);
} buckets SEC(".maps");

/* Tokens for a time, limited to a second, in which any bucket is filled. */
INLINE __u64 tokens_of(__u64 passed_ns, __u64 bytes_per_second)
{
	if (passed_ns > 1000000000)
		passed_ns = 1000000000;
	return passed_ns * (bytes_per_second / 1000) / 1000000;
}

SEC("xdp") int limit(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	__u64 bytes = context->data_end - context->data, now;
	struct iphdr *network = find_ipv4(&cursor);
	struct settings *chosen;
	struct bucket *bucket;
	__u32 zero = 0;
	__be32 source;
	int passes;

	if (!network)
		return XDP_PASS;
	chosen = bpf_map_lookup_elem(&settings, &zero);
	if (!chosen)
		return XDP_ABORTED;
	source = network->saddr;
	now = bpf_ktime_get_ns();
	bucket = bpf_map_lookup_elem(&buckets, &source);
	if (!bucket) {
		struct bucket first = { .filled_ns = now };

		if (bytes > chosen->burst)
			return XDP_DROP;
		first.tokens = chosen->burst - bytes;
		bpf_map_update_elem(&buckets, &source, &first, BPF_NOEXIST);
		return XDP_PASS;
	}
	bpf_spin_lock(&bucket->lock);
	if (now - bucket->filled_ns >= 1000000) {
		bucket->tokens += tokens_of(now - bucket->filled_ns, chosen->bytes_per_second);
		if (bucket->tokens > chosen->burst)
			bucket->tokens = chosen->burst;
		bucket->filled_ns = now;
	}
	passes = bucket->tokens >= bytes;
	if (passes)
		bucket->tokens -= bytes;
	else
		bucket->dropped++;
	bpf_spin_unlock(&bucket->lock);
	return passes ? XDP_PASS : XDP_DROP;
}

LICENSE;
