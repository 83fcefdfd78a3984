// SPDX-License-Identifier: Apache-2.0 OR MIT
// A minimal forwarder from one interface to another by AF_XDP: the throughput that the kernel's
// interface allows on one core. Raw system calls, one memory for both sockets, batches of 64; each
// chunk moves from the receive ring to the transmit ring and from the completion ring back to the
// fill ring.
//
//   forward IN OUT FRAMES CORE
//
// FRAMES is the size of the receive and of the transmit ring. It prints a line when it starts, and
// runs until it is killed.

#define _GNU_SOURCE
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>

#define BATCH 64
#define CHUNK 2048
#define XDP_MAX_TX_SKB_BUDGET 9

struct ring {
	uint32_t *producer, *consumer, *flags, mask;
	void *entries;
};

struct port {
	int socket;
	struct ring fill, completion, receive, transmit;
};

static void check(int is_good, const char *what)
{
	if (!is_good) {
		perror(what);
		exit(1);
	}
}

static void set(int socket, int option, uint32_t value)
{
	check(!setsockopt(socket, SOL_XDP, option, &value, sizeof value), "setsockopt");
}

static struct ring map(int socket, struct xdp_ring_offset at, uint64_t place, uint32_t entries,
		       size_t entry_bytes)
{
	uint8_t *start = mmap(0, at.desc + entries * entry_bytes, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_POPULATE, socket, (off_t)place);

	check(start != MAP_FAILED, "mmap");
	return (struct ring){
		.producer = (uint32_t *)(start + at.producer),
		.consumer = (uint32_t *)(start + at.consumer),
		.flags = (uint32_t *)(start + at.flags),
		.entries = start + at.desc,
		.mask = entries - 1,
	};
}

static struct port open_port(const char *name, uint32_t frames, void *memory,
			     const struct port *other)
{
	struct port port = { .socket = socket(AF_XDP, SOCK_RAW, 0) };
	struct xdp_mmap_offsets at;
	socklen_t bytes = sizeof at;
	struct sockaddr_xdp address = { .sxdp_family = AF_XDP };
	uint32_t most = frames;

	check(port.socket >= 0, "socket");
	if (!other) {
		struct xdp_umem_reg region = {
			.addr = (uintptr_t)memory, .len = 2ull * frames * CHUNK, .chunk_size = CHUNK
		};
		check(!setsockopt(port.socket, SOL_XDP, XDP_UMEM_REG, &region, sizeof region), "memory");
	}
	set(port.socket, XDP_UMEM_FILL_RING, 2 * frames);
	set(port.socket, XDP_UMEM_COMPLETION_RING, frames);
	set(port.socket, XDP_RX_RING, frames);
	set(port.socket, XDP_TX_RING, frames);
	(void)!setsockopt(port.socket, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &most, sizeof most);
	check(!getsockopt(port.socket, SOL_XDP, XDP_MMAP_OFFSETS, &at, &bytes), "offsets");
	port.fill = map(port.socket, at.fr, XDP_UMEM_PGOFF_FILL_RING, 2 * frames, 8);
	port.completion = map(port.socket, at.cr, XDP_UMEM_PGOFF_COMPLETION_RING, frames, 8);
	port.receive = map(port.socket, at.rx, XDP_PGOFF_RX_RING, frames, sizeof(struct xdp_desc));
	port.transmit = map(port.socket, at.tx, XDP_PGOFF_TX_RING, frames, sizeof(struct xdp_desc));
	address.sxdp_ifindex = if_nametoindex(name);
	address.sxdp_flags = other ? XDP_SHARED_UMEM : XDP_COPY | XDP_USE_NEED_WAKEUP;
	address.sxdp_shared_umem_fd = other ? (uint32_t)other->socket : 0;
	check(!bind(port.socket, (struct sockaddr *)&address, sizeof address), name);
	return port;
}

static int bpf(int command, union bpf_attr *attributes)
{
	int result = (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);

	check(result >= 0, "bpf");
	return result;
}

/* return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS) */
static void attach(const char *name, int socket)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1
	};
	int sockets = bpf(BPF_MAP_CREATE, &map), zero = 0;
	struct bpf_insn code[] = {
		{ .code = 0x61, .dst_reg = 2, .src_reg = 1, .off = 16 },
		{ .code = 0x18, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = sockets },
		{ 0 },
		{ .code = 0xb7, .dst_reg = 3, .imm = XDP_PASS },
		{ .code = 0x85, .imm = BPF_FUNC_redirect_map },
		{ .code = 0x95 },
	};
	union bpf_attr program = {
		.prog_type = BPF_PROG_TYPE_XDP, .insn_cnt = sizeof code / sizeof *code,
		.insns = (uintptr_t)code, .license = (uintptr_t)"Dual MIT/GPL"
	};
	union bpf_attr entry = {
		.map_fd = (uint32_t)sockets, .key = (uintptr_t)&zero, .value = (uintptr_t)&socket
	};
	union bpf_attr link = { 0 };

	link.link_create.prog_fd = (uint32_t)bpf(BPF_PROG_LOAD, &program);
	link.link_create.target_ifindex = if_nametoindex(name);
	link.link_create.attach_type = BPF_XDP;
	link.link_create.flags = XDP_FLAGS_DRV_MODE;
	bpf(BPF_MAP_UPDATE_ELEM, &entry);
	bpf(BPF_LINK_CREATE, &link);
}

static uint32_t load(uint32_t *place)
{
	return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *place, uint32_t value)
{
	__atomic_store_n(place, value, __ATOMIC_RELEASE);
}

/* Returns sent chunks to the fill ring of the receiving side. */
static void recycle(struct port *in, struct port *out)
{
	uint32_t from = *out->completion.consumer, end = load(out->completion.producer);
	uint32_t to = *in->fill.producer;

	if (from == end)
		return;
	while (from != end) {
		uint64_t address = ((uint64_t *)out->completion.entries)[from++ & out->completion.mask];

		((uint64_t *)in->fill.entries)[to++ & in->fill.mask] = address & ~(CHUNK - 1ull);
	}
	store(out->completion.consumer, from);
	store(in->fill.producer, to);
}

static void forward(struct port *in, struct port *out)
{
	struct xdp_desc *received = in->receive.entries, *sent = out->transmit.entries;
	uint32_t from = *in->receive.consumer, to = *out->transmit.producer;
	uint32_t count = load(in->receive.producer) - from;
	uint32_t room = out->transmit.mask + 1 - (to - load(out->transmit.consumer));

	count = count < BATCH ? count : BATCH;
	count = count < room ? count : room;
	for (uint32_t at = 0; at < count; at++)
		sent[to++ & out->transmit.mask] = received[from++ & in->receive.mask];
	store(in->receive.consumer, from);
	store(out->transmit.producer, to);
	if (to != load(out->transmit.consumer) && (load(out->transmit.flags) & XDP_RING_NEED_WAKEUP))
		(void)sendto(out->socket, 0, 0, MSG_DONTWAIT, 0, 0);
}

int main(int count, char **arguments)
{
	uint32_t frames = count == 5 ? (uint32_t)atoi(arguments[3]) : 0;
	struct port in, out;
	cpu_set_t core;
	void *memory;

	if (frames == 0 || frames & (frames - 1))
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&core);
	CPU_SET(atoi(arguments[4]), &core);
	sched_setaffinity(0, sizeof core, &core);
	memory = aligned_alloc(2 << 20, 2ull * frames * CHUNK);
	check(memory != 0, "memory");
	madvise(memory, 2ull * frames * CHUNK, MADV_HUGEPAGE);
	memset(memory, 0, 2ull * frames * CHUNK);
	in = open_port(arguments[1], frames, memory, 0);
	out = open_port(arguments[2], frames, memory, &in);
	for (uint32_t at = 0; at < 2 * frames; at++)
		((uint64_t *)in.fill.entries)[at] = (uint64_t)at * CHUNK;
	store(in.fill.producer, 2 * frames);
	attach(arguments[1], in.socket);
	puts("ready");
	fflush(stdout);
	for (;;) {
		recycle(&in, &out);
		forward(&in, &out);
	}
}
