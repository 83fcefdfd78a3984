// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Variables: constants, initialised and zeroed ones, and those of named sections.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 limit = 7;
const char text[8] = "freeport";
__u64 sum = 0x1122334455667788;
__u32 count, unused[3];
static volatile __u32 hidden = 5;
__u16 own SEC(".data.own") = 0xabcd;

SEC("xdp") int variables(struct xdp_md *context)
{
	if (context->rx_queue_index >= limit)
		return text[context->rx_queue_index & 7];
	sum += hidden;
	unused[2] = own;
	return ++count;
}

char _license[] SEC("license") = "GPL";
__u32 _version SEC("version") = 0x60102;
