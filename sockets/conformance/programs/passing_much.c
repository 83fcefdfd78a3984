// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections that are passed to other processes while much is under way.

#include "case.h"

static char in[1 << 21], out[1 << 21];

// A mebibyte and a half, in pieces.
#define LARGE (3 << 19)

static void exchange_large(int fd, enum side side) {
    TRY(receive_all(fd, in, LARGE));
    fill(out, LARGE, 1 - side);
    note("as it was sent: %d", memcmp(in, out, LARGE) == 0);
    TRY(send(fd, "end", 3, 0));
    TRY(recv(fd, in, 3, MSG_WAITALL));
}

CASE(more_than_a_mebibyte_unread_both_ways, WARM | V6 | TCP) {
    fill(out, LARGE, side);
    for (int at = 0; at < LARGE; at += 4096)
        require(send(fd, out + at, 4096, 0) == 4096, "send");
    meet(side, 1);
    if (side == CLIENT) {
        exchange_large(fd, side);
        return;
    }
    pass_to_child(fd, side, exchange_large, CLOSES);
}

static void *send_much(void *given) {
    int fd = *(int *)given;
    size_t length = sizeof out;
    require(send_all(fd, out, length) == length, "send");
    require(send_all(fd, out, length) == length, "send");
    return NULL;
}

static void receive_much(int fd) {
    size_t length = sizeof in;
    for (int i = 0; i < 2; i++) {
        require(receive_all(fd, in, length) == length, "receive");
        require(memcmp(in, out, length) == 0, "the bytes");
    }
}

CASE(while_the_peer_sends_more_than_fits, WARM | RACE) {
    // The peer sleeps for room when the connection is passed.
    fill(out, sizeof out, 7);
    if (side == CLIENT) {
        send_much(&fd);
        TRY(recv(fd, in, 4, MSG_WAITALL));
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        int got = taken(pair[1]);
        receive_much(got);
        TRY(send(got, "done", 4, 0));
        _exit(0);
    }
    sleep_ms(50);
    give(pair[0], fd);
    close(fd);
    note_end("heir", child);
}

CASE(while_both_send_and_receive, WARM | RACE) {
    fill(out, sizeof out, 9);
    if (side == CLIENT) {
        pthread_t thread;
        require(pthread_create(&thread, NULL, send_much, &fd) == 0, "pthread_create");
        receive_much(fd);
        pthread_join(thread, NULL);
        note("done");
        meet(side, 1);
        return;
    }
    // The passer sends on while the heir receives.
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        receive_much(taken(pair[1]));
        _exit(0);
    }
    pthread_t thread;
    require(pthread_create(&thread, NULL, send_much, &fd) == 0, "pthread_create");
    sleep_ms(10);
    require(pass(pair[0], &fd, 1) == 1, "pass");
    pthread_join(thread, NULL);
    note_end("heir", child);
    meet(side, 1);
}
