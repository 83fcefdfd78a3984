/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Frames by the protocol of their IPv4 or IPv6 header, counted separately for each CPU. */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u64);
} protocols SEC(".maps");

/* Content after an Ethernet header: truncated, not IP, or IP. */
enum network { CUT, NO_IP, IP };

/* Takes an IP header, and returns its protocol. */
INLINE enum network take_protocol(struct cursor *cursor, __be16 kind, __u32 *protocol)
{
	if (kind == bpf_htons(ETH_P_IP)) {
		struct iphdr *network = TAKE(cursor, struct iphdr);

		if (!network)
			return CUT;
		*protocol = network->protocol;
	} else if (kind == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *network = TAKE(cursor, struct ipv6hdr);

		if (!network)
			return CUT;
		*protocol = network->nexthdr;
	} else {
		return NO_IP;
	}
	return IP;
}
