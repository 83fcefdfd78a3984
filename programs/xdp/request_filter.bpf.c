// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Parses requests of HTTP and memcached in TCP segments: the method, and the size of the data to be
// stored ("Content-Length: N" in the first lines, "set KEY FLAGS TIME N"). Requests that are larger
// than allowed are dropped.

#include "packet.bpf.h"

#define WINDOW 128	/* bytes of a request that are parsed */

volatile const __u64 most_bytes = 100000;

enum { GET, POST, SET, DELETE, OTHER, TOO_LARGE, COUNTERS };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct window {
	char text[WINDOW + 32];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct window);
} windows SEC(".maps");

ONE_VALUE(last_length, __s64);

static const char content_length[] = "content-length:";

/* Copies the beginning of the request, so that string helpers can read it. */
INLINE void copy(struct cursor cursor, struct window *window)
{
	__builtin_memset(window->text, 0, sizeof(window->text));
	for (__u32 at = 0; at < WINDOW; at++) {
		char *byte = TAKE(&cursor, char);

		if (!byte)
			break;
		window->text[at] = *byte;
	}
}

/* Returns the offset of the fourth word, 0 if there is none in the first line. */
static __noinline __u32 find_fourth_word(struct window *window)
{
	__u32 spaces = 0;

	if (!window)
		return 0;
	for (__u32 at = 0; at < WINDOW - 1; at++) {
		if (window->text[at] == '\r' || !window->text[at])
			return 0;
		if (window->text[at] == ' ' && ++spaces == 4)
			return at + 1;
	}
	return 0;
}

/* Returns the offset of the header's value, 0 if there is no such header. */
static __noinline __u32 find_content_length(struct window *window)
{
	const __u32 bytes = sizeof(content_length) - 1;
	__u32 matched = 0;

	if (!window)
		return 0;
	for (__u32 at = 0; at < WINDOW; at++) {
		char value = window->text[at];

		if (value >= 'A' && value <= 'Z')
			value |= 0x20;
		if (matched < bytes && value == content_length[matched & 15])
			matched++;
		else
			matched = value == content_length[0];
		if (matched == bytes)
			return at + 1;
	}
	return 0;
}

INLINE int judge(struct window *window, __u32 start)
{
	long length = 0;
	__u32 zero = 0;
	__s64 *last;
	int used;

	if (!start || start >= WINDOW)
		return XDP_PASS;
	used = bpf_strtol(window->text + start, 20, 10, &length);
	last = bpf_map_lookup_elem(&last_length, &zero);
	if (last)
		*last = used < 0 ? used : length;
	if (used < 0 || length < 0 || (__u64)length > most_bytes) {
		count(&counters, TOO_LARGE, 1);
		return XDP_DROP;
	}
	return XDP_PASS;
}

SEC("xdp") int filter(struct xdp_md *context)
{
	struct cursor cursor = begin(context);
	struct iphdr *network = find_ipv4(&cursor);
	struct tcphdr *segment;
	struct window *window;
	__u32 zero = 0;

	if (!network || network->protocol != IPPROTO_TCP)
		return XDP_PASS;
	segment = TAKE(&cursor, struct tcphdr);
	if (!segment || segment->doff < 5 || !skip(&cursor, (segment->doff - 5) * 4))
		return XDP_PASS;
	window = bpf_map_lookup_elem(&windows, &zero);
	if (!window)
		return XDP_ABORTED;
	copy(cursor, window);
	if (!bpf_strncmp(window->text, 4, "GET ")) {
		count(&counters, GET, 1);
		return XDP_PASS;
	}
	if (!bpf_strncmp(window->text, 5, "POST ")) {
		count(&counters, POST, 1);
		return judge(window, find_content_length(window));
	}
	if (!bpf_strncmp(window->text, 4, "set ")) {
		count(&counters, SET, 1);
		return judge(window, find_fourth_word(window));
	}
	count(&counters, bpf_strncmp(window->text, 7, "delete ") ? OTHER : DELETE, 1);
	return XDP_PASS;
}

LICENSE;
