// SPDX-License-Identifier: Apache-2.0 OR MIT
// epoll on connections: level, edge, one-shot, and the lifetime of registrations.

#include "case.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static char in[200000];
// Volatile, so that the compiler does not warn about it.
static volatile int too_few = -1;

static int control(int epoll, int operation, int fd, unsigned events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(epoll, operation, fd, &event);
}

#define ADD(events, data) TRY(control(epoll, EPOLL_CTL_ADD, fd, events, data))
#define MODIFY(events, data) TRY(control(epoll, EPOLL_CTL_MOD, fd, events, data))
#define DELETE() TRY(control(epoll, EPOLL_CTL_DEL, fd, 0, 0))

CASE(level_triggered, WARM | V6 | MIXED) {
    int epoll = epoll_create1(0);
    ADD(EPOLLIN, 0x1122334455667788);
    note_events("idle", epoll, 0);
    meet(side, 1);
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        return;
    }
    note_events("data", epoll, PATIENCE_MS);
    note_events("still data", epoll, PATIENCE_MS);
    TRY(recv(fd, in, 2, 0));
    note_events("half read", epoll, PATIENCE_MS);
    TRY(recv(fd, in, 2, 0));
    note_events("read", epoll, 0);
    note_events("read", epoll, 20);
    meet(side, 2);
}

/* Each message is an edge, wherever it is stored after the unread bytes. */
CASE(edges_behind_what_is_unread, WARM | V6 | MIXED) {
    static char much[3000];
    enum { FEW = 10, ALL = 30 };
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    ADD(EPOLLIN | EPOLLET, 7);
    note_events("idle", epoll, 0);
    if (side == CLIENT) {
        for (int i = 1; i <= ALL; i++) {
            await_peer(side, i);
            TRY(send(fd, much, i <= FEW ? 300 : sizeof(much), 0));
        }
        meet(side, ALL + 1);
        return;
    }
    for (int i = 1; i <= ALL; i++) {
        reach(side, i);
        note_events("one more", epoll, PATIENCE_MS);
    }
    reach(side, ALL + 1);
    note_events("nothing new", epoll, 20);
    TRY(recv(fd, much, 100, 0));
    note_events("less", epoll, 0);
}

CASE(edge_triggered, WARM | V6 | MIXED) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    ADD(EPOLLIN | EPOLLET, 7);
    note_events("idle", epoll, 0);
    if (side == CLIENT) {
        for (int i = 1; i <= 3; i++) {
            await_peer(side, i);
            TRY(send(fd, "data", 4, 0));
        }
        meet(side, 4);
        return;
    }
    reach(side, 1);
    note_events("data", epoll, PATIENCE_MS);
    note_events("nothing new", epoll, 20);
    TRY(recv(fd, in, 2, 0));
    note_events("half read", epoll, 0);
    reach(side, 2);
    note_events("more data", epoll, PATIENCE_MS);
    note_events("nothing new", epoll, 0);
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, MSG_DONTWAIT));
    note_events("all read", epoll, 0);
    reach(side, 3);
    note_events("data again", epoll, PATIENCE_MS);
    meet(side, 4);
}

CASE(edge_triggered_both_ways, WARM) {
    int epoll = epoll_create1(0);
    ADD(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, 5);
    note_events("first", epoll, PATIENCE_MS);
    note_events("again", epoll, 0);
    meet(side, 1);
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        meet(side, 3);
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 4);
        return;
    }
    note_events("data", epoll, PATIENCE_MS);
    note_events("again", epoll, 0);
    meet(side, 2);
    TRY(recv(fd, in, 100, 0));
    note_events("read", epoll, 0);
    meet(side, 3);
    note_events("end", epoll, PATIENCE_MS);
    note_events("again", epoll, 0);
    meet(side, 4);
}

CASE(edge_triggered_writing, WARM | V6 | RACE) {
    if (side == SERVER) {
        for (int i = 1; i <= 4; i++) {
            await_peer(side, i);
            sleep_ms(5);
            drain(fd);
            reach(side, i);
        }
        return;
    }
    int epoll = epoll_create1(0);
    set_blocking(fd, 0);
    ADD(EPOLLOUT | EPOLLET, 1);
    note_events("first", epoll, PATIENCE_MS);
    for (int i = 1; i <= 4; i++) {
        fill_up(fd);
        reach(side, i);
        note_events("drained", epoll, PATIENCE_MS);
        await_peer(side, i);
    }
}

CASE(one_shot, WARM | V6) {
    int epoll = epoll_create1(0);
    if (side == CLIENT) {
        await_peer(side, 1);
        TRY(send(fd, "one", 3, 0));
        await_peer(side, 2);
        TRY(send(fd, "two", 3, 0));
        meet(side, 3);
        return;
    }
    ADD(EPOLLIN | EPOLLONESHOT, 3);
    reach(side, 1);
    note_events("data", epoll, PATIENCE_MS);
    note_events("disarmed", epoll, 0);
    reach(side, 2);
    await_bytes(fd, 6);
    note_events("still disarmed", epoll, 0);
    MODIFY(EPOLLIN | EPOLLONESHOT, 4);
    note_events("armed again", epoll, PATIENCE_MS);
    note_events("disarmed", epoll, 0);
    MODIFY(EPOLLIN | EPOLLOUT | EPOLLONESHOT | EPOLLET, 5);
    note_events("armed by edge", epoll, PATIENCE_MS);
    note_events("disarmed", epoll, 0);
    meet(side, 3);
}

CASE(modified_registrations, WARM | V6) {
    int epoll = epoll_create1(0);
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 4);
    ADD(EPOLLOUT, 1);
    note_events("out", epoll, 0);
    MODIFY(EPOLLIN, 2);
    note_events("in", epoll, 0);
    MODIFY(EPOLLIN | EPOLLOUT, 3);
    note_events("both", epoll, 0);
    MODIFY(0, 4);
    note_events("none", epoll, 0);
    MODIFY(EPOLLIN | EPOLLET, 5);
    note_events("edge", epoll, 0);
    note_events("edge", epoll, 0);
    MODIFY(EPOLLIN | EPOLLET, 6);
    note_events("edge, armed again", epoll, 0);
    note_events("edge", epoll, 0);
    MODIFY(EPOLLIN, 7);
    note_events("level again", epoll, 0);
    DELETE();
    note_events("deleted", epoll, 0);
    DELETE();
    MODIFY(EPOLLIN, 8);
    ADD(EPOLLIN | EPOLLET, 9);
    note_events("added again", epoll, 0);
    note_events("added again", epoll, 0);
    ADD(EPOLLIN, 10);
    meet(side, 1);
}

CASE(registrations_that_fail, WARM) {
    int epoll = epoll_create1(0), file = open("/dev/null", O_RDONLY);
    TRY(control(epoll, EPOLL_CTL_ADD, -1, EPOLLIN, 0));
    TRY(control(epoll, EPOLL_CTL_ADD, 850, EPOLLIN, 0));
    TRY(control(epoll, EPOLL_CTL_ADD, epoll, EPOLLIN, 0));
    TRY(control(fd, EPOLL_CTL_ADD, epoll, EPOLLIN, 0));
    TRY(control(850, EPOLL_CTL_ADD, fd, EPOLLIN, 0));
    TRY(control(epoll, 17, fd, EPOLLIN, 0));
    TRY(control(epoll, EPOLL_CTL_ADD, open("/etc/passwd", O_RDONLY), EPOLLIN, 0));
    TRY(control(epoll, EPOLL_CTL_MOD, fd, EPOLLIN, 0));
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, NULL));
    TRY(control(epoll, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 0));
    struct epoll_event event;
    ADD(EPOLLIN, 1);
    TRY(epoll_wait(epoll, &event, 0, 0));
    TRY(epoll_wait(epoll, &event, too_few, 0));
    TRY(epoll_wait(fd, &event, 1, 0));
    TRY(epoll_wait(file, &event, 1, 0));
    TRY(epoll_wait(850, &event, 1, 0));
    TRY(epoll_create(0));
    TRY(epoll_create1(77));
    meet(side, 1);
}

CASE(ends_of_connections, WARM | V6 | MIXED) {
    int epoll = epoll_create1(0);
    ADD(EPOLLIN | EPOLLRDHUP, 1);
    if (side == CLIENT) {
        await_peer(side, 1);
        TRY(send(fd, "last", 4, 0));
        TRY(shutdown(fd, SHUT_WR));
        note_events("closed here", epoll, 0);
        await_peer(side, 2);
        reach(side, 2);
        await_peer(side, 3);
        note_events("closed by both", epoll, PATIENCE_MS);
        reach(side, 3);
        return;
    }
    reach(side, 1);
    await_events(fd, POLLRDHUP);
    note_events("end and data", epoll, PATIENCE_MS);
    TRY(recv(fd, in, 100, 0));
    note_events("the end", epoll, PATIENCE_MS);
    TRY(recv(fd, in, 100, 0));
    note_events("the end, read", epoll, PATIENCE_MS);
    MODIFY(0, 2);
    note_events("not asked for", epoll, 0);
    meet(side, 2);
    TRY(shutdown(fd, SHUT_WR));
    note_events("both halves", epoll, PATIENCE_MS);
    meet(side, 3);
}

CASE(a_reset, WARM | V6) {
    int epoll = epoll_create1(0);
    ADD(EPOLLIN | EPOLLET, 1);
    if (side == CLIENT) {
        await_bytes(fd, 4);
        TRY(close(fd));
        note_events("closed descriptors are gone", epoll, 0);
        meet(side, 1);
        meet(side, 2);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    await_peer(side, 1);
    reach(side, 1);
    await_events(fd, POLLERR | POLLHUP);
    note_events("reset", epoll, PATIENCE_MS);
    TRY(recv(fd, in, 100, 0));
    meet(side, 2);
}

CASE(a_peer_that_is_killed, WARM | RACE | MIXED) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(10);
        kill(getpid(), SIGKILL);
    }
    int epoll = epoll_create1(0);
    ADD(EPOLLIN | EPOLLRDHUP | EPOLLET, 1);
    reach(side, 1);
    struct epoll_event event = {0};
    TRY(epoll_wait(epoll, &event, 1, PATIENCE_MS));
    note("killed: %s", events_text(event.events & (EPOLLIN | EPOLLRDHUP)));
    ssize_t got = recv(fd, in, 100, 0);
    note("ended: %d", got == 0 || (got < 0 && errno == ECONNRESET));
}

CASE(copies_are_registered_of_their_own, WARM) {
    int epoll = epoll_create1(0), copy = dup(fd);
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 4);
    ADD(EPOLLIN, 1);
    TRY(control(epoll, EPOLL_CTL_ADD, copy, EPOLLIN | EPOLLOUT, 2));
    note("both: %d", note_events("both", epoll, 0));
    TRY(close(fd));
    // The open file description lives on, and with it both registrations.
    note("one closed: %d", note_events("one closed", epoll, 0));
    TRY(control(epoll, EPOLL_CTL_DEL, copy, 0, 0));
    note("its registration is there still: %d", note_events("deleted", epoll, 0));
    TRY(close(copy));
    note_events("all closed", epoll, 0);
    meet(side, 1);
}

CASE(closed_connections_leave, WARM | V6) {
    int epoll = epoll_create1(0);
    ADD(EPOLLIN | EPOLLOUT, 1);
    meet(side, 1);
    if (side == CLIENT) {
        note_events("open", epoll, 0);
        TRY(close(fd));
        note_events("closed", epoll, 20);
        int ends[2];
        require(pipe(ends) == 0, "pipe");
        note("the same number: %d", ends[0] == fd);
        TRY(control(epoll, EPOLL_CTL_MOD, ends[0], EPOLLIN, 2));
        TRY(control(epoll, EPOLL_CTL_ADD, ends[0], EPOLLIN, 3));
        TRY(write(ends[1], "x", 1));
        note_events("the pipe", epoll, PATIENCE_MS);
    }
    meet(side, 2);
}

CASE(registered_before_the_upgrade, ACROSS | RACE | V6 | MIXED) {
    // Event loops register connections as soon as they are made.
    int epoll = epoll_create1(0);
    set_blocking(fd, 0);
    ADD(EPOLLIN | EPOLLET, 42);
    for (int i = 0; i < 100; i++) {
        struct epoll_event event;
        if (side == CLIENT) {
            require(send(fd, "ping", 4, 0) == 4, "send");
            if (i % 10 == 0)
                sleep_ms(1);
        }
        require(epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1, "epoll_wait");
        require(event.events == EPOLLIN && event.data.u64 == 42, "the event");
        require(recv(fd, in, 100, 0) == 4, "receive");
        require(recv(fd, in, 100, 0) == -1 && errno == EAGAIN, "receive again");
        if (side == SERVER)
            require(send(fd, "pong", 4, 0) == 4, "send");
    }
    note("done");
    set_blocking(fd, 1);
    prove_soon(fd, side);
    meet(side, 1);
    note_events("nothing", epoll, 0);
    meet(side, 2);
}

CASE(registered_by_level_before_the_upgrade, ACROSS | RACE | MIXED) {
    int epoll = epoll_create1(0);
    ADD(EPOLLIN, 43);
    for (int i = 0; i < 100; i++) {
        struct epoll_event event;
        if (side == CLIENT) {
            require(send(fd, "ping", 4, 0) == 4, "send");
            if (i % 10 == 0)
                sleep_ms(1);
        }
        for (int left = 4; left > 0; left -= 2) {
            require(epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1, "epoll_wait");
            require(event.events == EPOLLIN && event.data.u64 == 43, "the event");
            require(recv(fd, in, 2, 0) == 2, "receive");
        }
        require(epoll_wait(epoll, &event, 1, 0) == 0, "epoll_wait when all is read");
        if (side == SERVER)
            require(send(fd, "pong", 4, 0) == 4, "send");
    }
    note("done");
    prove_soon(fd, side);
}
