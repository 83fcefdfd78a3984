// SPDX-License-Identifier: Apache-2.0 OR MIT
// Common situations with defined kernel behaviour: many short parts, a thread that sleeps while
// another one shuts down the stream, a socket that is connected again, halves shut down in any
// order, options that affect each message, invalid memory.

#include "case.h"

#include <linux/errqueue.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static char big[1 << 20];

// Sends `count` parts of `bytes` bytes while the peer does not read.
static void send_parts(int fd, int count, size_t bytes, int flags) {
    static struct iovec parts[1024];
    for (int i = 0; i < count; i++)
        parts[i] = (struct iovec){big + i, bytes};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    TRY(sendmsg(fd, &message, flags | MSG_NOSIGNAL));
}

CASE(many_parts, WARM) {
    static const struct { int count; size_t bytes; } all[] = {{64, 1}, {1024, 1}, {1024, 4},
                                                              {300, 9}, {1024, 17}, {7, 3000}};
    fill(big, sizeof big, 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t length = all[i].count * all[i].bytes;
        if (side == SERVER)
            send_parts(fd, all[i].count, all[i].bytes, i % 2 ? MSG_DONTWAIT : 0);
        meet(side, 2 * i);
        if (side == CLIENT) {
            require(receive_all(fd, big, length) == length, "receive");
            note_bytes("parts", big, length);
        }
        meet(side, 2 * i + 1);
    }
    prove(fd, side);
}

// Both sides write many parts before they read: neither waits for the other.
CASE(parts_before_reading, WARM) {
    fill(big, sizeof big, 2);
    send_parts(fd, 64, 1, 0);
    require(receive_all(fd, big, 64) == 64, "receive");
    note_bytes("parts", big, 64);
    prove(fd, side);
}

static int stream, outcome;

static void *send_until_it_fails(void *nothing) {
    while (send(stream, big, sizeof big, MSG_NOSIGNAL) > 0)
        ;
    outcome = errno;
    return nothing;
}

CASE(shut_while_another_thread_sends, WARM) {
    if (side == SERVER) {
        pthread_t thread;
        stream = fd;
        require(pthread_create(&thread, NULL, send_until_it_fails, NULL) == 0, "thread");
        // Until it sleeps: no more room.
        struct pollfd asked = {fd, POLLOUT, 0};
        while (poll(&asked, 1, 20) == 1)
            ;
        TRY(shutdown(fd, SHUT_WR));
        require(pthread_join(thread, NULL) == 0, "join");
        note("send: %s", strerrorname_np(outcome));
    }
    meet(side, 1);
    prove(fd, side);
}

CASE(connected_again, WARM | TCP) {
    struct sockaddr_storage where;
    socklen_t length = sizeof where;
    if (side == CLIENT) {
        int listener = listen_here(&where, &length);
        struct sockaddr none = {.sa_family = AF_UNSPEC};
        prove(fd, side);
        TRY(connect(fd, &none, sizeof none));
        TRY(send(fd, "nobody", 6, MSG_NOSIGNAL));
        TRY(connect(fd, (struct sockaddr *)&where, length));
        int peer = accept(listener, NULL, NULL);
        require(peer >= 0, "accept");
        TRY(send(fd, "another", 7, MSG_NOSIGNAL));
        require(receive_all(peer, big, 7) == 7, "receive");
        note_bytes("it gets", big, 7);
        TRY(send(peer, "answer", 6, MSG_NOSIGNAL));
        require(receive_all(fd, big, 6) == 6, "receive");
        note_bytes("answer", big, 6);
    } else {
        prove(fd, side);
        TRY(recv(fd, big, sizeof big, 0));
    }
    meet(side, 1);
}

// The same socket under two descriptor numbers.
CASE(connected_again_by_a_copy, WARM | TCP) {
    prove(fd, side);
    if (side == CLIENT) {
        struct sockaddr none = {.sa_family = AF_UNSPEC};
        int copy = dup(fd);
        TRY(connect(copy, &none, sizeof none));
        TRY(send(fd, "nobody", 6, MSG_NOSIGNAL));
        TRY(send(copy, "nobody", 6, MSG_NOSIGNAL));
    } else {
        TRY(recv(fd, big, sizeof big, 0));
    }
    meet(side, 1);
}

CASE(from_itself, WARM) {
    TRY(splice(fd, NULL, fd, NULL, 5, 0));
    TRY(sendfile(fd, fd, NULL, 5));
    int other = socket(AF_INET, SOCK_STREAM, 0);
    TRY(splice(fd, NULL, other, NULL, 5, 0));
    TRY(sendfile(fd, other, NULL, 5));
    FILE *file = tmpfile();
    TRY(splice(fd, NULL, fileno(file), NULL, 5, 0));
    fclose(file);
    close(other);
    meet(side, 1);
    prove(fd, side);
}

// Shuts down one half or both, one after the other; shows what the other end sees when it sends.
static void shut(int fd, enum side side, int first, int second) {
    if (side == SERVER) {
        TRY(shutdown(fd, first));
        if (second >= 0)
            TRY(shutdown(fd, second));
        note_poll("shut", fd);
        TRY(send(fd, "late", 4, MSG_NOSIGNAL));
        TRY(recv(fd, big, sizeof big, MSG_DONTWAIT));
        meet(side, 1);
        meet(side, 2);
    } else {
        meet(side, 1);
        TRY(recv(fd, big, sizeof big, 0));
        TRY(send(fd, "data", 4, MSG_NOSIGNAL));
        await_events(fd, POLLERR);
        TRY(send(fd, "data", 4, MSG_NOSIGNAL));
        TRY(send(fd, "data", 4, MSG_NOSIGNAL));
        TRY(recv(fd, big, sizeof big, MSG_DONTWAIT));
        note_poll("after", fd);
        meet(side, 2);
    }
    prove(fd, side);
}

CASE(both_halves_shut, WARM | TCP) { shut(fd, side, SHUT_RDWR, -1); }
CASE(writing_and_then_reading_shut, WARM | TCP) { shut(fd, side, SHUT_WR, SHUT_RD); }
CASE(reading_and_then_writing_shut, WARM | TCP) { shut(fd, side, SHUT_RD, SHUT_WR); }

CASE(sent_without_a_copy, WARM | TCP) {
    prove(fd, side);
    if (side == SERVER) {
        int on = 1;
        TRY(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
        TRY(send(fd, big, 32768, MSG_ZEROCOPY | MSG_NOSIGNAL));
        await_events(fd, POLLERR);
        char control[128];
        struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
        TRY(recvmsg(fd, &message, MSG_ERRQUEUE));
        struct cmsghdr *first = CMSG_FIRSTHDR(&message);
        require(first && first->cmsg_len >= CMSG_LEN(sizeof(struct sock_extended_err)), "told");
        struct sock_extended_err told;
        memcpy(&told, CMSG_DATA(first), sizeof told);
        note("origin %d, from %u to %u", told.ee_origin, told.ee_info, told.ee_data);
    } else {
        require(receive_all(fd, big, 32768) == 32768, "receive");
    }
    meet(side, 1);
}

// The ancillary data come with the next message.
CASE(told_how_much_there_is, WARM | TCP) {
    prove(fd, side);
    if (side == SERVER) {
        int on = 1;
        TRY(setsockopt(fd, IPPROTO_TCP, TCP_INQ, &on, sizeof on));
        meet(side, 1);
        await_bytes(fd, 10);
        char control[128];
        struct iovec part = {big, 4};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                                 .msg_controllen = sizeof control};
        TRY(recvmsg(fd, &message, 0));
        struct cmsghdr *first = CMSG_FIRSTHDR(&message);
        require(first && first->cmsg_type == TCP_CM_INQ, "told");
        int left;
        memcpy(&left, CMSG_DATA(first), sizeof left);
        note("left: %d", left);
    } else {
        meet(side, 1);
        TRY(send(fd, "ten bytes!", 10, MSG_NOSIGNAL));
    }
    meet(side, 2);
}

CASE(more_messages_than_at_once, WARM) {
    static struct mmsghdr messages[1100];
    struct iovec part = {big, 1};
    for (int i = 0; i < 1100; i++)
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
    if (side == SERVER) {
        TRY(sendmmsg(fd, messages, 1100, MSG_NOSIGNAL));
    } else {
        require(receive_all(fd, big, 1024) == 1024, "receive");
    }
    meet(side, 1);
    prove(fd, side);
}

// A nested set reports an event once, and none after it is removed.
CASE(sets_in_sets, WARM) {
    int inner = epoll_create1(0), outer = epoll_create1(0), pair[2];
    require(pipe(pair) == 0, "pipe");
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 1};
    TRY(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event));
    TRY(epoll_ctl(inner, EPOLL_CTL_ADD, pair[0], &event));
    TRY(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event));
    for (int i = 0; i < 3; i++) {
        note_events("nothing", outer, 0);
        meet(side, 10 * i + 1);
        require(send(fd, "x", 1, 0) == 1, "send");
        meet(side, 10 * i + 2);
        await_bytes(fd, 1);
        note_events("a byte", outer, 0);
        note_events("still a byte", outer, 0);
        TRY(recv(fd, big, 1, 0));
        note_events("none", outer, 0);
        note_events("none", outer, 0);
        TRY(write(pair[1], "x", 1));
        note_events("in the pipe", outer, 0);
        TRY(read(pair[0], big, 1));
        note_events("none", outer, 0);
    }
    close(inner);
    close(outer);
    meet(side, 99);
    prove(fd, side);
}

// Lists, sets and headers at invalid addresses, some of them partly valid.
CASE(lists_that_are_nowhere, WARM) {
    char *pages = mmap(NULL, 2 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(pages != MAP_FAILED && mprotect(pages, 4096, PROT_READ | PROT_WRITE) == 0, "map");
    // The second page is not readable.
    void *nowhere[] = {pages + 4096, (void *)8, pages + 4096 - 4, (void *)-64};
    struct timeval none = {0};
    struct timespec no_time = {0};
    int epoll = epoll_create1(0);
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++) {
        void *at = nowhere[i];
        TRY(poll(at, 2, 0));
        TRY(ppoll(at, 2, &no_time, NULL));
        TRY(select(fd + 1, at, NULL, NULL, &none));
        TRY(select(fd + 1, NULL, at, NULL, &none));
        TRY(sendmsg(fd, at, MSG_NOSIGNAL));
        TRY(recvmsg(fd, at, MSG_DONTWAIT));
        TRY(readv(fd, at, 2));
        TRY(writev(fd, at, 2));
        TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, at));
        TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, at, sizeof(int)));
        if (!(family() == AF_UNIX))
            TRY(connect(fd, at, 16));
        char byte = 'x';
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = at,
                                 .msg_controllen = 24};
        TRY(sendmsg(fd, &message, MSG_NOSIGNAL));
        message = (struct msghdr){.msg_iov = at, .msg_iovlen = 2};
        TRY(sendmsg(fd, &message, MSG_NOSIGNAL));
    }
    meet(side, 1);
    close(epoll);
}
