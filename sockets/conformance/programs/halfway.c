// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections about as long as an upgrade takes: waits, ends and forks happen before, during and
// after the switch.

#include "case.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

#define CONNECTIONS 30

static char in[70000], out[70000];

static int next_end(enum side side, int fd) {
    int end = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
    require(end >= 0, "accept");
    return end;
}

// Number of rounds of a connection: from before the upgrade to well after it.
static int rounds_of(int number) { return 6 + number % 13; }

// Gives the monitor time for its answer, now and then.
static void linger(enum side side, int number) {
    if (side == CLIENT && number % 3 == 0)
        sleep_ms(1);
}

// One question and its answer; `wait` is called before each attempt to receive.
static void round_trip(int end, enum side side, int number, void (*wait)(int end)) {
    size_t length = 1 + number * 131 % 900;
    linger(side, number);
    fill(out, length, number);
    for (int turn = 0; turn < 2; turn++) {
        if ((turn == 0) == (side == CLIENT)) {
            require(send_all(end, out, length) == length, "send");
            continue;
        }
        for (size_t done = 0; done < length;) {
            wait(end);
            ssize_t got = recv(end, in + done, length - done, 0);
            require(got > 0 || (got < 0 && errno == EAGAIN), "receive");
            done += got > 0 ? got : 0;
        }
        require(memcmp(in, out, length) == 0, "the bytes");
    }
}

static void converse(enum side side, int fd, int blocking, void (*wait)(int end)) {
    for (int i = 0; i < CONNECTIONS; i++) {
        int end = next_end(side, fd);
        set_blocking(end, blocking);
        for (int j = 0; j < rounds_of(i); j++)
            round_trip(end, side, i * 20 + j, wait);
        close(end);
    }
    note("done");
}

static void wait_by_poll(int end) {
    struct pollfd asked = {end, POLLIN, 0};
    require(poll(&asked, 1, PATIENCE_MS) == 1 && asked.revents & POLLIN, "poll");
}

static void wait_by_select(int end) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(end, &set);
    struct timeval time = {5, 0};
    require(select(end + 1, &set, NULL, NULL, &time) == 1, "select");
}

static void wait_by_new_set(int end) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, end, &event) == 0, "epoll_ctl");
    require(epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1, "epoll_wait");
    close(epoll);
}

static void wait_by_peek(int end) {
    require(recv(end, in, 1, MSG_PEEK) == 1, "peek");
}

CASE(polled_without_blocking, BARE | RACE | V6 | MIXED) { converse(side, fd, 0, wait_by_poll); }

CASE(polled_and_read_blocking, BARE | RACE) { converse(side, fd, 1, wait_by_poll); }

CASE(selected, BARE | RACE | MIXED) { converse(side, fd, 0, wait_by_select); }

CASE(a_new_set_each_time, BARE | RACE) { converse(side, fd, 0, wait_by_new_set); }

CASE(peeked_before_each_read, BARE | RACE) { converse(side, fd, 1, wait_by_peek); }

// One set for all connections, as in event loops.
static void serve_by_set(int listening, unsigned flags) {
    int epoll = epoll_create1(0), open = 0, accepted = 0;
    size_t total = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listening}, events[4];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
    set_blocking(listening, 0);
    while (accepted < CONNECTIONS || open > 0) {
        int ready = epoll_wait(epoll, events, 4, PATIENCE_MS);
        require(ready > 0, "epoll_wait");
        for (int i = 0; i < ready; i++) {
            int end = events[i].data.fd;
            if (end == listening) {
                end = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
                if (end < 0)
                    continue;
                accepted++, open++;
                setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
                event = (struct epoll_event){.events = EPOLLIN | flags, .data.fd = end};
                require(epoll_ctl(epoll, EPOLL_CTL_ADD, end, &event) == 0, "epoll_ctl");
                continue;
            }
            ssize_t got;
            do {
                got = read(end, in, 500);
                if (got > 0) {
                    require(send_all(end, in, got) == (size_t)got, "send");
                    total += got;
                }
            } while (got > 0 && flags & (EPOLLET | EPOLLONESHOT));
            if (got == 0) {
                close(end);
                open--;
            } else if (flags & EPOLLONESHOT) {
                event = (struct epoll_event){.events = EPOLLIN | flags, .data.fd = end};
                require(epoll_ctl(epoll, EPOLL_CTL_MOD, end, &event) == 0, "epoll_ctl");
            }
        }
    }
    note("bytes: %zu", total);
}

// Three connections at a time, each with a question in flight.
static void ask(void) {
    for (int i = 0; i < CONNECTIONS; i += 3) {
        int ends[3];
        for (int j = 0; j < 3; j++)
            ends[j] = connect_there();
        for (int j = 0; j < rounds_of(i); j++) {
            size_t length = 1 + (i + j) * 173 % 3000;
            linger(CLIENT, j);
            fill(out, length, i + j);
            for (int k = 0; k < 3; k++)
                require(send_all(ends[k], out, length) == length, "send");
            for (int k = 0; k < 3; k++) {
                require(recv(ends[k], in, length, MSG_WAITALL) == (ssize_t)length, "receive");
                require(memcmp(in, out, length) == 0, "the bytes");
            }
        }
        for (int j = 0; j < 3; j++)
            close(ends[j]);
    }
    note("done");
}

CASE(a_server_by_level, BARE | RACE | V6 | MIXED) {
    side == SERVER ? serve_by_set(fd, 0) : ask();
}

CASE(a_server_by_edge, BARE | RACE | V6 | MIXED) {
    side == SERVER ? serve_by_set(fd, EPOLLET) : ask();
}

CASE(a_server_by_one_shot, BARE | RACE | MIXED) {
    side == SERVER ? serve_by_set(fd, EPOLLONESHOT) : ask();
}

CASE(half_closed_after_some_rounds, BARE | RACE | V6 | MIXED) {
    for (int i = 0; i < CONNECTIONS; i++) {
        int end = next_end(side, fd);
        for (int j = 0; j < rounds_of(i); j++)
            round_trip(end, side, i * 20 + j, wait_by_poll);
        size_t length = 1 + i * 2011 % 60000;
        fill(out, length, i);
        if (side == CLIENT) {
            require(send_all(end, out, length) == length, "send");
            require(shutdown(end, SHUT_WR) == 0, "shutdown");
            require(recv(end, in, sizeof in, MSG_WAITALL) == 5, "receive the answer");
        } else {
            require(recv(end, in, sizeof in, MSG_WAITALL) == (ssize_t)length, "receive");
            require(memcmp(in, out, length) == 0, "the bytes");
            require(send(end, "right", 5, 0) == 5, "answer");
        }
        close(end);
    }
    note("done");
}

CASE(killed_after_some_rounds, BARE | RACE) {
    for (int i = 0; i < CONNECTIONS; i++) {
        if (side == CLIENT) {
            pid_t child = fork();
            if (child == 0) {
                int end = connect_there();
                for (int j = 0; j < rounds_of(i); j++)
                    round_trip(end, side, i * 20 + j, wait_by_poll);
                require(send(end, "last words", 10, 0) == 10, "send");
                kill(getpid(), SIGKILL);
            }
            int status;
            waitpid(child, &status, 0);
            require(WIFSIGNALED(status), "the child");
            continue;
        }
        int end = accept(fd, NULL, NULL);
        for (int j = 0; j < rounds_of(i); j++)
            round_trip(end, side, i * 20 + j, wait_by_poll);
        require(recv(end, in, 10, MSG_WAITALL) == 10, "the last words");
        ssize_t got = recv(end, in, 10, 0);
        require(got == 0 || (got < 0 && errno == ECONNRESET), "the end");
        close(end);
    }
    note("done");
}

CASE(forked_after_some_rounds, BARE | RACE | MIXED) {
    for (int i = 0; i < CONNECTIONS; i++) {
        int end = next_end(side, fd);
        for (int j = 0; j < rounds_of(i); j++)
            round_trip(end, side, i * 20 + j, wait_by_poll);
        pid_t child = i % 2 == (side == SERVER) ? fork() : 0;
        if (child > 0) {
            close(end);
            int status;
            waitpid(child, &status, 0);
            require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child");
            continue;
        }
        for (int j = 0; j < 15; j++)
            round_trip(end, side, i * 20 + j, wait_by_poll);
        close(end);
        if (i % 2 == (side == SERVER))
            _exit(0);
    }
    note("done");
}

CASE(copied_and_closed_each_round, BARE | RACE) {
    for (int i = 0; i < CONNECTIONS; i++) {
        int end = next_end(side, fd);
        for (int j = 0; j < rounds_of(i); j++) {
            round_trip(end, side, i * 20 + j, wait_by_poll);
            int copy = dup(end);
            require(copy >= 0 && close(end) == 0, "dup");
            end = copy;
        }
        close(end);
    }
    note("done");
}

static void count_nothing(int number) { (void)number; }

CASE(interrupted_all_the_time, BARE | RACE | MIXED) {
    struct sigaction action = {.sa_handler = count_nothing, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 700}, {0, 700}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < CONNECTIONS; i++) {
        int end = next_end(side, fd);
        for (int j = 0; j < rounds_of(i); j++) {
            size_t length = 1 + j * 300;
            linger(side, j);
            fill(out, length, j);
            for (int turn = 0; turn < 2; turn++) {
                if ((turn == 0) == (side == CLIENT)) {
                    require(send_all(end, out, length) == length, "send");
                } else {
                    require(receive_all(end, in, length) == length, "receive");
                    require(memcmp(in, out, length) == 0, "the bytes");
                }
            }
        }
        close(end);
    }
    note("done");
}

CASE(reading_shut_from_the_beginning, V6 | TCP) {
    // Arriving bytes are delivered nevertheless; after them the stream is at its end.
    char byte;
    if (side == CLIENT)
        TRY(shutdown(fd, SHUT_RD));
    for (int i = 0; i < 30; i++) {
        if (side == SERVER)
            require(send(fd, "b", 1, 0) == 1, "send");
        await_bytes(fd, 1);
        require(recv(fd, &byte, 1, 0) == 1, "receive");
        if (side == CLIENT)
            require(send(fd, &byte, 1, 0) == 1, "send");
    }
    note_poll("then", fd);
    meet(side, 1);
}
