// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Drops DNS queries for names on a list. The name of the first question is read label by label,
// byte by byte in a bounded loop, into a key of fixed length; upper case is converted to lower. A
// listed name includes all its subdomains.

#include "packet.bpf.h"

#define LONGEST_NAME 64
#define DNS_PORT 53

struct dns {
	__be16 id, flags, questions, answers, authorities, additional;
};

struct name {
	char text[LONGEST_NAME];	/* labels with their lengths, and zeros */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct name);
	__type(value, __u64);		/* dropped queries */
} listed SEC(".maps");

/* Buffer for a name; the stack is too small for two. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name);
} rooms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

enum { PASSED, DROPPED, MALFORMED, TOO_LONG };

/* Copies a name; returns its length, 0 if it is malformed, -1 if it is too long. */
INLINE int read_name(struct cursor *cursor, struct name *name)
{
	__u32 left = 0, at;

	__builtin_memset(name, 0, sizeof(*name));
	for (at = 0; at < LONGEST_NAME; at++) {
		__u8 *byte = TAKE(cursor, __u8);
		__u8 value;

		if (!byte)
			return 0;
		value = *byte;
		if (!left) {
			/* A length; pointers are not allowed in a question. */
			if (value > 63)
				return 0;
			if (!value)
				return at + 1;
			left = value;
		} else {
			left--;
			if (value >= 'A' && value <= 'Z')
				value |= 0x20;
		}
		name->text[at] = value;
	}
	return -1;
}

/* Removes the first label. */
INLINE int shorten(struct name *name)
{
	__u32 bytes = (name->text[0] & 63) + 1;
	__u32 at, from;

	if (bytes == 1)
		return 0;
	for (at = 0; at < LONGEST_NAME; at++) {
		from = at + bytes;
		/* The verifier must see the bound on the register that is the index. */
		asm volatile("" : "+r"(from));
		name->text[at] = from < LONGEST_NAME ? name->text[from] : 0;
	}
	return name->text[0] != 0;
}

SEC("xdp") int filter(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct iphdr *network = find_ipv4(&cursor);
	struct udphdr *datagram;
	__u32 zero = 0, depth;
	struct dns *header;
	struct name *name;
	int bytes;

	if (!network || network->protocol != IPPROTO_UDP)
		return XDP_PASS;
	datagram = TAKE(&cursor, struct udphdr);
	if (!datagram || datagram->dest != bpf_htons(DNS_PORT))
		return XDP_PASS;
	header = TAKE(&cursor, struct dns);
	name = bpf_map_lookup_elem(&rooms, &zero);
	if (!header || !name || !header->questions || header->flags & bpf_htons(0x8000)) {
		count(&counters, MALFORMED, 1);
		return XDP_DROP;
	}
	bytes = read_name(&cursor, name);
	if (bytes <= 0) {
		count(&counters, bytes ? TOO_LONG : MALFORMED, 1);
		return XDP_DROP;
	}
	for (depth = 0; depth < 6; depth++) {
		__u64 *dropped = bpf_map_lookup_elem(&listed, name);

		if (dropped) {
			__sync_fetch_and_add(dropped, 1);
			count(&counters, DROPPED, 1);
			return XDP_DROP;
		}
		if (!shorten(name))
			break;
	}
	count(&counters, PASSED, 1);
	return XDP_PASS;
}

LICENSE;
