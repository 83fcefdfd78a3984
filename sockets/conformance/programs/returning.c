// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections that return to the kernel, in all possible states.
#include "case.h"
#include <dlfcn.h>
#include <sys/epoll.h>

// Returns the connection to the kernel, if it has left it. False: the peer has already done so, and
// left bytes that must be read first.
static int can_bring_back(int fd) {
    int (*function)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "freeport_bring_back");
    return function ? function(fd) : 1;
}
static void bring_back(int fd) { require(can_bring_back(fd) == 1, "it comes back"); }

static unsigned char byte_at(size_t at) { return (unsigned char)(at * 2654435761u >> 13); }

static void fill_numbered(unsigned char *bytes, size_t length, size_t from) {
    for (size_t at = 0; at < length; at++)
        bytes[at] = byte_at(from + at);
}

static void check_numbered(const unsigned char *bytes, size_t length, size_t from) {
    for (size_t at = 0; at < length; at++)
        if (bytes[at] != byte_at(from + at)) {
            note("byte %zu of the stream is wrong", from + at);
            exit(1);
        }
}

static void send_numbered(int fd, size_t length, size_t from, size_t piece) {
    static unsigned char bytes[1 << 16];
    while (length > 0) {
        size_t count = length < piece ? length : piece;
        fill_numbered(bytes, count, from);
        ssize_t sent = send(fd, bytes, count, 0);
        require(sent > 0, "it can be sent");
        length -= sent, from += sent;
    }
}

static void receive_numbered(int fd, size_t length, size_t from) {
    static unsigned char bytes[1 << 16];
    while (length > 0) {
        ssize_t got = recv(fd, bytes, length < sizeof bytes ? length : sizeof bytes, 0);
        require(got > 0, "it can be received");
        check_numbered(bytes, got, from);
        length -= got, from += got;
    }
}

// Both sides send this much, one returns to the kernel, then both read everything.
static void with_unread(enum side side, int fd, size_t to_server, size_t to_client) {
    send_numbered(fd, side == SERVER ? to_client : to_server, 0, PATIENCE_MS);
    meet(side, 10);
    if (side == SERVER)
        bring_back(fd);
    receive_numbered(fd, side == SERVER ? to_server : to_client, 0);
    // It still works afterwards. Unix sockets have room for fewer messages.
    size_t more = family() == AF_UNIX ? 10000 : 100000;
    send_numbered(fd, more, 7, 100);
    receive_numbered(fd, more, 7);
    note("all is there");
}

CASE(with_nothing_unread, WARM | V6 | MIXED) { with_unread(side, fd, 0, 0); }
CASE(with_something_for_the_one, WARM | V6) { with_unread(side, fd, 10, 0); }
CASE(with_something_for_the_other, WARM | V6) { with_unread(side, fd, 0, 10); }
CASE(with_something_for_both, WARM | V6) { with_unread(side, fd, 3000, 4000); }
CASE(with_much_for_the_one, WARM | TCP) { with_unread(side, fd, 1500000, 0); }
CASE(with_much_for_the_other, WARM | TCP) { with_unread(side, fd, 0, 1500000); }
CASE(with_much_for_both, WARM | TCP) { with_unread(side, fd, 1200000, 1300000); }

CASE(in_the_middle_of_a_message, WARM | V6) {
    if (side == CLIENT) {
        send_numbered(fd, 60000, 0, 60000);
        meet(side, 10);
        send_numbered(fd, 60000, 60000, 60000);
    } else {
        receive_numbered(fd, 1234, 0);
        bring_back(fd);
        meet(side, 10);
        receive_numbered(fd, 120000 - 1234, 1234);
        note("all is there");
    }
}

// Both sides at the same time.
CASE(both_want_it, WARM | RACE) {
    send_numbered(fd, 100000, 0, 700);
    meet(side, 10);
    bring_back(fd);
    receive_numbered(fd, 100000, 0);
    send_numbered(fd, 50000, 1, 500);
    receive_numbered(fd, 50000, 1);
    note("all is there");
}

// The peer sleeps in a call while the connection returns to the kernel.
static void while_the_peer_sleeps(enum side side, int fd, void (*wait)(int fd)) {
    if (side == CLIENT) {
        meet(side, 10);
        wait(fd);
        receive_numbered(fd, 10, 0);
        send_numbered(fd, 10, 5, 10);
    } else {
        meet(side, 10);
        sleep_ms(30);
        bring_back(fd);
        sleep_ms(10);
        send_numbered(fd, 10, 0, 10);
        receive_numbered(fd, 10, 5);
        note("there and back");
    }
}

static void wait_nowhere(int fd) { (void)fd; }
static void wait_in_poll(int fd) {
    struct pollfd asked = {.fd = fd, .events = POLLIN};
    TRY(poll(&asked, 1, PATIENCE_MS));
}
static void wait_in_select(int fd) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    TRY(select(fd + 1, &set, NULL, NULL, NULL));
}
static void wait_in_epoll(int fd, unsigned events) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = events, .data.u64 = 17};
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "it is registered");
    struct epoll_event found;
    TRY(epoll_wait(epoll, &found, 1, PATIENCE_MS));
    note("%s, %d", events_text(found.events), (int)found.data.u64);
    close(epoll);
}
static void wait_level(int fd) { wait_in_epoll(fd, EPOLLIN); }
static void wait_edge(int fd) { wait_in_epoll(fd, EPOLLIN | EPOLLET); }
static void wait_once(int fd) { wait_in_epoll(fd, EPOLLIN | EPOLLONESHOT); }
static void wait_exclusive(int fd) { wait_in_epoll(fd, EPOLLIN | EPOLLEXCLUSIVE); }

CASE(under_recv, WARM | V6) { while_the_peer_sleeps(side, fd, wait_nowhere); }
CASE(under_poll, WARM | V6) { while_the_peer_sleeps(side, fd, wait_in_poll); }
CASE(under_select, WARM) { while_the_peer_sleeps(side, fd, wait_in_select); }
CASE(under_epoll, WARM | V6) { while_the_peer_sleeps(side, fd, wait_level); }
CASE(under_edge_triggered_epoll, WARM) { while_the_peer_sleeps(side, fd, wait_edge); }
CASE(under_one_shot_epoll, WARM) { while_the_peer_sleeps(side, fd, wait_once); }
CASE(under_exclusive_epoll, WARM) { while_the_peer_sleeps(side, fd, wait_exclusive); }

// Registered before, deleted, disarmed: the state that the kernel needs afterwards.
CASE(registrations_go_back, WARM) {
    if (side == CLIENT) {
        for (int point = 10; point <= 13; point++) {
            meet(side, point);
            if (point > 10)
                send_numbered(fd, 10, 0, 10);
        }
        meet(side, 14);
        return;
    }
    int epoll = epoll_create1(0), copy = dup(fd);
    struct epoll_event level = {.events = EPOLLIN, .data.u64 = 1};
    struct epoll_event once = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 2};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &level));
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, copy, &once));
    note_events("nothing yet", epoll, 0);
    meet(side, 10);
    meet(side, 11);
    await_bytes(fd, 10);
    note_events("both", epoll, 100);
    note_events("the one that stays", epoll, 100);
    bring_back(fd);
    note_events("the one that stays, in the kernel", epoll, 100);
    TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, copy, &once));
    note_events("both again", epoll, 100);
    TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
    note_events("none", epoll, 20);
    receive_numbered(fd, 10, 0);
    meet(side, 12);
    await_bytes(fd, 10);
    note_events("none: disarmed", epoll, 20);
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &level));
    note_events("the level", epoll, 100);
    meet(side, 13);
    meet(side, 14);
}

CASE(a_deleted_registration_stays_deleted, WARM) {
    if (side == CLIENT) {
        meet(side, 10);
        send_numbered(fd, 10, 0, 10);
        meet(side, 11);
        return;
    }
    int epoll = epoll_create1(0);
    struct epoll_event level = {.events = EPOLLIN, .data.u64 = 1};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &level));
    TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
    bring_back(fd);
    TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
    meet(side, 10);
    await_bytes(fd, 10);
    note_events("none", epoll, 20);
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &level));
    note_events("one", epoll, 100);
    meet(side, 11);
}

// Halves that were shut down are also shut down in the kernel.
CASE(after_the_sending_half_was_shut, WARM | V6) {
    if (side == CLIENT) {
        send_numbered(fd, 5000, 0, 100);
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 10);
        meet(side, 11);
        receive_numbered(fd, 100, 3);
        bring_back(fd);
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    } else {
        meet(side, 10);
        bring_back(fd);
        receive_numbered(fd, 5000, 0);
        char byte;
        TRY(recv(fd, &byte, 1, 0));
        send_numbered(fd, 100, 3, 100);
        meet(side, 11);
    }
}

CASE(after_the_peer_has_closed, WARM | V6) {
    if (side == CLIENT) {
        meet(side, 10);
        close(fd);
        meet(side, 11);
    } else {
        meet(side, 10);
        meet(side, 11);
        bring_back(fd);
        char byte;
        TRY(recv(fd, &byte, 1, 0));
    }
}

CASE(options_go_back, WARM) {
    meet(side, 10);
    if (side == SERVER) {
        int on = 1, low_water = 100;
        TRY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
        TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof low_water));
        bring_back(fd);
        socklen_t length = sizeof on;
        on = low_water = 0;
        TRY(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &length));
        TRY(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, &length));
        note("%d %d", on != 0, low_water);
    }
    meet(side, 11);
}

CASE(urgent_data_comes_back, WARM | V6 | TCP) {
    if (side == CLIENT) {
        send_numbered(fd, 3000, 0, 100);
        TRY(send(fd, "!", 1, MSG_OOB));
        send_numbered(fd, 3000, 3000, 100);
        meet(side, 10);
        return;
    }
    receive_numbered(fd, 3000, 0);
    await_events(fd, POLLPRI);
    char urgent;
    TRY(recv(fd, &urgent, 1, MSG_OOB));
    note("%c", urgent);
    receive_numbered(fd, 3000, 3000);
    meet(side, 10);
}

// Traffic in both directions at once, during which either side returns the connection to the kernel
// from time to time, after which it leaves the kernel again.
struct direction {
    int fd;
    enum side side;
    size_t bytes;
};

static void *sends(void *argument) {
    struct direction *it = argument;
    static unsigned char bytes[1 << 16];
    unsigned seed = it->side + 1;
    for (size_t from = 0; from < it->bytes;) {
        size_t count = rand_r(&seed) % 97 == 0 ? 40000 : 1 + rand_r(&seed) % 3000;
        if (count > it->bytes - from)
            count = it->bytes - from;
        fill_numbered(bytes, count, from);
        ssize_t sent = send(it->fd, bytes, count, 0);
        require(sent > 0, "it can be sent");
        from += sent;
        if (rand_r(&seed) % 301 == 0)
            can_bring_back(it->fd);
    }
    return NULL;
}

static void there_and_back(enum side side, int fd, size_t bytes) {
    struct direction out = {fd, side, bytes};
    pthread_t thread;
    require(pthread_create(&thread, NULL, sends, &out) == 0, "a thread begins");
    receive_numbered(fd, bytes, 0);
    pthread_join(thread, NULL);
    note("all is there");
}

CASE(there_and_back_many_times, WARM | RACE | V6) { there_and_back(side, fd, 8 << 20); }
CASE(there_and_back_from_the_beginning, RACE) { there_and_back(side, fd, 8 << 20); }

// The same as a dialogue, so that it is idle repeatedly.
CASE(there_and_back_in_a_dialogue, WARM | RACE) {
    unsigned seed = side + 1;
    for (size_t round = 0; round < 3000; round++) {
        if (side == CLIENT)
            send_numbered(fd, 20, round, 20);
        receive_numbered(fd, 20, round);
        if (side == SERVER)
            send_numbered(fd, 20, round, 20);
        if (rand_r(&seed) % 101 == 0)
            bring_back(fd);
    }
    note("all is there");
}

// The same with an event loop on one side.
CASE(there_and_back_in_an_event_loop, WARM | RACE) {
    if (side == CLIENT) {
        unsigned seed = 3;
        for (size_t round = 0; round < 3000; round++) {
            send_numbered(fd, 20, round, 20);
            receive_numbered(fd, 20, round);
            if (rand_r(&seed) % 101 == 0)
                bring_back(fd);
        }
        shutdown(fd, SHUT_WR);
        return;
    }
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 17};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    size_t echoed = 0;
    for (;;) {
        require(epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1, "an event");
        for (;;) {
            char bytes[4096];
            ssize_t got = recv(fd, bytes, sizeof bytes, 0);
            if (got < 0 && errno == EAGAIN)
                break;
            require(got >= 0, "it can be received");
            if (got == 0) {
                note("%zu bytes echoed", echoed);
                return;
            }
            require(send(fd, bytes, got, 0) == got, "it can be sent");
            echoed += got;
        }
    }
}
