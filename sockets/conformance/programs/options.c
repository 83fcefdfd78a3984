// SPDX-License-Identifier: Apache-2.0 OR MIT
// Options of connections: values read back as Linux reports them, and take effect.

#include "case.h"

#include <sys/time.h>

static char in[100000];

static void note_option(int fd, int level, int option, const char *name) {
    int value = -12345;
    socklen_t length = sizeof value;
    int result = getsockopt(fd, level, option, &value, &length);
    note("%s: %d, length %u, value %d %s", name, result, length, value,
         result < 0 ? strerrorname_np(errno) : "");
}

#define NOTE_OPTION(level, option) note_option(fd, level, option, #option)

CASE(options_that_are_set_read_back, WARM | V6) {
    static const struct {
        int level, option, value;
        const char *name;
    } settings[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"},
        {IPPROTO_TCP, TCP_NODELAY, 0, "TCP_NODELAY"},
        {IPPROTO_TCP, TCP_CORK, 1, "TCP_CORK"},
        {IPPROTO_TCP, TCP_CORK, 0, "TCP_CORK"},
        {IPPROTO_TCP, TCP_KEEPIDLE, 33, "TCP_KEEPIDLE"},
        {IPPROTO_TCP, TCP_KEEPINTVL, 11, "TCP_KEEPINTVL"},
        {IPPROTO_TCP, TCP_KEEPCNT, 7, "TCP_KEEPCNT"},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 5000, "TCP_USER_TIMEOUT"},
        {IPPROTO_TCP, TCP_QUICKACK, 1, "TCP_QUICKACK"},
        {SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE"},
        {SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"},
        {SOL_SOCKET, SO_RCVBUF, 50000, "SO_RCVBUF"},
        {SOL_SOCKET, SO_SNDBUF, 60000, "SO_SNDBUF"},
        {SOL_SOCKET, SO_RCVLOWAT, 1, "SO_RCVLOWAT"},
        {SOL_SOCKET, SO_PRIORITY, 3, "SO_PRIORITY"},
        {SOL_SOCKET, SO_OOBINLINE, 1, "SO_OOBINLINE"},
        {SOL_SOCKET, 9999, 1, "no option"},
        {9999, 1, 1, "no level"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        int value = settings[i].value;
        errno = 0;
        int result =
            setsockopt(fd, settings[i].level, settings[i].option, &value, sizeof value);
        note("set %s: %d %s", settings[i].name, result, errno ? strerrorname_np(errno) : "");
        note_option(fd, settings[i].level, settings[i].option, settings[i].name);
    }
    int one = 1;
    TRY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, 1));
    TRY(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, (void *)8, sizeof one));
    meet(side, 1);
}

CASE(what_options_say_of_a_connection, WARM | V6) {
    NOTE_OPTION(SOL_SOCKET, SO_TYPE);
    NOTE_OPTION(SOL_SOCKET, SO_ERROR);
    NOTE_OPTION(SOL_SOCKET, SO_ACCEPTCONN);
    NOTE_OPTION(SOL_SOCKET, SO_DOMAIN);
    NOTE_OPTION(SOL_SOCKET, SO_PROTOCOL);
    NOTE_OPTION(SOL_SOCKET, SO_KEEPALIVE);
    NOTE_OPTION(SOL_SOCKET, SO_BROADCAST);
    NOTE_OPTION(IPPROTO_TCP, TCP_NODELAY);
    NOTE_OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT);
    struct linger linger = {-1, -1};
    socklen_t length = sizeof linger;
    TRY(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length));
    note("linger: %d %d", linger.l_onoff, linger.l_linger);
    struct tcp_info information = {0};
    length = sizeof information;
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &information, &length));
    note("state: %d", information.tcpi_state);
    char name[16];
    length = sizeof name;
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length));
    length = 2;
    short cut = -1;
    TRY(getsockopt(fd, SOL_SOCKET, SO_TYPE, &cut, &length));
    note("cut to %u bytes: %d", length, cut);
    meet(side, 1);
}

CASE(names_of_both_ends_agree, WARM | V6) {
    struct sockaddr_storage here, there, listening;
    socklen_t length = sizeof here, other = sizeof there, known;
    memset(&here, 0, sizeof here);
    memset(&there, 0, sizeof there);
    TRY(getsockname(fd, (struct sockaddr *)&here, &length));
    TRY(getpeername(fd, (struct sockaddr *)&there, &other));
    note("lengths %u %u, families %d %d", length, other, here.ss_family == family(),
         there.ss_family == family());
    memset(&listening, 0, sizeof listening);
    memcpy(&listening, address(&known), length);
    note("the server's address: %d", memcmp(side == SERVER ? &here : &there, &listening, 8) == 0);
    length = 4;
    TRY(getsockname(fd, (struct sockaddr *)&here, &length));
    note("length asked for by 4 bytes: %u", length);
    length = -1;
    TRY(getpeername(fd, (struct sockaddr *)&there, &length));
    meet(side, 1);
}

static void set_time(int fd, int option, long milliseconds) {
    struct timeval time = {milliseconds / 1000, milliseconds % 1000 * 1000};
    require(setsockopt(fd, SOL_SOCKET, option, &time, sizeof time) == 0, "setsockopt");
    socklen_t length = sizeof time;
    require(getsockopt(fd, SOL_SOCKET, option, &time, &length) == 0, "getsockopt");
    // The kernel counts in ticks.
    note("time: %d", labs(time.tv_sec * 1000 + time.tv_usec / 1000 - milliseconds) <= 10);
}

CASE(receiving_times_out, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        await_peer(side, 1);
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        return;
    }
    set_time(fd, SO_RCVTIMEO, 60);
    int64_t begin = now_ms();
    TRY(recv(fd, in, 10, 0));
    note("it took long enough: %d", now_ms() - begin >= 50);
    TRY(read(fd, in, 10));
    TRY(recv(fd, in, 10, MSG_PEEK));
    struct iovec part = {in, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    TRY(recvmsg(fd, &message, 0));
    set_time(fd, SO_RCVTIMEO, 1500);
    reach(side, 1);
    // The bytes present at the timeout are returned.
    TRY(recv(fd, in, 10, MSG_WAITALL));
    note_bytes("received", in, 4);
    set_time(fd, SO_RCVTIMEO, 0);
    meet(side, 2);
}

CASE(sending_times_out, WARM | V6) {
    if (side == CLIENT) {
        fill_up(fd);
        set_time(fd, SO_SNDTIMEO, 60);
        int64_t begin = now_ms();
        TRY(send(fd, in, 10, 0));
        note("it took long enough: %d", now_ms() - begin >= 50);
        reach(side, 1);
        await_peer(side, 1);
        await_events(fd, POLLOUT);
        TRY(send(fd, in, 10, 0));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    drain(fd);
    reach(side, 1);
    TRY(recv(fd, in, 10, MSG_WAITALL));
    meet(side, 2);
}

CASE(small_buffers_before_the_connection, BARE | WARM) {
    // Small buffers set before the connection still accept everything, bit by bit.
    int size = 4096;
    if (side == SERVER) {
        TRY(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
        int end = TRY_OK(accept(fd, NULL, NULL));
        warm_up(end, side);
        TRY(receive_all(end, in, sizeof in));
        note_bytes("received", in, sizeof in);
        return;
    }
    int end = socket(family(), SOCK_STREAM, 0);
    TRY(setsockopt(end, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
    socklen_t length;
    const struct sockaddr *there = address(&length);
    TRY(connect(end, there, length));
    warm_up(end, side);
    fill(in, sizeof in, 1);
    TRY(send(end, in, sizeof in, 0));
    note_option(end, SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF");
}

CASE(corked_data_arrives_when_uncorked, WARM | TCP) {
    int on = 1, off = 0;
    if (side == CLIENT) {
        TRY(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &on, sizeof on));
        TRY(send(fd, "head ", 5, 0));
        TRY(send(fd, "body", 4, 0));
        TRY(setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off));
    } else {
        TRY(recv(fd, in, 9, MSG_WAITALL));
        note_bytes("received", in, 9);
    }
    meet(side, 1);
}

CASE(a_low_water_mark_of_receiving, WARM) {
    int mark = 100;
    if (side == CLIENT) {
        TRY(send(fd, in, 40, 0));
        meet(side, 1);
        meet(side, 2);
        TRY(send(fd, in, 60, 0));
        meet(side, 3);
        return;
    }
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark));
    await_bytes(fd, 40);
    meet(side, 1);
    note_poll("below the mark", fd);
    TRY(recv(fd, in, 1000, MSG_DONTWAIT));
    meet(side, 2);
    await_bytes(fd, 60);
    TRY(recv(fd, in, 10, MSG_DONTWAIT | MSG_PEEK));
    meet(side, 3);
}
