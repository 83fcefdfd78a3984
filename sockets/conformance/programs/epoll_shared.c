// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sets read by several threads or processes, sockets in sets of several processes, and
// registrations that change while messages arrive: no event is lost, and none is reported too
// often.

#include "case.h"

#include <stdatomic.h>
#include <sys/epoll.h>

enum { MESSAGES = 600, THREADS = 3 };

static int connection, set;
static atomic_int handled, is_over;

// Sends messages of one byte, each after the answer to the previous one.
static void ask_all(int fd, int count) {
    char byte = 'x';
    for (int i = 0; i < count; i++) {
        require(send(fd, &byte, 1, MSG_NOSIGNAL) == 1, "send");
        require(recv(fd, &byte, 1, 0) == 1, "the answer");
    }
}

// Receives at most `most` bytes without blocking, and answers each; returns their number.
static int answer_up_to(int fd, int most) {
    char byte;
    int count = 0;
    while (count < most && recv(fd, &byte, 1, MSG_DONTWAIT) == 1) {
        require(send(fd, &byte, 1, MSG_NOSIGNAL) == 1, "answer");
        count++;
    }
    return count;
}

static int answer_all(int fd) { return answer_up_to(fd, 2 * MESSAGES); }

static void registers(int set, int operation, int fd, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    require(epoll_ctl(set, operation, fd, &event) == 0, "epoll_ctl");
}

static void *handle_one_shot(void *nothing) {
    struct epoll_event event;
    while (!atomic_load(&is_over)) {
        if (epoll_wait(set, &event, 1, 20) != 1)
            continue;
        atomic_fetch_add(&handled, answer_all(connection));
        registers(set, EPOLL_CTL_MOD, connection, EPOLLIN | EPOLLONESHOT);
    }
    return nothing;
}

static void *handle_edges(void *nothing) {
    struct epoll_event event;
    while (!atomic_load(&is_over))
        if (epoll_wait(set, &event, 1, 20) == 1)
            atomic_fetch_add(&handled, answer_all(connection));
    return nothing;
}

// Threads that wait on one set, for a connection with this registration.
static void wait_together(enum side side, int fd, unsigned events, void *(*handle)(void *)) {
    if (side == CLIENT) {
        ask_all(fd, MESSAGES);
        meet(side, 1);
        return;
    }
    pthread_t threads[THREADS];
    connection = fd;
    set = epoll_create1(0);
    registers(set, EPOLL_CTL_ADD, fd, events);
    for (int i = 0; i < THREADS; i++)
        require(pthread_create(&threads[i], NULL, handle, NULL) == 0, "thread");
    meet(side, 1);
    atomic_store(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        require(pthread_join(threads[i], NULL) == 0, "join");
    note("handled: %d", atomic_load(&handled));
}

CASE(threads_in_one_set_by_turns, WARM | RACE | V6) {
    wait_together(side, fd, EPOLLIN | EPOLLONESHOT, handle_one_shot);
}
CASE(threads_in_one_set_by_edges, WARM | RACE) {
    wait_together(side, fd, EPOLLIN | EPOLLET, handle_edges);
}
CASE(threads_in_one_set_by_levels, WARM | RACE) { wait_together(side, fd, EPOLLIN, handle_edges); }

// Answers `count` bytes in total.
static void serve(int set, int fd, int count) {
    struct epoll_event event;
    int done = 0;
    while (done < count)
        if (epoll_wait(set, &event, 1, -1) == 1)
            done += answer_up_to(fd, count - done);
}

// A child reads the set that its parent has made; then the parent does.
CASE(a_set_is_read_by_a_child, WARM | V6) {
    if (side == CLIENT) {
        ask_all(fd, 2 * MESSAGES);
        meet(side, 1);
        return;
    }
    set = epoll_create1(0);
    registers(set, EPOLL_CTL_ADD, fd, EPOLLIN);
    pid_t child = fork();
    if (child == 0) {
        serve(set, fd, MESSAGES);
        _exit(0);
    }
    note_end("the child", child);
    serve(set, fd, MESSAGES);
    meet(side, 1);
}

// Each process has its own set with the same socket: at least one wakes for each message, and
// otherwise all may sleep.
static void exclusive(enum side side, int fd, unsigned events) {
    if (side == CLIENT) {
        ask_all(fd, MESSAGES);
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    int count[2];
    require(pipe(count) == 0, "pipe");
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            int own = epoll_create1(0), done = 0, ended = 0;
            struct epoll_event event;
            registers(own, EPOLL_CTL_ADD, fd, events);
            while (!ended) {
                require(epoll_wait(own, &event, 1, -1) == 1, "wait");
                done += answer_all(fd);
                char byte;
                ended = recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
            }
            require(write(count[1], &done, sizeof done) == sizeof done, "tell");
            _exit(0);
        }
    }
    int sum = 0;
    for (int i = 0; i < 2; i++) {
        int one = 0;
        require(read(count[0], &one, sizeof one) == sizeof one, "count");
        sum += one;
        note_end("a child", children[i]);
    }
    note("handled: %d", sum);
    meet(side, 1);
}

CASE(exclusive_in_two_processes, WARM | RACE) { exclusive(side, fd, EPOLLIN | EPOLLEXCLUSIVE); }
CASE(in_sets_of_two_processes, WARM | RACE) { exclusive(side, fd, EPOLLIN); }

static void *modify_all_the_time(void *nothing) {
    static const unsigned ways[] = {EPOLLIN, EPOLLIN | EPOLLET, EPOLLIN | EPOLLOUT | EPOLLET,
                                    EPOLLIN | EPOLLRDHUP, EPOLLIN | EPOLLONESHOT};
    for (unsigned i = 0; !atomic_load(&is_over); i++)
        registers(set, EPOLL_CTL_MOD, connection, ways[i % (sizeof ways / sizeof *ways)]);
    return nothing;
}

static void *take_out_and_put_back(void *nothing) {
    while (!atomic_load(&is_over)) {
        require(epoll_ctl(set, EPOLL_CTL_DEL, connection, NULL) == 0, "epoll_ctl");
        registers(set, EPOLL_CTL_ADD, connection, EPOLLIN | EPOLLET);
    }
    return nothing;
}

// However the registration changes, pending bytes are reported after the change.
static void change(enum side side, int fd, void *(*changes)(void *)) {
    if (side == CLIENT) {
        ask_all(fd, MESSAGES);
        meet(side, 1);
        return;
    }
    pthread_t thread;
    connection = fd;
    set = epoll_create1(0);
    registers(set, EPOLL_CTL_ADD, fd, EPOLLIN);
    require(pthread_create(&thread, NULL, changes, NULL) == 0, "thread");
    serve(set, fd, MESSAGES);
    atomic_store(&is_over, 1);
    require(pthread_join(thread, NULL) == 0, "join");
    meet(side, 1);
}

CASE(registrations_change_while_messages_come, WARM | RACE | V6) {
    change(side, fd, modify_all_the_time);
}
CASE(registrations_come_and_go_while_messages_come, WARM | RACE) {
    change(side, fd, take_out_and_put_back);
}
