// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls that must fail, with their errors: bad descriptors, pointers, lengths and flags.

#include "case.h"

#include <limits.h>

static char in[1000], out[1000];
// Volatile, so that the compiler does not warn about them.
static void *volatile nowhere = (void *)8;
static volatile int too_few = -1, too_many = IOV_MAX + 1;

CASE(descriptors_that_are_not_open, COLD) {
    struct iovec part = {in, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    int value = 0;
    static const int bad[] = {-1, 850, 1 << 20, INT_MAX};
    for (int i = 0; i < 4; i++) {
        TRY(send(bad[i], out, 1, 0));
        TRY(recv(bad[i], in, 1, 0));
        TRY(sendto(bad[i], out, 1, 0, NULL, 0));
        TRY(recvfrom(bad[i], in, 1, 0, NULL, NULL));
        TRY(sendmsg(bad[i], &message, 0));
        TRY(recvmsg(bad[i], &message, 0));
        TRY(sendmmsg(bad[i], &many, 1, 0));
        TRY(recvmmsg(bad[i], &many, 1, 0, NULL));
        TRY(read(bad[i], in, 1));
        TRY(write(bad[i], out, 1));
        TRY(readv(bad[i], &part, 1));
        TRY(writev(bad[i], &part, 1));
        TRY(shutdown(bad[i], SHUT_WR));
        TRY(close(bad[i]));
        TRY(dup(bad[i]));
        TRY(dup2(bad[i], 500));
        TRY(fcntl(bad[i], F_GETFL));
        TRY(ioctl(bad[i], FIONREAD, &value));
        TRY(listen(bad[i], 1));
        TRY(accept(bad[i], NULL, NULL));
        TRY(connect(bad[i], (struct sockaddr *)&name, length));
        TRY(bind(bad[i], (struct sockaddr *)&name, length));
        TRY(getsockname(bad[i], (struct sockaddr *)&name, &length));
        TRY(getpeername(bad[i], (struct sockaddr *)&name, &length));
        TRY(setsockopt(bad[i], SOL_SOCKET, SO_KEEPALIVE, &value, sizeof value));
        TRY(getsockopt(bad[i], SOL_SOCKET, SO_KEEPALIVE, &value, &length));
    }
}

CASE(descriptors_that_are_no_sockets, COLD) {
    int ends[2];
    struct iovec part = {in, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    int value = 0;
    socklen_t length = sizeof value;
    require(pipe(ends) == 0, "pipe");
    TRY(send(ends[1], out, 1, 0));
    TRY(recv(ends[0], in, 1, 0));
    TRY(sendmsg(ends[1], &message, 0));
    TRY(recvmsg(ends[0], &message, 0));
    TRY(shutdown(ends[0], SHUT_RD));
    TRY(accept(ends[0], NULL, NULL));
    TRY(listen(ends[0], 1));
    TRY(getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &value, &length));
    TRY(write(ends[1], "pipe", 4));
    TRY(read(ends[0], in, 10));
    TRY(write(ends[0], "pipe", 4));
    TRY(read(ends[1], in, 10));
}

CASE(sockets_that_are_not_connected, COLD) {
    int new = socket(family(), SOCK_STREAM, 0);
    struct iovec part = {in, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    TRY(send(new, out, 1, MSG_NOSIGNAL));
    TRY(recv(new, in, 1, 0));
    TRY(sendmsg(new, &message, MSG_NOSIGNAL));
    TRY(recvmsg(new, &message, 0));
    TRY(recv(new, in, 1, MSG_DONTWAIT));
    TRY(shutdown(new, SHUT_RDWR));
    TRY(getpeername(new, (struct sockaddr *)&name, &length));
    TRY(accept(new, NULL, NULL));
    note_poll("new", new);
    int listening = listen_here(NULL, NULL);
    TRY(send(listening, out, 1, MSG_NOSIGNAL));
    TRY(recv(listening, in, 1, 0));
    note_poll("listening", listening);
    TRY(close(new));
    TRY(send(new, out, 1, 0));
}

CASE(connecting_again, WARM | V6 | TCP) {
    if (side == CLIENT) {
        socklen_t length;
        const struct sockaddr *there = address(&length);
        TRY(connect(fd, there, length));
        TRY(bind(fd, there, length));
        TRY(listen(fd, 3));
        TRY(accept(fd, NULL, NULL));
        TRY(send(fd, "still there", 11, 0));
    } else {
        TRY(recv(fd, in, 11, MSG_WAITALL));
        note_bytes("received", in, 11);
    }
    meet(side, 1);
}

// Only while the kernel checks the pointers: in the ring they are used as by memcpy.
CASE(pointers_to_nowhere, COLD | V6) {
    struct iovec part = {nowhere, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (side == CLIENT) {
        TRY(send(fd, nowhere, 10, 0));
        TRY(write(fd, nowhere, 10));
        TRY(writev(fd, &part, 1));
        TRY(sendmsg(fd, &message, 0));
        TRY(send(fd, "whole", 5, 0));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    await_bytes(fd, 5);
    reach(side, 1);
    TRY(recv(fd, nowhere, 10, 0));
    TRY(read(fd, nowhere, 10));
    TRY(readv(fd, &part, 1));
    TRY(recvmsg(fd, &message, 0));
    TRY(recv(fd, nowhere, 10, MSG_PEEK));
    TRY(ioctl(fd, FIONREAD, nowhere));
    TRY(recv(fd, in, 10, 0));
    note_bytes("received", in, 5);
    meet(side, 2);
}

CASE(pointers_to_nothing, WARM | V6) {
    void *volatile nothing = NULL;
    struct iovec part = {nothing, 10};
    if (side == CLIENT) {
        TRY(send(fd, nothing, 10, 0));
        TRY(write(fd, nothing, 10));
        TRY(writev(fd, &part, 1));
        TRY(send(fd, "whole", 5, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 5);
    TRY(recv(fd, nothing, 10, 0));
    TRY(read(fd, nothing, 10));
    TRY(readv(fd, &part, 1));
    TRY(recv(fd, in, 10, 0));
    note_bytes("received", in, 5);
    meet(side, 1);
}

CASE(lengths_that_cannot_be, WARM) {
    struct iovec part = {in, 10}, negative[2] = {{in, 10}, {in, (size_t)SSIZE_MAX + 1}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1025};
    TRY(writev(fd, &part, too_few));
    TRY(readv(fd, &part, too_few));
    TRY(writev(fd, &part, too_many));
    TRY(readv(fd, &part, too_many));
    TRY(sendmsg(fd, &message, 0));
    TRY(recvmsg(fd, &message, MSG_DONTWAIT));
    TRY(writev(fd, negative, 2));
    TRY(readv(fd, negative, 2));
    meet(side, 1);
}

CASE(flags_without_a_meaning, WARM) {
    // Flags without a meaning for streams are ignored.
    if (side == CLIENT) {
        TRY(send(fd, "a", 1, MSG_EOR));
        TRY(send(fd, "b", 1, MSG_CONFIRM));
        TRY(send(fd, "c", 1, MSG_DONTROUTE));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 3);
    TRY(recv(fd, in, 1, MSG_CMSG_CLOEXEC));
    TRY(recv(fd, in, 1, MSG_NOSIGNAL));
    TRY(recv(fd, in, 1, MSG_EOR));
    TRY(recv(fd, in, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
    meet(side, 1);
}

CASE(positions_on_a_stream, WARM) {
    struct iovec part = {in, 10};
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(pread(fd, in, 10, 0));
    TRY(pwrite(fd, out, 10, 0));
    TRY(preadv(fd, &part, 1, 0));
    TRY(pwritev(fd, &part, 1, 0));
    TRY(ftruncate(fd, 0));
    TRY(fsync(fd));
    meet(side, 1);
}

CASE(descriptors_are_not_passed_over_tcp, WARM | TCP) {
    struct iovec part = {out, 1};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (side == CLIENT) {
        *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
        TRY(sendmsg(fd, &message, 0));
        TRY(send(fd, "end", 3, 0));
    } else {
        await_bytes(fd, 4);
    }
    meet(side, 1);
    if (side == SERVER)
        note("bytes: %zu", drain(fd));
}
