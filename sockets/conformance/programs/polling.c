// SPDX-License-Identifier: Apache-2.0 OR MIT
// poll, ppoll, select and pselect on connections, alone and together with other descriptors.

#include "case.h"

#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>

static char in[200000];

// Notes the result of select for a descriptor, without blocking.
static void note_select(const char *what, int fd) {
    fd_set readable, writable, exceptional;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_ZERO(&exceptional);
    FD_SET(fd, &readable);
    FD_SET(fd, &writable);
    FD_SET(fd, &exceptional);
    struct timeval at_once = {0, 0};
    int ready = select(fd + 1, &readable, &writable, &exceptional, &at_once);
    note("%s: select gives %d, %d %d %d", what, ready, !!FD_ISSET(fd, &readable),
         !!FD_ISSET(fd, &writable), !!FD_ISSET(fd, &exceptional));
}

static void note_both(const char *what, int fd) {
    note_poll(what, fd);
    note_select(what, fd);
}

CASE(states_of_a_connection, WARM | V6 | MIXED) {
    note_both("idle", fd);
    meet(side, 1);
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        fill_up(fd);
        note_both("full", fd);
        meet(side, 3);
        await_peer(side, 4);
        await_events(fd, POLLOUT);
        note_both("drained", fd);
        reach(side, 4);
        TRY(close(fd));
        meet(side, 5);
        return;
    }
    await_events(fd, POLLIN);
    note_both("readable", fd);
    TRY(recv(fd, in, 2, 0));
    note_both("half read", fd);
    TRY(recv(fd, in, 2, 0));
    note_both("read", fd);
    meet(side, 2);
    meet(side, 3);
    drain(fd);
    note_both("drained", fd);
    meet(side, 4);
    await_events(fd, POLLRDHUP);
    note_both("closed there", fd);
    TRY(recv(fd, in, 2, 0));
    note_both("and read", fd);
    meet(side, 5);
}

CASE(only_what_is_asked_for, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    await_events(fd, POLLIN | POLLRDHUP);
    static const short asked[] = {0, POLLIN, POLLOUT, POLLRDHUP, POLLPRI, POLLRDNORM,
                                  POLLWRNORM | POLLRDNORM, POLLIN | POLLHUP | POLLERR};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct pollfd entry = {fd, asked[i], 0x7fff};
        int ready = poll(&entry, 1, 0);
        note("%#x: %d %s", asked[i], ready, events_text(entry.revents));
    }
    meet(side, 1);
}

CASE(waiting_until_readable, WARM | V6 | RACE | MIXED) {
    for (int i = 0; i < 20; i++) {
        if (side == CLIENT) {
            await_peer(side, 2 * i + 1);
            if (i % 3)
                sleep_ms(i % 4);
            require(send(fd, "x", 1, 0) == 1, "send");
            await_peer(side, 2 * i + 2);
            continue;
        }
        reach(side, 2 * i + 1);
        struct pollfd asked = {fd, POLLIN, 0};
        int ready = poll(&asked, 1, i % 2 ? -1 : PATIENCE_MS);
        require(ready == 1 && asked.revents == POLLIN, "poll");
        require(recv(fd, in, 10, 0) == 1, "receive");
        reach(side, 2 * i + 2);
    }
    note("done");
}

CASE(waiting_until_writable, WARM | V6 | RACE) {
    if (side == CLIENT) {
        for (int i = 1; i <= 5; i++) {
            fill_up(fd);
            reach(side, i);
            struct pollfd asked = {fd, POLLOUT, 0};
            int ready = poll(&asked, 1, PATIENCE_MS);
            note("%d %s", ready, events_text(asked.revents));
            await_peer(side, i);
        }
        meet(side, 6);
        return;
    }
    for (int i = 1; i <= 5; i++) {
        await_peer(side, i);
        sleep_ms(10);
        drain(fd);
        reach(side, i);
    }
    meet(side, 6);
}

CASE(selecting_until_readable_and_writable, WARM | V6 | RACE) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(10);
        TRY(send(fd, "x", 1, 0));
        await_peer(side, 2);
        sleep_ms(10);
        drain(fd);
        reach(side, 2);
        while (recv(fd, in, sizeof in, 0) > 0) {
        }
        return;
    }
    reach(side, 1);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    struct timeval seconds = {5, 0};
    TRY(select(fd + 1, &set, NULL, NULL, &seconds));
    note("readable: %d, time left: %d", FD_ISSET(fd, &set), seconds.tv_sec == 4);
    TRY(recv(fd, in, 10, 0));
    fill_up(fd);
    reach(side, 2);
    struct timespec time = {5, 0};
    TRY(pselect(fd + 1, NULL, &set, NULL, &time, NULL));
    note("writable: %d, time as before: %d", FD_ISSET(fd, &set), time.tv_sec == 5);
}

CASE(times_that_run_out, WARM | V6) {
    struct pollfd asked = {fd, POLLIN, 0};
    struct timespec time = {0, 30000000};
    struct timeval time_left = {0, 30000};
    int64_t begin = now_ms();
    TRY(poll(&asked, 1, 30));
    note("long enough: %d", now_ms() - begin >= 29);
    begin = now_ms();
    TRY(ppoll(&asked, 1, &time, NULL));
    note("long enough: %d", now_ms() - begin >= 29);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    begin = now_ms();
    TRY(select(fd + 1, &set, NULL, NULL, &time_left));
    note("long enough: %d, left: %ld, in the set: %d", now_ms() - begin >= 29,
         (long)time_left.tv_usec, FD_ISSET(fd, &set));
    TRY(poll(&asked, 1, 0));
    TRY(poll(NULL, 0, 5));
    TRY(select(0, NULL, NULL, NULL, &(struct timeval){0, 1000}));
    meet(side, 1);
}

CASE(entries_that_are_not_open, WARM) {
    struct pollfd asked[4] = {{-1, POLLIN, 7}, {850, POLLIN, 0}, {fd, POLLOUT, 0}, {-5, 0, 7}};
    TRY(poll(asked, 4, -1));
    for (int i = 0; i < 4; i++)
        note("%d: %s", i, events_text(asked[i].revents));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(850, &set);
    FD_SET(fd, &set);
    TRY(select(851, NULL, &set, NULL, NULL));
    TRY(select(-1, NULL, NULL, NULL, NULL));
    TRY(select(fd + 1, NULL, NULL, NULL, &(struct timeval){-1, 0}));
    TRY(ppoll(asked, 4, &(struct timespec){0, -1}, NULL));
    meet(side, 1);
}

CASE(the_same_connection_twice, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "x", 1, 0));
        meet(side, 1);
        return;
    }
    int copy = dup(fd);
    await_bytes(fd, 1);
    struct pollfd asked[3] = {{fd, POLLIN, 0}, {fd, POLLOUT, 0}, {copy, POLLIN | POLLOUT, 0}};
    TRY(poll(asked, 3, 0));
    for (int i = 0; i < 3; i++)
        note("%d: %s", i, events_text(asked[i].revents));
    meet(side, 1);
}

CASE(connections_together_with_other_descriptors, WARM | RACE | MIXED) {
    if (side == CLIENT) {
        for (int i = 1; i <= 2; i++) {
            await_peer(side, i);
            sleep_ms(5);
            TRY(send(fd, "x", 1, 0));
        }
        meet(side, 3);
        return;
    }
    int ends[2], timer = timerfd_create(CLOCK_MONOTONIC, 0), event = eventfd(0, 0);
    require(pipe(ends) == 0, "pipe");
    struct pollfd asked[4] = {{ends[0], POLLIN, 0}, {timer, POLLIN, 0}, {event, POLLIN, 0},
                              {fd, POLLIN, 0}};
    reach(side, 1);
    TRY(poll(asked, 4, PATIENCE_MS));
    for (int i = 0; i < 4; i++)
        note("data on the connection, %d: %s", i, events_text(asked[i].revents));
    TRY(recv(fd, in, 10, 0));
    struct itimerspec soon = {{0, 0}, {0, 5000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    TRY(poll(asked, 4, PATIENCE_MS));
    for (int i = 0; i < 4; i++)
        note("the timer, %d: %s", i, events_text(asked[i].revents));
    TRY(read(timer, in, 8));
    TRY(write(ends[1], "p", 1));
    TRY(eventfd_write(event, 1));
    TRY(poll(asked, 4, -1));
    for (int i = 0; i < 4; i++)
        note("pipe and event, %d: %s", i, events_text(asked[i].revents));
    TRY(read(ends[0], in, 1));
    TRY(read(event, in, 8));
    reach(side, 2);
    fd_set set;
    FD_ZERO(&set);
    for (int i = 0; i < 4; i++)
        FD_SET(asked[i].fd, &set);
    TRY(select(fd + 20, &set, NULL, NULL, NULL));
    note("connection %d, pipe %d", FD_ISSET(fd, &set), FD_ISSET(ends[0], &set));
    meet(side, 3);
}

CASE(a_pipe_wakes_who_waits_for_a_connection, WARM | RACE) {
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            sleep_ms(2);
            _exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
        }
        struct pollfd asked[2] = {{fd, POLLIN, 0}, {ends[0], POLLIN, 0}};
        int ready = poll(asked, 2, PATIENCE_MS);
        require(ready == 1 && asked[1].revents == POLLIN, "poll");
        require(read(ends[0], in, 1) == 1, "read");
        waitpid(child, NULL, 0);
    }
    note("done");
    meet(side, 1);
}

CASE(many_connections_and_one_is_ready, BARE | WARM | RACE) {
    int ends[20];
    for (int i = 0; i < 20; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        require(ends[i] >= 0, "accept");
        warm_up(ends[i], side);
    }
    for (int round = 0; round < 40; round++) {
        int chosen = round * 7 % 20;
        if (side == CLIENT) {
            await_peer(side, round + 1);
            require(send(ends[chosen], "x", 1, 0) == 1, "send");
            continue;
        }
        struct pollfd asked[20];
        for (int i = 0; i < 20; i++)
            asked[i] = (struct pollfd){ends[i], POLLIN, 0};
        reach(side, round + 1);
        int ready = poll(asked, 20, PATIENCE_MS);
        for (int i = 0; i < 20; i++) {
            if (asked[i].revents)
                note("round %d: %d ready, %d: %s", round, ready, i, events_text(asked[i].revents));
        }
        require(recv(ends[chosen], in, 10, 0) == 1, "receive");
    }
    meet(side, 100);
}

CASE(lines_by_poll_until_the_end, WARM | V6 | MIXED) {
    // A textbook server.
    if (side == CLIENT) {
        for (int i = 0; i < 200; i++) {
            char line[40];
            int length = snprintf(line, sizeof line, "line %d\n", i);
            require(send(fd, line, length, 0) == length, "send");
            require(recv(fd, in, length, MSG_WAITALL) == length, "receive");
            require(memcmp(in, line, length) == 0, "the answer");
        }
        TRY(close(fd));
        return;
    }
    size_t total = 0;
    set_blocking(fd, 0);
    for (;;) {
        struct pollfd asked = {fd, POLLIN, 0};
        require(poll(&asked, 1, PATIENCE_MS) == 1, "poll");
        ssize_t got = read(fd, in, sizeof in);
        if (got <= 0) {
            note("ended with %zd %s", got, events_text(asked.revents));
            break;
        }
        total += got;
        require(write(fd, in, got) == got, "write");
    }
    note("bytes: %zu", total);
}
