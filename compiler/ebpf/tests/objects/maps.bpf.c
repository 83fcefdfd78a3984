// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Every way to define a map with BTF, with entries that are set from the start.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct flow {
	__u32 source, target;
	__u16 ports[2];
};

typedef const struct flow flow_t;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__type(key, flow_t);
	__type(value, __u64[3]);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_COMMON_LRU);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_BLOOM_FILTER);
	__uint(value_size, 8);
	__uint(max_entries, 100);
	__uint(map_extra, 3);
} seen SEC(".maps");

struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 16);
	__uint(max_entries, 2);
} first SEC(".maps"), second SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(key_size, 4);
	__uint(max_entries, 5);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [1] = &first, [4] = &second } };

int next(struct xdp_md *context);

static struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(key_size, 4);
	__uint(max_entries, 3);
	__array(values, int(void *));
} jumps SEC(".maps") = { .values = { [2] = (void *)&next } };

SEC("xdp") int next(struct xdp_md *context)
{
	__u32 key = 1;
	void *map = bpf_map_lookup_elem(&outer, &key);
	return map ? XDP_PASS : XDP_DROP;
}

SEC("xdp") int entry(struct xdp_md *context)
{
	struct flow flow = { context->ingress_ifindex };
	if (bpf_map_lookup_elem(&flows, &flow))
		bpf_tail_call(context, &jumps, 2);
	return XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
