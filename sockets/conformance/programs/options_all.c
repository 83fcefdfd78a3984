// SPDX-License-Identifier: Apache-2.0 OR MIT
// Every option of Linux 6.18 for stream sockets, set on a connection and read back, followed by
// bytes in both directions: either the option takes effect, or the connection returns to the
// kernel. A kernel without an option refuses it, both plain and accelerated.

#include "case.h"

enum { NOT_READ = 1, TO_UNDO = 2 };

struct option {
    int number, value, how;
};

// NOT_READ: the value depends on the machine, or on the number of reads.
static const struct option of_sockets[] = {
    {1, 1, 0}, {2, 1, 0}, {5, 1, TO_UNDO}, {6, 1, 0}, {7, 50000, 0}, {8, 50000, 0}, {9, 1, 0},
    {10, 1, 0}, {11, 1, 0}, {12, 3, 0}, {13, 1, 0}, {14, 1, 0}, {15, 1, TO_UNDO}, {16, 1, TO_UNDO},
    {18, 1, 0}, {19, 1, 0}, {20, 1, 0}, {21, 1, 0}, {25, 1, 0}, {26, 1, 0}, {27, 1, 0},
    {29, 1, TO_UNDO}, {32, 60000, 0}, {33, 60000, 0}, {34, 1, TO_UNDO}, {35, 1, TO_UNDO},
    {36, 5, TO_UNDO}, {37, 16, TO_UNDO}, {40, 1, TO_UNDO}, {41, 1, TO_UNDO}, {42, 0, 0},
    {43, 1, TO_UNDO}, {44, 1, 0}, {45, 1, 0}, {46, 10, TO_UNDO}, {47, 1 << 30, 0},
    {49, 0, NOT_READ}, {50, 1, 0}, {51, 1, 0}, {52, 1, 0}, {53, 1, 0}, {60, 1, TO_UNDO},
    {61, 1, 0}, {62, 1, TO_UNDO}, {63, 1, TO_UNDO}, {64, 1, TO_UNDO}, {65, 16, TO_UNDO}, {66, 1, 0},
    {67, 1, 0}, {68, 1, 0}, {69, 1, TO_UNDO}, {70, 8, 0}, {72, 1, 0}, {73, 4096, NOT_READ},
    {74, 1, 0}, {75, 1, TO_UNDO}, {76, 1, TO_UNDO}, {78, 1, 0}, {79, 1, 0}, {80, 1, 0},
    {81, 1, TO_UNDO}, {82, 1, 0}, {83, 1, TO_UNDO},
};
// Without the repair options (19 to 22 and 29), which disconnect.
static const struct option of_tcp[] = {
    {1, 1, 0}, {2, 1400, NOT_READ}, {3, 1, TO_UNDO}, {4, 33, 0}, {5, 11, 0}, {6, 7, 0}, {7, 5, 0},
    {8, 20, 0}, {9, 1, NOT_READ}, {10, 1 << 20, NOT_READ}, {12, 1, NOT_READ}, {13, 1, 0},
    {14, 1, 0}, {16, 1, 0}, {17, 1, 0}, {18, 5000, 0}, {23, 1, 0}, {24, 1, NOT_READ},
    {25, 1 << 17, 0}, {27, 1, 0}, {30, 1, 0}, {31, 1, 0}, {32, 1, 0}, {33, 1, NOT_READ},
    {34, 1, 0}, {36, 1, TO_UNDO}, {37, 10, TO_UNDO}, {38, 1, 0}, {39, 1, 0}, {40, 1, 0}, {42, 1, 0},
    {44, 5000, 0}, {45, 200000, 0}, {46, 200000, 0},
};
static const int of_sockets_to_read[] = {3, 4, 30, 38, 39};

static char in[64];

// A few bytes each way, and nothing else.
static void exchange(int fd, enum side side) {
    if (side == CLIENT) {
        require(send(fd, "question", 8, MSG_NOSIGNAL) == 8, "send");
        require(receive_all(fd, in, 6) == 6 && memcmp(in, "answer", 6) == 0, "the answer");
    } else {
        require(receive_all(fd, in, 8) == 8 && memcmp(in, "question", 8) == 0, "the question");
        require(send(fd, "answer", 6, MSG_NOSIGNAL) == 6, "send");
    }
}

static void set(int fd, int level, int number, int value) {
    errno = 0;
    int result = setsockopt(fd, level, number, &value, sizeof value);
    note("%d/%d = %d: %d %s", level, number, value, result, errno ? strerrorname_np(errno) : "");
}

static void read_back(int fd, int level, int number) {
    int value = -1;
    socklen_t length = sizeof value;
    errno = 0;
    int result = getsockopt(fd, level, number, &value, &length);
    note("%d/%d: %d %d %s", level, number, result, value, errno ? strerrorname_np(errno) : "");
}

static void set_all(int fd, enum side side, int level, const struct option *all, size_t count) {
    for (size_t i = 0; i < count; i++) {
        // Only one of the two sides sets it, in turn.
        if ((i % 2 == 0) == (side == SERVER)) {
            set(fd, level, all[i].number, all[i].value);
            if (!(all[i].how & NOT_READ))
                read_back(fd, level, all[i].number);
            exchange(fd, side);
            if (all[i].how & TO_UNDO)
                set(fd, level, all[i].number, 0);
        } else {
            exchange(fd, side);
        }
    }
}

CASE(every_option_of_sockets, WARM | V6) {
    set_all(fd, side, SOL_SOCKET, of_sockets, sizeof of_sockets / sizeof *of_sockets);
    for (size_t i = 0; i < sizeof of_sockets_to_read / sizeof *of_sockets_to_read; i++)
        read_back(fd, SOL_SOCKET, of_sockets_to_read[i]);
}

CASE(every_option_of_tcp, WARM | V6) {
    set_all(fd, side, IPPROTO_TCP, of_tcp, sizeof of_tcp / sizeof *of_tcp);
}

// One option on one accelerated connection, so that no option prevents the test of another.
static void one(int fd, enum side side, int level, const struct option *option) {
    if (side == SERVER)
        set(fd, level, option->number, option->value);
    for (int i = 0; i < 20; i++)
        exchange(fd, side);
}

CASE(a_pace_of_sending, WARM | TCP) { one(fd, side, SOL_SOCKET, &(struct option){47, 1 << 30, 0}); }
CASE(a_delay_of_sending, WARM | TCP) { one(fd, side, IPPROTO_TCP, &(struct option){37, 10, 0}); }
CASE(receiving_without_a_copy, WARM | TCP) {
    exchange(fd, side);
    if (side == SERVER) {
        struct { // tcp_zerocopy_receive
            unsigned long address;
            unsigned length, skip, bytes;
            int error;
        } asked = {0};
        socklen_t length = sizeof asked;
        await_bytes(fd, 4);
        TRY(getsockopt(fd, IPPROTO_TCP, 35, &asked, &length));
        TRY(recv(fd, in, sizeof in, 0));
    } else {
        require(send(fd, "data", 4, MSG_NOSIGNAL) == 4, "send");
    }
    meet(side, 1);
    exchange(fd, side);
}

// The mark determines when recv returns: each way to request bytes, with fewer and more present
// than the mark requires.
CASE(recv_waits_for_the_mark, WARM | TCP) {
    int mark = 8;
    if (side == CLIENT) {
        prove(fd, side);
        for (int i = 0; i < 3; i++) {
            meet(side, 10 * i + 1);
            require(send(fd, "abc", 3, MSG_NOSIGNAL) == 3, "send");
            meet(side, 10 * i + 2);
            require(send(fd, "defghijk", 8, MSG_NOSIGNAL) == 8, "send");
        }
        meet(side, 31);
        require(send(fd, "end", 3, MSG_NOSIGNAL) == 3, "send");
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 32);
        return;
    }
    prove(fd, side);
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    for (int i = 0; i < 3; i++) {
        meet(side, 10 * i + 1);
        await_bytes(fd, 3);
        TRY(recv(fd, in, sizeof in, MSG_DONTWAIT | MSG_PEEK));
        if (i == 1)
            TRY(recv(fd, in, 2, 0));
        meet(side, 10 * i + 2);
        await_bytes(fd, i == 1 ? 9 : 11);
        if (i == 2)
            TRY(recv(fd, in, sizeof in, MSG_PEEK));
        TRY(recv(fd, in, sizeof in, 0));
    }
    meet(side, 31);
    TRY(recv(fd, in, sizeof in, 0));
    meet(side, 32);
}

// It sleeps until enough has arrived, however late. The kernel waits for the full mark again after
// bytes it took before it slept, so more than twice as much is sent.
CASE(recv_sleeps_for_the_mark, WARM | TCP) {
    int mark = 8;
    if (side == CLIENT) {
        meet(side, 1);
        for (int i = 0; i < 4 * mark; i++) {
            usleep(1000);
            require(send(fd, "x", 1, MSG_NOSIGNAL) == 1, "send");
        }
        meet(side, 2);
        return;
    }
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    meet(side, 1);
    ssize_t got = recv(fd, in, sizeof in, 0);
    note("enough: %d", got >= mark && got <= 4 * mark);
    meet(side, 2);
}
