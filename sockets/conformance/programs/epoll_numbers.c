// SPDX-License-Identifier: Apache-2.0 OR MIT
// Epoll sets whose members have several descriptor numbers, or are held by several processes:
// closing one does not close the others.

#include "case.h"

#include <sys/epoll.h>
#include <sys/wait.h>

static char in[100];

static int add(int epoll, int fd, uint64_t data) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Two connections in a set. The second one makes the server act while the first one is idle; the
// first must still be reported afterwards.
static void with_two(enum side side, int fd, void (*act)(int epoll, const int ends[2])) {
    int ends[2], epoll = epoll_create1(0);
    for (int i = 0; i < 2; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(ends[i], side);
        add(epoll, ends[i], i);
    }
    meet(side, 1);
    if (side == CLIENT) {
        sleep_ms(20);
        TRY(send(ends[1], "act", 3, 0));
        await_peer(side, 2);
        sleep_ms(20);
        TRY(send(ends[0], "first", 5, 0));
        meet(side, 3);
        return;
    }
    note_events("the second one", epoll, PATIENCE_MS);
    TRY(recv(ends[1], in, sizeof in, 0));
    act(epoll, ends);
    reach(side, 2);
    note_events("the first one", epoll, PATIENCE_MS);
    TRY(recv(ends[0], in, sizeof in, 0));
    note_events("nothing", epoll, 10);
    meet(side, 3);
}

static void child_closes_set(int epoll, const int ends[2]) {
    (void)ends;
    pid_t child = fork();
    if (child == 0) {
        close(epoll);
        _exit(0);
    }
    note_end("the child", child);
}

CASE(a_child_closes_its_copy_of_a_set, BARE | WARM | V6) { with_two(side, fd, child_closes_set); }

static void child_closes_all(int epoll, const int ends[2]) {
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        close(ends[1]);
        close(epoll);
        _exit(0);
    }
    note_end("the child", child);
}

CASE(a_child_closes_all_that_is_in_a_set, BARE | WARM | V6) {
    with_two(side, fd, child_closes_all);
}

CASE(the_number_in_a_set_is_closed_and_a_copy_is_not, COLD | V6) {
    int epoll = epoll_create1(0), heard = 0;
    if (side == CLIENT) {
        for (int turn = 0; turn < 40; turn++) {
            if (turn % 4 == 0)
                sleep_ms(5);
            require(send(fd, "question", 8, 0) == 8, "it is sent");
            require(receive_all(fd, in, 6) == 6, "it is answered");
        }
        return;
    }
    add(epoll, fd, 7);
    int copy = dup(fd);
    TRY(close(fd));
    for (int turn = 0; turn < 40; turn++) {
        struct epoll_event event = {0};
        heard += epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1 && event.data.u64 == 7;
        require(receive_all(copy, in, 8) == 8, "it is asked");
        require(send(copy, "answer", 6, 0) == 6, "it is sent");
    }
    note("heard of: %d", heard);
    close(copy);
}
