// SPDX-License-Identifier: Apache-2.0 OR MIT
// Programs that use `io_uring`. Where the kernel has none, they say so, both plain and accelerated.

#include "case.h"

#include <dlfcn.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static char in[1000];

struct ring {
    int fd;
    struct io_uring_params parameters;
    char *submitted, *completed;
    struct io_uring_sqe *entries;
};

static int make(struct ring *ring) {
    *ring = (struct ring){0};
    ring->fd = syscall(SYS_io_uring_setup, 8, &ring->parameters);
    if (ring->fd < 0)
        return 0;
    int access = PROT_READ | PROT_WRITE;
    ring->submitted = mmap(NULL, 65536, access, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
    ring->completed = mmap(NULL, 65536, access, MAP_SHARED, ring->fd, IORING_OFF_CQ_RING);
    ring->entries = mmap(NULL, 4096, access, MAP_SHARED, ring->fd, IORING_OFF_SQES);
    return ring->submitted != MAP_FAILED && ring->completed != MAP_FAILED &&
           ring->entries != MAP_FAILED;
}

// Performs one operation through the ring, and returns its result.
static int do_one(struct ring *ring, int operation, int fd, void *bytes, unsigned count) {
    struct io_sqring_offsets *sent = &ring->parameters.sq_off;
    struct io_cqring_offsets *done = &ring->parameters.cq_off;
    unsigned *tail = (unsigned *)(ring->submitted + sent->tail);
    unsigned mask = *(unsigned *)(ring->submitted + sent->ring_mask);
    unsigned at = *tail & mask;
    ring->entries[at] = (struct io_uring_sqe){
        .opcode = operation, .fd = fd, .addr = (uintptr_t)bytes, .len = count};
    ((unsigned *)(ring->submitted + sent->array))[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    require(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) == 1,
            "io_uring_enter");
    unsigned *head = (unsigned *)(ring->completed + done->head);
    mask = *(unsigned *)(ring->completed + done->ring_mask);
    struct io_uring_cqe *entry = (struct io_uring_cqe *)(ring->completed + done->cqes);
    int result = entry[*head & mask].res;
    __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
    return result;
}

// One end uses a ring, the other ordinary calls.
static void talk(struct ring *ring, int fd, enum side side) {
    for (int i = 0; i < 40; i++) {
        if (side == CLIENT) {
            require(send(fd, "question", 8, 0) == 8, "send");
            require(recv(fd, in, 6, MSG_WAITALL) == 6, "receive");
        } else {
            require(do_one(ring, IORING_OP_RECV, fd, in, 8) == 8, "receive by the ring");
            require(do_one(ring, IORING_OP_SEND, fd, "answer", 6) == 6, "send by the ring");
        }
    }
    note("done");
}

CASE(from_the_beginning, COLD) {
    struct ring ring;
    int is_made = make(&ring);
    note("a ring: %d", is_made);
    if (is_made) {
        talk(&ring, fd, side);
        prove_soon(fd, side);
        check_returned(fd);
        talk(&ring, fd, side);
    }
}

CASE(after_the_upgrade, WARM | RACE) {
    struct ring ring;
    if (side == CLIENT) {
        TRY(send(fd, "unread", 6, 0));
        await_peer(side, 1);
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        await_bytes(fd, 6);
        TRY(send(fd, "unread", 6, 0));
    }
    int is_made = side == SERVER && make(&ring);
    if (side == SERVER)
        reach(side, 1);
    if (is_made) {
        check_returned(fd);
        TRY(do_one(&ring, IORING_OP_RECV, fd, in, 6));
        note_bytes("received", in, 6);
    } else if (side == SERVER) {
        _exit(0);
    }
    talk(&ring, fd, side);
}

// As in `liburing.h`, with extra space.
struct library_ring {
    void *places[7];
    struct io_uring_sqe *entries;
    unsigned first, end;
    char rest[1024];
};

// Makes a ring by liburing, which uses its own system call instructions. Not every machine has it.
static int make_by_library(struct library_ring *ring) {
    int (*begin)(unsigned, void *, unsigned) = NULL;
    if (dlopen("liburing.so.2", RTLD_NOW | RTLD_GLOBAL))
        begin = dlsym(RTLD_DEFAULT, "io_uring_queue_init");
    return begin && begin(8, ring, 0) == 0;
}

// Submits an operation and waits for it. Its result is elsewhere in the ring.
static int ask_by_library(struct library_ring *ring, int operation, int fd, void *bytes,
                          unsigned count) {
    int (*submit)(void *, unsigned) = dlsym(RTLD_DEFAULT, "io_uring_submit_and_wait");
    ring->entries[ring->end++ & 7] = (struct io_uring_sqe){
        .opcode = operation, .fd = fd, .addr = (uintptr_t)bytes, .len = count, .off = 0};
    return submit(ring, 1);
}

// A program that reads its files that way, like databases.
CASE(files_by_the_library, WARM) {
    struct library_ring ring = {0};
    if (side == SERVER && make_by_library(&ring)) {
        FILE *file = tmpfile();
        fputs("from a file", file);
        fflush(file);
        for (int i = 0; i < 20; i++)
            require(ask_by_library(&ring, IORING_OP_READ, fileno(file), in, 11) == 1, "submit");
        require(memcmp(in, "from a file", 11) == 0, "read");
        fclose(file);
    }
    if (side == SERVER)
        TRY(send(fd, "data", 4, 0));
    else
        TRY(recv(fd, in, 4, MSG_WAITALL));
    meet(side, 1);
    prove(fd, side);
}

CASE(sockets_by_the_library, WARM | RACE) {
    struct library_ring ring = {0};
    int is_made = side == SERVER && make_by_library(&ring);
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else if (is_made) {
        require(ask_by_library(&ring, IORING_OP_RECV, fd, in, 4) == 1, "submit");
        note_bytes("received", in, 4);
        check_returned(fd);
        TRY(send(fd, "answer", 6, 0));
    } else {
        require(receive_all(fd, in, 4) == 4, "receive");
        note_bytes("received", in, 4);
        TRY(send(fd, "answer", 6, 0));
    }
}
