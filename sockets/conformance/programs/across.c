// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections in constant use while they are upgraded: no byte may be lost, duplicated or reordered
// at the switch, and bytes in flight in the kernel come before those in the ring.

#include "case.h"

static char out[1 << 20], in[1 << 20];

static uint64_t state;
static size_t below(size_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state >> 33) % limit;
}

// Sends `total` bytes in pieces of random sizes, with pauses: the switch happens among them.
static void send_pieces(int fd, size_t total, uint64_t seed, int pause_every) {
    uint64_t sum = CHECKSUM_BEGIN;
    state = seed;
    for (size_t done = 0, count = 1; done < total; count++) {
        size_t length = 1 + below(below(10) ? 300 : 40000);
        length = length > total - done ? total - done : length;
        fill(out, length, seed + done);
        require(send_all(fd, out, length) == length, "send");
        sum = checksum(sum, out, length);
        done += length;
        if (pause_every && count % pause_every == 0)
            sleep_ms(1);
    }
    note("sent %zu bytes %016llx", total, (unsigned long long)sum);
}

static void receive_pieces(int fd, size_t total, uint64_t seed) {
    uint64_t sum = CHECKSUM_BEGIN;
    state = seed;
    for (size_t done = 0; done < total;) {
        size_t most = 1 + below(below(10) ? 300 : 40000);
        ssize_t got = recv(fd, in, most > total - done ? total - done : most, 0);
        if (got < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){fd, POLLIN, 0}, 1, 1000);
            continue;
        }
        require(got > 0, "receive");
        sum = checksum(sum, in, got);
        done += got;
    }
    note("received %zu bytes %016llx", total, (unsigned long long)sum);
}

CASE(a_stream_to_the_server_across_the_switch, ACROSS | RACE | V6 | MIXED) {
    if (side == CLIENT)
        send_pieces(fd, 600000, 1, 20);
    else
        receive_pieces(fd, 600000, 2);
    prove_soon(fd, side);
}

CASE(a_stream_to_the_client_across_the_switch, ACROSS | RACE) {
    if (side == SERVER)
        send_pieces(fd, 600000, 3, 20);
    else
        receive_pieces(fd, 600000, 4);
    prove_soon(fd, side);
}

CASE(a_stream_without_blocking_across_the_switch, ACROSS | RACE) {
    set_blocking(fd, 0);
    if (side == CLIENT)
        send_pieces(fd, 2000000, 5, 50);
    else
        receive_pieces(fd, 2000000, 6);
    set_blocking(fd, 1);
    prove_soon(fd, side);
}

struct sender {
    int fd;
    enum side side;
};

static void *send_in_background(void *given) {
    static char block[5000];
    struct sender *sender = given;
    for (int i = 0; i < 400; i++) {
        size_t length = 1 + (i * 7919) % sizeof block;
        fill(block, length, i + sender->side);
        require(send_all(sender->fd, block, length) == length, "send");
        if (i % 30 == 0)
            sleep_ms(1);
    }
    return NULL;
}

CASE(streams_both_ways_by_two_threads_across_the_switch, ACROSS | RACE | V6 | MIXED) {
    size_t total = 0;
    for (int i = 0; i < 400; i++)
        total += 1 + (i * 7919) % 5000;
    pthread_t thread;
    struct sender sender = {fd, side};
    require(pthread_create(&thread, NULL, send_in_background, &sender) == 0, "pthread_create");
    receive_pieces(fd, total, 8 + side);
    pthread_join(thread, NULL);
    meet(side, 1);
    prove_soon(fd, side);
}

CASE(data_in_flight_while_nobody_reads, ACROSS | RACE | V6 | MIXED) {
    // The client sends many messages before the server, which has sent equally many, reads any: all
    // of them are in the kernel when the connection is upgraded.
    char byte;
    for (int i = 0; i < 12; i++) {
        require(send(fd, "o", 1, 0) == 1, "send");
        require(recv(fd, &byte, 1, 0) == 1, "receive");
    }
    if (side == CLIENT)
        send_pieces(fd, 60000, 9, 2);
    meet(side, 1);
    sleep_ms(30);
    if (side == SERVER) {
        TRY(send(fd, "x", 1, 0));
        receive_pieces(fd, 60000, 10);
        TRY(send(fd, "y", 1, 0));
    } else {
        TRY(recv(fd, in, 2, MSG_WAITALL));
        note_bytes("received", in, 2);
    }
    meet(side, 2);
    prove_soon(fd, side);
}

CASE(peeks_at_every_step_across_the_switch, ACROSS | RACE) {
    uint64_t sum = CHECKSUM_BEGIN;
    for (int i = 0; i < 300; i++) {
        size_t length = 1 + i * 31 % 500;
        fill(out, length, i);
        if (side == CLIENT) {
            require(send(fd, out, length, 0) == (ssize_t)length, "send");
            require(recv(fd, in, 1, 0) == 1, "receive");
            continue;
        }
        await_bytes(fd, length);
        require(recv(fd, in, sizeof in, MSG_PEEK) == (ssize_t)length, "peek");
        require(memcmp(in, out, length) == 0, "peeked bytes");
        require(recv(fd, in, sizeof in, 0) == (ssize_t)length, "receive");
        sum = checksum(sum, in, length);
        require(send(fd, "k", 1, 0) == 1, "send");
        if (i % 10 == 0)
            sleep_ms(1);
    }
    note("received %016llx", (unsigned long long)sum);
    prove_soon(fd, side);
}

CASE(waiting_in_recv_while_upgraded, ACROSS | RACE | MIXED) {
    char byte = 0;
    // One side has completed its operations long ago and sleeps when the other reaches the
    // threshold.
    for (int i = 0; i < 60; i++) {
        if (side == CLIENT) {
            if (i > 8)
                sleep_ms(1);
            require(send(fd, "r", 1, 0) == 1, "send");
            require(recv(fd, &byte, 1, 0) == 1, "receive");
        } else {
            require(recv(fd, &byte, 1, 0) == 1, "receive");
            require(send(fd, &byte, 1, 0) == 1, "send");
        }
    }
    note("the last byte: %c", byte);
    prove_soon(fd, side);
}

CASE(end_right_behind_the_switch, RACE | V6) {
    // Data and the end of the stream, shortly before or after the connection is upgraded.
    char byte;
    for (int i = 0; i < 10; i++) {
        require(send(fd, "o", 1, 0) == 1, "send");
        require(recv(fd, &byte, 1, 0) == 1, "receive");
    }
    if (side == CLIENT) {
        send_pieces(fd, 30000, 11, 0);
        TRY(close(fd));
        return;
    }
    receive_pieces(fd, 30000, 12);
    TRY(recv(fd, in, sizeof in, 0));
    TRY(recv(fd, in, sizeof in, 0));
}
