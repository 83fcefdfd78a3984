// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ends of Unix sockets: the effect of each state of one side on the other, which is not always the
// same as with TCP.

#include "case.h"

#include <sys/epoll.h>

static char in[100000], out[100000];

static volatile sig_atomic_t pipes_broken;
static void count_broken_pipe(int number) {
    (void)number;
    pipes_broken++;
}

// Notes the present results of both directions.
static void note_state(const char *what, int fd) {
    note_poll(what, fd);
    TRY(send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    TRY(recv(fd, in, 10, MSG_DONTWAIT));
    note_poll("then", fd);
}

CASE(reading_shut_refuses_the_peer, WARM | UNIX | MIXED) {
    signal(SIGPIPE, count_broken_pipe);
    if (side == SERVER) {
        TRY(shutdown(fd, SHUT_RD));
        meet(side, 1);
        meet(side, 2);
        note_state("reading shut here", fd);
        meet(side, 3);
        meet(side, 4);
        return;
    }
    meet(side, 1);
    note_poll("reading shut there", fd);
    TRY(send(fd, "refused", 7, 0));
    TRY(write(fd, "refused", 7));
    TRY(send(fd, "refused", 7, MSG_NOSIGNAL));
    note("signals: %d", pipes_broken);
    meet(side, 2);
    meet(side, 3);
    note_poll("and data here", fd);
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, MSG_DONTWAIT));
    meet(side, 4);
}

CASE(reading_shut_with_data_in_it, WARM | UNIX) {
    if (side == CLIENT)
        TRY(send(fd, "data", 4, 0));
    else
        await_bytes(fd, 4);
    meet(side, 1);
    if (side == SERVER) {
        TRY(shutdown(fd, SHUT_RD));
        note_poll("shut", fd);
    }
    meet(side, 2);
    if (side == CLIENT)
        TRY(send(fd, "more", 4, MSG_NOSIGNAL));
    meet(side, 3);
    if (side == SERVER) {
        TRY(recv(fd, in, 2, 0));
        TRY(recv(fd, in, 10, 0));
        TRY(recv(fd, in, 10, 0));
        TRY(send(fd, "still sent", 10, 0));
    } else {
        TRY(recv(fd, in, 10, MSG_WAITALL));
    }
    meet(side, 4);
}

CASE(reading_shut_wakes_a_blocked_peer, WARM | UNIX | RACE | MIXED) {
    if (side == CLIENT) {
        fill_up(fd);
        reach(side, 1);
        ssize_t sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
        if (sent >= 0)
            sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
        note("ended: %d", sent < 0 && errno == EPIPE);
    } else {
        await_peer(side, 1);
        sleep_ms(20);
        TRY(shutdown(fd, SHUT_RD));
    }
    meet(side, 2);
}

CASE(writing_shut_as_both_see_it, WARM | UNIX | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "last", 4, 0));
        TRY(shutdown(fd, SHUT_WR));
        note_state("writing shut here", fd);
    }
    meet(side, 1);
    if (side == SERVER) {
        note_poll("writing shut there", fd);
        TRY(recv(fd, in, 4, 0));
        note_poll("then", fd);
        TRY(recv(fd, in, 10, 0));
        TRY(send(fd, "answer", 6, 0));
    }
    meet(side, 2);
    if (side == CLIENT)
        note_state("answered", fd);
    meet(side, 3);
}

CASE(both_halves_shut_as_both_see_it, WARM | UNIX | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "last", 4, 0));
        TRY(shutdown(fd, SHUT_RDWR));
        note_state("shut here", fd);
    }
    meet(side, 1);
    if (side == SERVER) {
        note_state("shut there", fd);
        note_state("and then", fd);
    }
    meet(side, 2);
}

CASE(each_shuts_one_half, WARM | UNIX) {
    if (side == CLIENT)
        TRY(shutdown(fd, SHUT_WR));
    meet(side, 1);
    note_poll("one half", fd);
    meet(side, 2);
    if (side == SERVER)
        TRY(shutdown(fd, SHUT_WR));
    meet(side, 3);
    note_state("both halves", fd);
    meet(side, 4);
}

CASE(both_shut_the_same_half, WARM | UNIX) {
    TRY(shutdown(fd, SHUT_RD));
    meet(side, 1);
    note_state("shut", fd);
    meet(side, 2);
    TRY(shutdown(fd, SHUT_RDWR));
    TRY(shutdown(fd, SHUT_WR));
    meet(side, 3);
    note_state("altogether", fd);
    meet(side, 4);
}

CASE(a_peer_that_has_closed, WARM | UNIX | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "last", 4, 0));
        TRY(close(fd));
        meet(side, 1);
        return;
    }
    meet(side, 1);
    note_state("closed there", fd);
    note_state("and read", fd);
    TRY(shutdown(fd, SHUT_WR));
    TRY(shutdown(fd, SHUT_RD));
    note_state("and shut", fd);
}

static void refused_calls(int fd, enum side side) {
    if (side == SERVER) {
        await_bytes(fd, 4);
        TRY(close(fd));
        meet(side, 1);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    meet(side, 1);
    note_poll("closed with data unread", fd);
}

CASE(a_reset_is_told_to_a_reader, WARM | UNIX) {
    refused_calls(fd, side);
    if (side == SERVER)
        return;
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, 0));
    note_state("told", fd);
}

CASE(a_reset_is_told_to_a_sender, WARM | UNIX) {
    refused_calls(fd, side);
    if (side == SERVER)
        return;
    TRY(send(fd, "more", 4, MSG_NOSIGNAL));
    TRY(send(fd, "more", 4, MSG_NOSIGNAL));
    note_state("told", fd);
}

CASE(a_reset_is_told_by_its_option, WARM | UNIX) {
    refused_calls(fd, side);
    if (side == SERVER)
        return;
    for (int i = 0; i < 2; i++) {
        int error = -1;
        socklen_t length = sizeof error;
        TRY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
        note("error: %s", error ? strerrorname_np(error) : "none");
    }
    note_state("told", fd);
}

CASE(a_reset_with_data_both_ways, WARM | UNIX) {
    if (side == SERVER) {
        TRY(send(fd, "last words", 10, 0));
        await_bytes(fd, 4);
        TRY(close(fd));
        meet(side, 1);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    meet(side, 1);
    note_poll("closed with data unread", fd);
    TRY(recv(fd, in, 4, 0));
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, 0));
}

CASE(lingering_changes_nothing, WARM | UNIX) {
    if (side == CLIENT) {
        struct linger at_once = {1, 0};
        TRY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
        TRY(send(fd, "data", 4, 0));
        TRY(close(fd));
        meet(side, 1);
        return;
    }
    meet(side, 1);
    TRY(recv(fd, in, 4, 0));
    TRY(recv(fd, in, 10, 0));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
}

CASE(exits_while_both_wait_for_each_other, WARM | UNIX | RACE) {
    // The server's doorbells, if any, do not count as unread data.
    if (side == CLIENT) {
        for (int i = 0; i < 20; i++) {
            sleep_ms(1);
            require(send(fd, "m", 1, 0) == 1, "send");
        }
        await_peer(side, 1);
        sleep_ms(10);
        exit(0);
    }
    for (int i = 0; i < 20; i++)
        require(recv(fd, in, 1, 0) == 1, "receive");
    reach(side, 1);
    TRY(recv(fd, in, 1, 0));
    TRY(recv(fd, in, 1, 0));
}

static int watched(int fd, unsigned events) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = events, .data.u64 = 7};
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
    return epoll;
}

static void ends_in_a_set(int fd, enum side side, unsigned how) {
    int epoll = watched(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | how);
    note_events("open", epoll, 0);
    meet(side, 1);
    if (side == CLIENT)
        TRY(shutdown(fd, SHUT_WR));
    meet(side, 2);
    note_events("the client's writing is shut", epoll, 0);
    note_events("again", epoll, 0);
    meet(side, 3);
    if (side == SERVER)
        TRY(shutdown(fd, SHUT_WR));
    meet(side, 4);
    note_events("the server's as well", epoll, 0);
    note_events("again", epoll, 0);
    meet(side, 5);
}

CASE(ends_in_a_set_by_level, WARM | UNIX) { ends_in_a_set(fd, side, 0); }

CASE(ends_in_a_set_by_edge, WARM | UNIX) { ends_in_a_set(fd, side, EPOLLET); }

CASE(reading_shut_in_a_set, WARM | UNIX) {
    int epoll = watched(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
    meet(side, 1);
    if (side == CLIENT)
        TRY(shutdown(fd, SHUT_RD));
    meet(side, 2);
    note_events("the client's reading is shut", epoll, 0);
    meet(side, 3);
    if (side == CLIENT)
        TRY(close(fd));
    meet(side, 4);
    note_events("the client has closed", epoll, 0);
    note_events("again", epoll, 0);
}

CASE(a_reset_in_a_set, WARM | UNIX) {
    if (side == CLIENT) {
        await_bytes(fd, 4);
        meet(side, 1);
        TRY(close(fd));
        meet(side, 2);
        return;
    }
    int epoll = watched(fd, EPOLLIN | EPOLLRDHUP);
    TRY(send(fd, "data", 4, 0));
    meet(side, 1);
    meet(side, 2);
    note_events("reset", epoll, 0);
    TRY(recv(fd, in, 10, 0));
    note_events("and told", epoll, 0);
}
