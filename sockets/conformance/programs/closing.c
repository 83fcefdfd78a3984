// SPDX-License-Identifier: Apache-2.0 OR MIT
// Closing a descriptor while other threads block in calls on it: those calls continue with the
// socket, and the peer sees its end when the last of them returns. Also closing that waits
// (SO_LINGER).

#include "case.h"

#include <netinet/tcp.h>
#include <sys/syscall.h>

enum { THREADS = 3, MUCH = 4 << 20 };
static char big[MUCH];
static int stream;

struct waiter {
    pthread_t thread;
    void *(*does)(void *waiter);
    volatile int number; // of the thread, in the kernel
    long result;
    int error;
    char got[64];
};

// Returns whether a thread is in a system call that waits for a stream. The library may make other
// calls first, to request acceleration from its monitor. If the kernel does not tell, assumes so.
static int waits_for_stream(int thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", thread);
    FILE *file = fopen(path, "r");
    long number = -1;
    int is_known = file && fscanf(file, "%ld", &number) == 1;
    if (file)
        fclose(file);
#ifdef SYS_poll
    if (number == SYS_poll)
        return 1;
#endif
    return !file || (is_known && (number == SYS_recvfrom || number == SYS_sendto ||
                                  number == SYS_ppoll));
}

// Waits until a thread sleeps in the kernel for a stream, during many checks in a row, or has
// ended.
static void await_sleep(struct waiter *waiter) {
    char path[64], text[512];
    for (int looks = 0; looks < 20;) {
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter->number);
        FILE *file = waiter->number ? fopen(path, "r") : NULL;
        if (waiter->number && !file)
            return;
        char *end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : NULL;
        looks = end && end[2] == 'S' && waits_for_stream(waiter->number) ? looks + 1 : 0;
        if (file)
            fclose(file);
        usleep(1000);
    }
}

static void begin(struct waiter *waiter, void *(*does)(void *waiter)) {
    require(pthread_create(&waiter->thread, NULL, does, waiter) == 0, "thread");
    await_sleep(waiter);
}

static void end(struct waiter *waiter, const char *what) {
    require(pthread_join(waiter->thread, NULL) == 0, "join");
    const char *error = waiter->result < 0 ? strerrorname_np(waiter->error) : "";
    note("%s: %ld %s", what, waiter->result, error);
    if (waiter->result > 0 && waiter->result <= (long)sizeof waiter->got)
        note_bytes(what, waiter->got, waiter->result);
}

static void *receives(void *argument) {
    struct waiter *waiter = argument;
    waiter->number = syscall(SYS_gettid);
    waiter->result = recv(stream, waiter->got, sizeof waiter->got, 0);
    waiter->error = errno;
    return NULL;
}

static void *receives_one(void *argument) {
    struct waiter *waiter = argument;
    waiter->number = syscall(SYS_gettid);
    waiter->result = recv(stream, waiter->got, 1, 0);
    waiter->error = errno;
    return NULL;
}

static void *receives_all(void *argument) {
    struct waiter *waiter = argument;
    waiter->number = syscall(SYS_gettid);
    waiter->result = recv(stream, waiter->got, 8, MSG_WAITALL);
    waiter->error = errno;
    return NULL;
}

static void *sends(void *argument) {
    struct waiter *waiter = argument;
    waiter->number = syscall(SYS_gettid);
    waiter->result = send(stream, big, sizeof big, MSG_NOSIGNAL);
    waiter->error = errno;
    return NULL;
}

// The peer: the connection stays open until it has sent its word; then comes the end, or a reset.
static void talk(int fd, enum side side, const char *word) {
    meet(side, 1);
    note_poll("closed there", fd);
    TRY(send(fd, word, strlen(word), MSG_NOSIGNAL));
    meet(side, 2);
    await_events(fd, POLLRDHUP);
    TRY(recv(fd, big, sizeof big, 0));
    meet(side, 3);
}

static void closed_under(enum side side, int fd, void *(*does)(void *waiter),
                         void (*close_it)(int fd)) {
    prove(fd, side);
    if (side == CLIENT) {
        talk(fd, side, "eight by");
        return;
    }
    struct waiter waiter = {0};
    stream = fd;
    begin(&waiter, does);
    close_it(fd);
    meet(side, 1);
    end(&waiter, "recv");
    meet(side, 2);
    meet(side, 3);
}

static void by_close(int fd) { TRY(close(fd)); }
static void by_another(int fd) {
    int other = open("/dev/null", O_RDWR);
    TRY_OK(dup2(other, fd));
}
static void by_range(int fd) { TRY(close_range(fd, fd, 0)); }
// Its number belongs to another connection immediately, whose bytes must not be taken.
static void by_close_and_another(int fd) {
    int pair[2];
    new_pair(pair);
    TRY(close(fd));
    require(dup2(pair[0], fd) == fd, "the same number");
    require(send(pair[1], "for another", 11, 0) == 11, "send");
}

CASE(close_under_recv, WARM) { closed_under(side, fd, receives, by_close); }
CASE(dup2_under_recv, WARM) { closed_under(side, fd, receives, by_another); }
CASE(close_range_under_recv, WARM) { closed_under(side, fd, receives, by_range); }
CASE(close_under_waiting_for_all, WARM) { closed_under(side, fd, receives_all, by_close); }
CASE(close_under_recv_in_the_kernel, COLD) { closed_under(side, fd, receives, by_close); }
CASE(close_and_another_under_recv, WARM) {
    closed_under(side, fd, receives, by_close_and_another);
    if (side == SERVER)
        TRY(recv(fd, big, 64, MSG_DONTWAIT));
}

CASE(close_under_several, WARM) {
    prove(fd, side);
    if (side == CLIENT) {
        meet(side, 1);
        for (int i = 0; i < THREADS; i++) {
            note_poll("closed there", fd);
            TRY(send(fd, "x", 1, MSG_NOSIGNAL));
            meet(side, 2 + i);
        }
        await_events(fd, POLLRDHUP);
        note_poll("all gone", fd);
        return;
    }
    static struct waiter waiters[THREADS];
    stream = fd;
    for (int i = 0; i < THREADS; i++)
        begin(&waiters[i], receives_one);
    TRY(close(fd));
    meet(side, 1);
    for (int i = 0; i < THREADS; i++) {
        // One of the threads gets it.
        meet(side, 2 + i);
    }
    for (int i = 0; i < THREADS; i++)
        end(&waiters[i], "recv");
}

CASE(close_under_send, WARM) {
    prove(fd, side);
    if (side == CLIENT) {
        fill(big, sizeof big, 3);
        meet(side, 1);
        require(receive_all(fd, big, sizeof big) == sizeof big, "receive");
        note_bytes("all of it", big, sizeof big);
        TRY(recv(fd, big, sizeof big, 0));
        return;
    }
    struct waiter waiter = {0};
    // More than the buffers hold, however far the machine lets them grow.
    int room = 1 << 16;
    require(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0, "SO_SNDBUF");
    fill(big, sizeof big, 3);
    stream = fd;
    begin(&waiter, sends);
    TRY(close(fd));
    meet(side, 1);
    end(&waiter, "send");
}

CASE(a_child_beside_a_closed_one, WARM) {
    prove(fd, side);
    if (side == CLIENT) {
        talk(fd, side, "word");
        return;
    }
    struct waiter waiter = {0};
    stream = fd;
    begin(&waiter, receives);
    TRY(close(fd));
    pid_t child = fork();
    if (child == 0)
        _exit(fcntl(fd, F_GETFD) >= 0);
    note_end("child", child);
    meet(side, 1);
    end(&waiter, "recv");
    meet(side, 2);
    meet(side, 3);
}

// Closes a full connection, and notes whether that waited for the peer.
static void close_lingering(int fd, enum side side, int seconds) {
    prove(fd, side);
    if (side == CLIENT) {
        meet(side, 1);
        meet(side, 2);
        note_bytes("all", big, drain(fd) > 0);
        return;
    }
    struct linger linger = {1, seconds};
    struct timespec before, after;
    fill_up(fd);
    TRY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    meet(side, 1);
    clock_gettime(CLOCK_MONOTONIC, &before);
    TRY(close(fd));
    clock_gettime(CLOCK_MONOTONIC, &after);
    long took = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    // The kernel waits for the bytes in its own buffer.
    note("waited: %d", took >= 500 * seconds);
    meet(side, 2);
}

CASE(lingering_while_nobody_reads, WARM) { close_lingering(fd, side, 1); }

CASE(lingering_until_all_is_read, WARM) {
    prove(fd, side);
    if (side == CLIENT) {
        meet(side, 1);
        while (recv(fd, big, sizeof big, 0) > 0)
            ;
        note_poll("all read", fd);
    } else {
        struct linger linger = {1, 100};
        fill_up(fd);
        TRY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
        meet(side, 1);
        TRY(close(fd));
    }
    meet(side, 2);
}
