/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parsing and checksums for the programs of this folder.
 *
 * A cursor is a place in a frame and the frame's end. A header is taken from it: the header then
 * lies within the frame, and the cursor is at its end. Fields are in network order.
 */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define INLINE static __attribute__((always_inline)) inline
#define LICENSE char program_license[] SEC("license") = "Dual BSD/GPL"

/* A map of one value, which programs use for their settings. */
#define ONE_VALUE(name, kind)					\
	struct {						\
		__uint(type, BPF_MAP_TYPE_ARRAY);		\
		__uint(max_entries, 1);				\
		__type(key, __u32);				\
		__type(value, kind);				\
	} name SEC(".maps")

#define VLAN_PRESENT 0x1000
#define FRAGMENT_OFFSET 0x1fff
#define MORE_FRAGMENTS 0x2000

struct cursor {
	void *at, *end;
};

struct vlan_tag {
	__be16 control, protocol;
};

/* ICMP and ICMPv6; <linux/icmp.h> needs headers of the C library. */
struct icmp {
	__u8 type, code;
	__u16 check;
	__be16 half[2];
};

#define ICMP_ECHO_REPLY 0
#define ICMP_UNREACHABLE 3
#define ICMP_TOO_BIG 4		/* a code of the above */
#define ICMP_ECHO 8
#define ICMP6_TOO_BIG 2
#define ICMP6_ECHO 128
#define ICMP6_ECHO_REPLY 129

/* A five-tuple of IPv4; the last three bytes of the protocol are 0. */
struct tuple {
	__be32 source, target;
	__be16 source_port, target_port;
	__u32 protocol;
};

INLINE struct cursor begin(struct xdp_md *context)
{
	struct cursor cursor = { (void *)(long)context->data, (void *)(long)context->data_end };

	return cursor;
}

/* Takes the next bytes; returns 0 if the frame ends before them. */
INLINE void *take(struct cursor *cursor, __u32 bytes)
{
	void *start = cursor->at;

	if (start + bytes > cursor->end)
		return 0;
	cursor->at = start + bytes;
	return start;
}

/* Skips a variable number of bytes, at most 2047. The compiler must not detect that the bound
 * always holds, nor compute the new place twice: otherwise the kernel's verifier cannot prove the
 * access. */
INLINE int skip(struct cursor *cursor, __u32 bytes)
{
	void *behind;

	asm volatile("" : "+r"(bytes));
	behind = cursor->at + (bytes & 0x7ff);
	asm volatile("" : "+r"(behind));
	if (behind > cursor->end)
		return 0;
	cursor->at = behind;
	return 1;
}

#define TAKE(cursor, kind) ((kind *)take(cursor, sizeof(kind)))

/* Takes the Ethernet header; `protocol` is that after at most two VLAN tags. */
INLINE struct ethhdr *take_ethernet(struct cursor *cursor, __be16 *protocol)
{
	struct ethhdr *link = TAKE(cursor, struct ethhdr);

	if (!link)
		return 0;
	*protocol = link->h_proto;
#pragma unroll
	for (int depth = 0; depth < 2; depth++) {
		struct vlan_tag *tag;

		if (*protocol != bpf_htons(ETH_P_8021Q) && *protocol != bpf_htons(ETH_P_8021AD))
			break;
		tag = TAKE(cursor, struct vlan_tag);
		if (!tag)
			return 0;
		*protocol = tag->protocol;
	}
	return link;
}

/* Takes the IPv4 header, with its options. */
INLINE struct iphdr *take_ipv4(struct cursor *cursor)
{
	struct iphdr *network = TAKE(cursor, struct iphdr);

	if (!network || network->version != 4 || network->ihl < 5)
		return 0;
	if (network->ihl > 5 && !skip(cursor, (network->ihl - 5) * 4))
		return 0;
	return network;
}

INLINE struct ipv6hdr *take_ipv6(struct cursor *cursor)
{
	struct ipv6hdr *network = TAKE(cursor, struct ipv6hdr);

	return network && network->version == 6 ? network : 0;
}

/* Takes an IPv4 header after the Ethernet header, with or without tags; 0 if there is none. */
INLINE struct iphdr *find_ipv4(struct cursor *cursor)
{
	__be16 protocol;

	if (!take_ethernet(cursor, &protocol) || protocol != bpf_htons(ETH_P_IP))
		return 0;
	return take_ipv4(cursor);
}

/* Finds the five-tuple of a TCP or UDP packet, unless it is a later fragment; 0 for all others. */
INLINE int find_tuple(struct cursor *cursor, struct tuple *tuple)
{
	struct iphdr *network = find_ipv4(cursor);
	struct {
		__be16 source, target;
	} *ports;

	if (!network || network->frag_off & bpf_htons(FRAGMENT_OFFSET))
		return 0;
	if (network->protocol != IPPROTO_TCP && network->protocol != IPPROTO_UDP)
		return 0;
	ports = take(cursor, sizeof(*ports));
	if (!ports)
		return 0;
	tuple->source = network->saddr;
	tuple->target = network->daddr;
	tuple->source_port = ports->source;
	tuple->target_port = ports->target;
	tuple->protocol = network->protocol;
	return 1;
}

INLINE void swap_addresses(struct ethhdr *link)
{
	unsigned char source[ETH_ALEN];

	__builtin_memcpy(source, link->h_source, ETH_ALEN);
	__builtin_memcpy(link->h_source, link->h_dest, ETH_ALEN);
	__builtin_memcpy(link->h_dest, source, ETH_ALEN);
}

/* Folds a sum of 16-bit words to 16 bits, whose complement is the Internet checksum. */
INLINE __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Returns the checksum of an IPv4 header without options, whose checksum field is 0. */
INLINE __u16 sum_ipv4(const struct iphdr *network)
{
	const __u16 *words = (const void *)network;
	__u64 sum = 0;

#pragma unroll
	for (unsigned int at = 0; at < sizeof(*network) / 2; at++)
		sum += words[at];
	return ~fold(sum);
}

/* Decrements the time to live, and updates the checksum (RFC 1624, equation 3). */
INLINE void decrement_ttl(struct iphdr *network)
{
	__u32 sum = network->check + bpf_htons(0x0100);

	network->check = sum + (sum >= 0xffff);
	network->ttl--;
}

/* Counts an event in an array of 64-bit counters, per CPU or not. */
INLINE void count(void *counters, __u32 which, __u64 by)
{
	__u64 *counter = bpf_map_lookup_elem(counters, &which);

	if (counter)
		*counter += by;
}

/* Returns a 32-bit hash of two words, as the finalizer of MurmurHash3 does. */
INLINE __u32 mix(__u32 left, __u32 right)
{
	__u32 hash = left * 0x9e3779b1 ^ (right + 0x85ebca6b);

	hash ^= hash >> 16;
	hash *= 0x85ebca6b;
	hash ^= hash >> 13;
	hash *= 0xc2b2ae35;
	return hash ^ hash >> 16;
}
