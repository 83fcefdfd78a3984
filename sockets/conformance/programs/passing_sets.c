// SPDX-License-Identifier: Apache-2.0 OR MIT
// Sets passed to other processes, with connections in them; and connections taken by other
// processes.

#include "case.h"

#include <sys/epoll.h>
#include <sys/syscall.h>

static char in[1000];

static void add(int epoll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
}

// Answers messages as a set reports them.
static void answer_in_set(int epoll, int fd, int count) {
    struct epoll_event event;
    for (int i = 0; i < count; i++) {
        require(epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1 && event.data.u64 == 77, "an event");
        require(recv(fd, in, 4, MSG_DONTWAIT) == 4, "receive");
        require(send(fd, in, 4, 0) == 4, "send");
    }
    note("answered: %d", count);
}

static void ask(int fd, int count) {
    for (int i = 0; i < count; i++) {
        require(send(fd, "ping", 4, 0) == 4, "send");
        require(recv(fd, in, 4, MSG_WAITALL) == 4, "receive");
    }
}

CASE(a_set_with_the_connection_in_it, WARM | V6) {
    if (side == CLIENT) {
        ask(fd, 10);
        await_peer(side, 1);
        TRY(send(fd, "data", 4, 0));
        await_peer(side, 2);
        ask(fd, 200);
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        int set = taken(pair[1]);
        note_events("nothing", set, 0);
        reach(side, 1);
        require(note_events("in the child", set, PATIENCE_MS) == 1, "an event");
        _exit(0);
    }
    int epoll = epoll_create1(0);
    add(epoll, fd);
    answer_in_set(epoll, fd, 10);
    give(pair[0], epoll);
    note_end("child", child);
    note_events("in the parent", epoll, PATIENCE_MS);
    TRY(recv(fd, in, 10, 0));
    reach(side, 2);
    answer_in_set(epoll, fd, 200);
}

CASE(into_a_set_that_came, WARM | V6) {
    if (side == CLIENT) {
        ask(fd, 200);
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        give(pair[1], epoll_create1(0));
        _exit(0);
    }
    note_end("child", child);
    int epoll = taken(pair[0]);
    add(epoll, fd);
    answer_in_set(epoll, fd, 200);
}

PROGRAM(waits_in_its_set) { answer_in_set(70, fd, 200); }

CASE(a_set_and_its_connection_inherited, WARM | V6) {
    if (side == CLIENT) {
        ask(fd, 200);
        TRY(recv(fd, in, 1, 0));
        return;
    }
    int epoll = epoll_create1(0);
    add(epoll, fd);
    dup2(epoll, 70);
    close(epoll);
    char **arguments = as_program("waits_in_its_set", side, fd);
    execv(own_path(), arguments);
    require(0, "the program begins");
}

CASE(taken_out_of_another_process, COLD) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 5, MSG_WAITALL));
        note_bytes("received", in, 5);
        TRY(recv(fd, in, 1, 0));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        int parent = syscall(SYS_pidfd_open, getppid(), 0);
        int copy = syscall(SYS_pidfd_getfd, parent, fd, 0);
        require(copy >= 0, "a copy");
        require(send(copy, "taken", 5, 0) == 5, "send");
        _exit(0);
    }
    note_end("child", child);
}
