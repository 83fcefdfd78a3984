// SPDX-License-Identifier: Apache-2.0 OR MIT
// Capacity of Unix sockets, queries of it, and creation of Unix sockets.

#include "case.h"

#include <linux/sockios.h>

static char in[300000], out[300000];

static void note_number(int fd, const char *what, unsigned long request) {
    int number = -1;
    int result = ioctl(fd, request, &number);
    note("%s: %d, %d", what, result, number);
}

CASE(bytes_that_are_under_way, WARM | UNIX) {
    if (side == CLIENT) {
        int number = -1;
        TRY(ioctl(fd, SIOCOUTQ, &number));
        note("nothing: %d", number);
        TRY(send(fd, out, 1000, 0));
        // The amount depends on the kernel's bookkeeping.
        TRY(ioctl(fd, SIOCOUTQ, &number));
        note("something: %d", number > 0);
        meet(side, 1);
        meet(side, 2);
        for (int i = 0; i < 1000 && ioctl(fd, SIOCOUTQ, &number) == 0 && number > 0; i++)
            sleep_ms(1);
        note("nothing: %d", number);
        return;
    }
    await_peer(side, 1);
    reach(side, 1);
    note_number(fd, "there", SIOCINQ);
    TRY(recv(fd, in, 400, MSG_WAITALL));
    note_number(fd, "left", FIONREAD);
    TRY(recv(fd, in, 600, MSG_WAITALL));
    note_number(fd, "left", FIONREAD);
    meet(side, 2);
}

static void look_from_somewhere(int fd, enum side side) {
    if (side == CLIENT) {
        TRY(send(fd, "0123456789", 10, 0));
        meet(side, 1);
        TRY(recv(fd, in, 3, 0));
        meet(side, 2);
        return;
    }
    meet(side, 1);
    int offset = 3;
    socklen_t length = sizeof offset;
    TRY(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset));
    TRY(recv(fd, in, 4, MSG_PEEK));
    note_bytes("peeked", in, 4);
    TRY(getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, &length));
    note("offset %d", offset);
    TRY(recv(fd, in, 2, 0));
    note_bytes("received", in, 2);
    TRY(getsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, &length));
    note("offset %d", offset);
    TRY(recv(fd, in, 10, MSG_PEEK));
    note_bytes("peeked", in, 3);
    offset = -1;
    TRY(setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset));
    TRY(recv(fd, in, 100, MSG_PEEK));
    note_bytes("peeked", in, 8);
    TRY(recv(fd, in, 8, MSG_WAITALL));
    TRY(send(fd, "end", 3, 0));
    meet(side, 2);
}

CASE(looking_from_somewhere_at_the_beginning, UNIX | MIXED) { look_from_somewhere(fd, side); }

CASE(looking_from_somewhere_later, WARM | UNIX | MIXED) { look_from_somewhere(fd, side); }

CASE(truncating_is_for_datagrams, WARM | UNIX | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "0123456789", 10, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 10);
    memset(in, '-', 20);
    TRY(recv(fd, in, 4, MSG_TRUNC));
    note_bytes("received", in, 6);
    TRY(recv(fd, in, 4, MSG_TRUNC | MSG_PEEK));
    struct iovec part = {in, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    TRY(recvmsg(fd, &message, MSG_TRUNC));
    note("flags %#x", message.msg_flags);
    TRY(recv(fd, in, 10, 0));
    meet(side, 1);
}

static void urgent_data(int fd, enum side side) {
    if (side == CLIENT) {
        TRY(send(fd, "before", 6, 0));
        meet(side, 1);
        meet(side, 2);
        TRY(send(fd, "!", 1, MSG_OOB));
        TRY(send(fd, "after", 5, 0));
        meet(side, 3);
        meet(side, 4);
        TRY(send(fd, "later", 5, 0));
        return;
    }
    meet(side, 1);
    TRY(recv(fd, in, 100, 0));
    meet(side, 2);
    meet(side, 3);
    note_poll("urgent data", fd);
    TRY(recv(fd, in, 1, MSG_OOB));
    note_bytes("urgent", in, 1);
    note_poll("taken", fd);
    ssize_t got = TRY(recv(fd, in, 100, 0));
    note_bytes("received", in, got);
    TRY(recv(fd, in, 100, MSG_DONTWAIT));
    TRY(recv(fd, in, 1, MSG_OOB | MSG_DONTWAIT));
    meet(side, 4);
    TRY(recv(fd, in, 5, MSG_WAITALL));
}

CASE(urgent_data_at_the_beginning, UNIX | MIXED) {
    urgent_data(fd, side);
    meet(side, 5);
}

CASE(urgent_data_later, WARM | UNIX | MIXED) {
    urgent_data(fd, side);
    meet(side, 5);
}

CASE(a_small_buffer_fills_and_goes_on, WARM | UNIX | MIXED) {
    int size = 5000;
    TRY(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    if (side == CLIENT) {
        TRY(send(fd, out, 3000, 0));
        set_blocking(fd, 0);
        note("more fitted: %d", fill_up(fd) > 0);
        TRY(send(fd, out, 3000, 0));
        note_poll("full", fd);
        set_blocking(fd, 1);
        reach(side, 1);
        fill(out, sizeof out, 1);
        TRY(send(fd, out, sizeof out, 0));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    sleep_ms(20);
    size_t total = 0;
    for (ssize_t got; (got = recv(fd, in, sizeof in, 0)) > 0;)
        total += got;
    note("all was there: %d", total > sizeof out + 3000);
    meet(side, 2);
}

CASE(what_does_not_fit_is_sent_in_part, WARM | UNIX) {
    static char much[8 << 20];
    if (side == CLIENT) {
        ssize_t sent = send(fd, much, sizeof much, MSG_DONTWAIT);
        note("some: %d, all: %d", sent > 0, sent == sizeof much);
        TRY(send(fd, much, sizeof much, MSG_DONTWAIT));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    await_peer(side, 1);
    ssize_t got;
    while ((got = recv(fd, much, sizeof much, 0)) > 0) {
    }
    TRY(got);
    reach(side, 1);
}

CASE(a_full_back_log, BARE | UNIX) {
    if (side == SERVER) {
        TRY(listen(fd, 0));
        meet(side, 1);
        await_peer(side, 2);
        sleep_ms(20);
        for (int i = 0; i < 2; i++) {
            int end = TRY_OK(accept(fd, NULL, NULL));
            TRY(recv(end, in, 10, MSG_WAITALL));
            note_bytes("received", in, 5);
        }
        return;
    }
    meet(side, 1);
    socklen_t length;
    const struct sockaddr *there = address(&length);
    int first = TRY_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    TRY(connect(first, there, length));
    int second = TRY_OK(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
    TRY(connect(second, there, length));
    TRY(send(second, "x", 1, MSG_NOSIGNAL));
    note_poll("not connected", second);
    TRY(send(first, "first", 5, 0));
    TRY(close(first));
    reach(side, 2);
    set_blocking(second, 1);
    TRY(connect(second, there, length));
    TRY(connect(second, there, length));
    TRY(send(second, "other", 5, 0));
    TRY(close(second));
}

CASE(connections_that_nobody_has_accepted, BARE | UNIX) {
    // They can be written to, and end with the listener.
    if (side == CLIENT) {
        int one = connect_there();
        TRY(send(one, "hello", 5, 0));
        note_poll("not accepted", one);
        meet(side, 1);
        meet(side, 2);
        await_events(one, POLLHUP);
        note_poll("not to be accepted", one);
        TRY(recv(one, in, 1, 0));
        TRY(recv(one, in, 1, 0));
        TRY(send(one, "x", 1, MSG_NOSIGNAL));
        return;
    }
    meet(side, 1);
    TRY(close(fd));
    meet(side, 2);
}

CASE(pairs_of_every_kind, UNIX) {
    int ends[2];
    TRY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends));
    TRY(fcntl(ends[1], F_GETFL));
    TRY(fcntl(ends[1], F_GETFD));
    TRY(recv(ends[0], in, 1, 0));
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 1, ends));
    TRY(fcntl(ends[0], F_GETFL));
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 7, ends));
    TRY(socketpair(AF_UNIX, 99, 0, ends));
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, NULL));
    int kinds[2] = {SOCK_DGRAM, SOCK_SEQPACKET};
    for (int i = 0; i < 2; i++) {
        TRY(socketpair(AF_UNIX, kinds[i], 0, ends));
        for (int j = 0; j < 20; j++) {
            require(send(ends[0], "one", 3, 0) == 3 && send(ends[0], "two", 3, 0) == 3, "send");
            require(recv(ends[1], in, 10, 0) == 3 && recv(ends[1], in, 10, 0) == 3, "receive");
        }
        TRY(close(ends[0]));
    }
}

CASE(a_pair_within_one_process, UNIX) {
    int ends[2];
    new_pair(ends);
    for (int i = 0; i < 100; i++) {
        int from = i & 1;
        require(send(ends[from], out, 1000 + i, 0) == 1000 + i, "send");
        require(recv(ends[1 - from], in, sizeof in, 0) == 1000 + i, "receive");
    }
    note_poll("idle", ends[0]);
    TRY(close(ends[0]));
    note_poll("closed", ends[1]);
    TRY(recv(ends[1], in, 1, 0));
}

CASE(a_pair_with_a_child, UNIX | RACE) {
    // Like programs with a helper process: the child has one end, the parent the other.
    int ends[2];
    new_pair(ends);
    pid_t child = fork();
    int end = ends[child == 0];
    close(ends[child != 0]);
    uint64_t sum = CHECKSUM_BEGIN;
    for (int i = 0; i < 300; i++) {
        size_t length = 1 + i * 37 % 5000;
        fill(out, length, i);
        if (child == 0) {
            if (receive_all(end, in, length) != length || memcmp(in, out, length) != 0)
                _exit(1);
            if (send_all(end, in, length) != length)
                _exit(2);
            continue;
        }
        require(send_all(end, out, length) == length, "send");
        require(receive_all(end, in, length) == length, "receive");
        sum = checksum(sum, in, length);
    }
    if (child == 0)
        _exit(recv(end, in, 1, 0) != 0);
    note("received %016llx", (unsigned long long)sum);
    close(end);
    int status = 0;
    waitpid(child, &status, 0);
    note_status("child", status);
}

// For edge-triggered events: a read with enough room returns everything present.
CASE(one_read_gives_all_that_has_come, WARM | UNIX) {
    static char all[400000];
    if (side == SERVER) {
        memset(all, 'x', sizeof all);
        TRY(send(fd, all, 60000, 0));
        TRY(send(fd, all, 60000, 0));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    meet(side, 1);
    TRY(read(fd, all, sizeof all));
    note_bytes("received", all, 120000);
    TRY(recv(fd, all, sizeof all, MSG_DONTWAIT));
    meet(side, 2);
}
