// SPDX-License-Identifier: Apache-2.0 OR MIT
// Differences found by walks of two ends in lockstep: each case is one kind. The sides take turns;
// after each turn the other side checks the effects.

#include "case.h"

#include <sys/epoll.h>

// Waits for these events, then notes all events and the number of readable bytes.
static void see(const char *what, int fd, short events) {
    int bytes = -1;
    await_events(fd, events);
    note_poll(what, fd);
    ioctl(fd, FIONREAD, &bytes);
    note("%s: %d bytes", what, bytes);
}

static void note_error(int fd) {
    int error = -1;
    socklen_t length = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    note("error: %s", error > 0 ? strerrorname_np(error) : error ? "?" : "none");
}

static void note_state(const char *what, int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length);
    note("%s: state %d", what, info.tcpi_state == TCP_FIN_WAIT1 ? TCP_FIN_WAIT2 : info.tcpi_state);
}

// Bytes that arrive after both own halves were shut down reset the connection for both.
CASE(sent_to_who_has_shut_both_halves, WARM | TCP | V6) {
    if (side == SERVER)
        TRY(shutdown(fd, SHUT_RDWR));
    meet(side, 1);
    if (side == CLIENT) {
        await_events(fd, POLLRDHUP);
        TRY(send(fd, "late", 4, MSG_NOSIGNAL));
    }
    meet(side, 2);
    see("reset", fd, POLLERR);
    if (side == SERVER)
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    note_error(fd);
    note_error(fd);
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    TRY(recv(fd, &(char){0}, 1, 0));
    see("told", fd, POLLHUP);
    meet(side, 3);
}

// The same with two calls for one half each, and unread bytes.
CASE(sent_to_who_has_shut_one_half_after_the_other, WARM | TCP) {
    if (side == CLIENT)
        TRY(send(fd, "early", 5, MSG_NOSIGNAL));
    meet(side, 1);
    if (side == SERVER) {
        await_bytes(fd, 5);
        TRY(shutdown(fd, SHUT_RD));
        TRY(shutdown(fd, SHUT_WR));
    }
    meet(side, 2);
    if (side == CLIENT) {
        await_events(fd, POLLRDHUP);
        TRY(send(fd, "late", 4, MSG_NOSIGNAL));
    }
    meet(side, 3);
    see("reset", fd, POLLERR);
    note_error(fd);
    see("told", fd, POLLHUP);
    meet(side, 4);
}

// A connection that has ended in both directions has no half left to shut down.
CASE(shut_after_both_ends, WARM | TCP) {
    for (int turn = 0; turn < 2; turn++) {
        if (side == (turn ? CLIENT : SERVER))
            TRY(shutdown(fd, SHUT_WR));
        meet(side, turn + 1);
    }
    see("both have ended", fd, POLLHUP);
    TRY(shutdown(fd, SHUT_RD));
    TRY(shutdown(fd, SHUT_WR));
    TRY(shutdown(fd, SHUT_RDWR));
    note_state("shut", fd);
    meet(side, 3);
    see("shut again", fd, POLLHUP);
}

// A second call does not restore a peer, and resets nothing.
CASE(shut_twice, WARM | TCP) {
    if (side == SERVER) {
        TRY(shutdown(fd, SHUT_RDWR));
        TRY(shutdown(fd, SHUT_WR));
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
        note_poll("shut twice", fd);
    }
    meet(side, 1);
    if (side == CLIENT)
        see("the peer has ended", fd, POLLRDHUP);
    meet(side, 2);
}

// Shutting down both halves with unread bytes is no reset, unlike closing.
CASE(both_halves_shut_with_unread_bytes, WARM | TCP) {
    TRY(send(fd, "bytes", 5, MSG_NOSIGNAL));
    await_bytes(fd, 5);
    meet(side, 1);
    if (side == CLIENT)
        TRY(shutdown(fd, SHUT_RDWR));
    meet(side, 2);
    see("shut", fd, POLLRDHUP);
    char bytes[10];
    TRY(recv(fd, bytes, sizeof bytes, 0));
    TRY(recv(fd, bytes, sizeof bytes, 0));
    note_error(fd);
    meet(side, 3);
}

// A peer that closes with unread bytes after both directions have ended resets nothing.
CASE(closed_with_unread_bytes_after_both_ends, WARM | TCP) {
    if (side == SERVER) {
        TRY(send(fd, "bytes", 5, MSG_NOSIGNAL));
        TRY(shutdown(fd, SHUT_WR));
    }
    meet(side, 1);
    if (side == CLIENT) {
        await_events(fd, POLLRDHUP);
        TRY(shutdown(fd, SHUT_WR));
    }
    meet(side, 2);
    if (side == SERVER)
        await_events(fd, POLLHUP);
    meet(side, 3);
    if (side == CLIENT)
        close(fd);
    meet(side, 4);
    if (side == SERVER) {
        see("closed", fd, POLLHUP);
        note_error(fd);
        TRY(recv(fd, &(char){0}, 1, 0));
    }
}

// The error of a reset takes precedence over that of the own end.
CASE(sends_after_its_end_and_a_reset, WARM | TCP) {
    if (side == SERVER) {
        TRY(send(fd, "bytes", 5, MSG_NOSIGNAL));
        TRY(shutdown(fd, SHUT_WR));
    }
    meet(side, 1);
    if (side == CLIENT) {
        await_bytes(fd, 5);
        close(fd);
    }
    meet(side, 2);
    if (side == CLIENT)
        return;
    see("reset", fd, POLLERR);
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    see("told", fd, POLLHUP);
}

// Bytes sent to a peer that has closed are answered by a reset, which is reported as an error once.
CASE(sent_to_who_has_closed, WARM | TCP) {
    if (side == SERVER)
        close(fd);
    meet(side, 1);
    if (side == SERVER)
        return;
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
    await_events(fd, POLLRDHUP);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    note_events("closed", set, 0);
    TRY(send(fd, "late", 4, MSG_NOSIGNAL));
    await_events(fd, POLLERR);
    note_events("reset", set, 0);
    note_error(fd);
    note_error(fd);
    TRY(shutdown(fd, SHUT_RDWR));
    note_events("shut", set, 0);
    TRY(send(fd, "late", 4, MSG_NOSIGNAL));
    close(set);
}

// The TCP state, by which servers check whether a client is still connected.
CASE(the_state_of_a_half_closed_connection, WARM | TCP) {
    note_state("open", fd);
    meet(side, 1);
    if (side == SERVER)
        TRY(shutdown(fd, SHUT_WR));
    meet(side, 2);
    if (side == CLIENT)
        await_events(fd, POLLRDHUP);
    note_state("one has ended", fd);
    meet(side, 3);
    if (side == CLIENT)
        TRY(shutdown(fd, SHUT_WR));
    meet(side, 4);
    await_events(fd, POLLHUP);
    note_state("both have ended", fd);
    meet(side, 5);
}

// A set keeps reporting a socket whose number was closed, and one that is disconnected.
CASE(taken_apart_under_another_number, WARM | TCP) {
    if (side == CLIENT) {
        int set = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP};
        epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
        int copy = dup(fd);
        close(fd);
        note_events("open", set, 0);
        struct sockaddr nobody = {.sa_family = AF_UNSPEC};
        TRY(connect(copy, &nobody, sizeof nobody));
        note_events("taken apart", set, 0);
        note_error(copy);
        note_events("told", set, 0);
        close(copy);
        note_events("closed", set, 0);
        close(set);
    }
    meet(side, 1);
}

// With `MSG_TRUNC` bytes are discarded, and an error stays for the next call.
CASE(bytes_thrown_away_before_a_reset, WARM | TCP) {
    if (side == SERVER)
        TRY(send(fd, "unread", 6, MSG_NOSIGNAL));
    else
        TRY(send(fd, "bytes", 5, MSG_NOSIGNAL));
    meet(side, 1);
    if (side == CLIENT) {
        await_bytes(fd, 6);
        close(fd);
    }
    meet(side, 2);
    if (side == CLIENT)
        return;
    await_events(fd, POLLERR);
    TRY(recv(fd, NULL, 100, MSG_TRUNC | MSG_DONTWAIT));
    see("thrown away", fd, POLLHUP);
    TRY(recv(fd, &(char){0}, 1, MSG_DONTWAIT));
    see("told", fd, POLLHUP);
}

// The kernel looks for more bytes than there are, and so consumes the error of a reset.
CASE(all_before_a_reset_of_a_unix_socket, WARM | UNIX) {
    TRY(send(fd, "bytes", 5, MSG_NOSIGNAL));
    await_bytes(fd, 5);
    meet(side, 1);
    if (side == CLIENT)
        close(fd);
    meet(side, 2);
    if (side == CLIENT)
        return;
    char bytes[10];
    see("reset", fd, POLLERR);
    TRY(recv(fd, bytes, sizeof bytes, MSG_WAITALL));
    see("received", fd, POLLHUP);
    TRY(recv(fd, bytes, sizeof bytes, 0));
}
