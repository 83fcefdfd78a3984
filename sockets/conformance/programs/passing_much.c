// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections passed to other processes while much data is in flight.

#include "case.h"

static char in[1 << 21], out[1 << 21];

// 1.5 MiB, in pieces.
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
    // The sender continues to send while the heir receives.
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

#define HEIRS 8

// Reads a part, then passes the connection to a process that does the same; the last one reads
// until the end.
static void read_and_hand_down(int fd, int heirs) {
    size_t part = (1 << 18) + (size_t)heirs * 1000;
    if (heirs == 0) {
        while (recv(fd, in, 4096, 0) > 0) {
        }
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        close(pair[0]);
        read_and_hand_down(taken(pair[1]), heirs - 1);
        _exit(0);
    }
    close(pair[1]);
    for (size_t got = 0; got < part;) {
        ssize_t count = recv(fd, in, 4096, 0);
        require(count > 0, "receive");
        got += (size_t)count;
    }
    give(pair[0], fd);
    close(fd);
    note_end("heir", child);
}

CASE(who_is_told_of_room_has_it, WARM | RACE) {
    if (side == SERVER) {
        read_and_hand_down(fd, HEIRS);
        return;
    }
    // The connection returns to the kernel between poll and send.
    fill(out, sizeof out, 11);
    for (size_t sent = 0, round = 0; sent < 3 * sizeof out; round++) {
        struct pollfd asked = {fd, POLLOUT, 0};
        require(poll(&asked, 1, PATIENCE_MS) == 1, "poll");
        usleep((useconds_t)(round * 7919 % 500));
        ssize_t count = send(fd, out, 60000, MSG_DONTWAIT);
        if (count <= 0)
            note_result("send, told of room", count);
        require(count > 0, "send");
        sent += (size_t)count;
    }
    shutdown(fd, SHUT_WR);
    TRY(recv(fd, in, 1, 0));
}
