// SPDX-License-Identifier: Apache-2.0 OR MIT
// Establishing connections: all forms of accept and connect, and their failures.

#include "case.h"

#include <arpa/inet.h>
#include <netdb.h>

static char in[1000];

// A dialogue that shows that both ends work.
static void talk(int fd, enum side side) {
    warm_up(fd, side);
    if (side == CLIENT) {
        TRY(send(fd, "hello", 5, 0));
        TRY(recv(fd, in, 5, MSG_WAITALL));
    } else {
        TRY(recv(fd, in, 5, MSG_WAITALL));
        TRY(send(fd, "world", 5, 0));
    }
    note_bytes("received", in, 5);
}

CASE(accepted_with_an_address, BARE | WARM | V6 | MIXED) {
    if (side == CLIENT) {
        int end = connect_there();
        talk(end, side);
        return;
    }
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    int end = TRY(accept(fd, (struct sockaddr *)&from, &length));
    note("length %u, family %d", length, from.ss_family);
    note("flags %#x, close on exec %d", fcntl(end, F_GETFL), fcntl(end, F_GETFD));
    talk(end, side);
}

CASE(accepted_with_flags, BARE | WARM) {
    if (side == CLIENT) {
        for (int i = 0; i < 3; i++)
            talk(connect_there(), side);
        return;
    }
    static const int flags[] = {SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC};
    for (int i = 0; i < 3; i++) {
        int end = TRY(accept4(fd, NULL, NULL, flags[i]));
        note("flags %#x, close on exec %d", fcntl(end, F_GETFL), fcntl(end, F_GETFD));
        TRY(recv(end, in, 5, MSG_DONTWAIT | MSG_PEEK) != 0);
        set_blocking(end, 1);
        talk(end, side);
    }
    TRY(accept4(fd, NULL, NULL, 12345));
}

CASE(accept_without_blocking, BARE | WARM) {
    if (side == SERVER) {
        set_blocking(fd, 0);
        TRY(accept(fd, NULL, NULL));
        note_poll("nobody", fd);
        reach(side, 1);
        struct pollfd asked = {fd, POLLIN, 0};
        TRY(poll(&asked, 1, PATIENCE_MS));
        note("%s", events_text(asked.revents));
        int end = TRY(accept(fd, NULL, NULL));
        note("flags %#x", fcntl(end, F_GETFL));
        TRY(accept(fd, NULL, NULL));
        talk(end, side);
        return;
    }
    await_peer(side, 1);
    talk(connect_there(), side);
}

CASE(connected_without_blocking, BARE | WARM | V6 | MIXED) {
    if (side == SERVER) {
        talk(accept(fd, NULL, NULL), side);
        return;
    }
    socklen_t length;
    const struct sockaddr *there = address(&length);
    int end = TRY(socket(family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    int result = connect(end, there, length);
    note("connect: %d", result == 0 || errno == EINPROGRESS);
    struct pollfd asked = {end, POLLOUT, 0};
    TRY(poll(&asked, 1, PATIENCE_MS));
    note("%s", events_text(asked.revents));
    int error = -1;
    length = sizeof error;
    TRY(getsockopt(end, SOL_SOCKET, SO_ERROR, &error, &length));
    note("error %d", error);
    there = address(&length);
    TRY(connect(end, there, length) == 0 || errno == EISCONN);
    set_blocking(end, 1);
    talk(end, side);
}

CASE(refused, COLD | V6) {
    struct sockaddr_storage where;
    socklen_t length, bytes = sizeof(int);
    int listening = listen_here(&where, &length), error = -1;
    TRY(close(listening));
    int end = socket(family(), SOCK_STREAM, 0);
    TRY(connect(end, (struct sockaddr *)&where, length));
    TRY(getsockopt(end, SOL_SOCKET, SO_ERROR, &error, &bytes));
    note("error %d", error);
    TRY(send(end, "x", 1, MSG_NOSIGNAL));
    TRY(recv(end, in, 1, 0));
    note_poll("refused", end);
    int other = socket(family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
    int result = connect(other, (struct sockaddr *)&where, length);
    note("connect: %d", result < 0 && (errno == EINPROGRESS || errno == ECONNREFUSED));
    if (errno == EINPROGRESS) {
        await_events(other, POLLERR);
        note_poll("refused", other);
        TRY(getsockopt(other, SOL_SOCKET, SO_ERROR, &error, &bytes));
        note("error %s", error ? strerrorname_np(error) : "none");
    }
    TRY(close(end));
    TRY(close(other));
    meet(side, 1);
}

CASE(sockets_that_cannot_be, TCP) {
    TRY(socket(AF_INET, 77, 0));
    TRY(socket(12345, SOCK_STREAM, 0));
    TRY(socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
    int pair[2];
    TRY(socketpair(AF_INET, SOCK_STREAM, 0, pair));
    int end = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in strange = {.sin_family = AF_INET};
    strange.sin_addr.s_addr = inet_addr("203.0.113.1");
    TRY(bind(end, (struct sockaddr *)&strange, sizeof strange));
    TRY(bind(end, (struct sockaddr *)&strange, 3));
    strange.sin_family = 12345;
    TRY(bind(end, (struct sockaddr *)&strange, sizeof strange));
    TRY(connect(end, (struct sockaddr *)&strange, sizeof strange));
    TRY(connect(end, (struct sockaddr *)&strange, 2));
    TRY(connect(end, NULL, sizeof strange));
}

CASE(a_port_in_use, COLD | V6) {
    struct sockaddr_storage where;
    socklen_t length;
    int one = listen_here(&where, &length), on = 1;
    int other = socket(family(), SOCK_STREAM, 0);
    TRY(bind(other, (struct sockaddr *)&where, length));
    TRY(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
    TRY(bind(other, (struct sockaddr *)&where, length));
    TRY(listen(one, 3));
    TRY(close(one));
    TRY(bind(other, (struct sockaddr *)&where, length));
    TRY(listen(other, 3));
}

CASE(waiting_connections, BARE | WARM | RACE) {
    // Connections that have sent, and even ended, before they are accepted.
    if (side == CLIENT) {
        int ends[4];
        for (int i = 0; i < 4; i++) {
            ends[i] = connect_there();
            TRY(send(ends[i], "abcd" + i, 1, 0));
        }
        TRY(close(ends[1]));
        meet(side, 1);
        talk(ends[0], side);
        for (int i = 2; i < 4; i++)
            talk(ends[i], side);
        return;
    }
    meet(side, 1);
    for (int i = 0; i < 4; i++) {
        int end = accept(fd, NULL, NULL);
        TRY(recv(end, in, 1, 0));
        note_bytes("received", in, 1);
        if (i != 1)
            talk(end, side);
        else
            TRY(recv(end, in, 10, 0));
    }
}

CASE(hundreds_of_short_connections, BARE | RACE | V6 | MIXED) {
    for (int i = 0; i < 200; i++) {
        int end = side == CLIENT ? connect_there() : accept(fd, NULL, NULL);
        if (side == CLIENT) {
            require(send(end, "short", 5, 0) == 5, "send");
            require(recv(end, in, 5, MSG_WAITALL) == 5, "receive");
        } else {
            require(recv(end, in, 5, MSG_WAITALL) == 5, "receive");
            require(send(end, "short", 5, 0) == 5, "send");
        }
        require(end < 10 && close(end) == 0, "close");
    }
    note("done");
}

CASE(fifty_connections_of_middle_length, BARE | RACE | MIXED) {
    // About the length at which connections are upgraded: some are, some are not.
    for (int i = 0; i < 50; i++) {
        int end = side == CLIENT ? connect_there() : accept(fd, NULL, NULL);
        for (int j = 0; j < 6 + i % 10; j++) {
            char line[600];
            size_t length = 1 + i * j % sizeof line;
            fill(line, length, i + j);
            if (side == CLIENT) {
                require(send(end, line, length, 0) == (ssize_t)length, "send");
                require(recv(end, in, length, MSG_WAITALL) == (ssize_t)length, "receive");
            } else {
                require(recv(end, in, length, MSG_WAITALL) == (ssize_t)length, "receive");
                require(send(end, in, length, 0) == (ssize_t)length, "send");
            }
            require(memcmp(in, line, length) == 0, "the bytes");
        }
        close(end);
    }
    note("done");
}

CASE(both_ends_in_one_process, COLD | V6) {
    struct sockaddr_storage where;
    socklen_t length;
    int listening = listen_here(&where, &length);
    int one = socket(family(), SOCK_STREAM, 0);
    TRY(connect(one, (struct sockaddr *)&where, length));
    int other = accept(listening, NULL, NULL);
    for (int i = 0; i < 50; i++) {
        require(send(one, "ping", 4, 0) == 4 && recv(other, in, 4, 0) == 4, "one way");
        require(send(other, "pong", 4, 0) == 4 && recv(one, in, 4, 0) == 4, "the other way");
    }
    TRY(close(one));
    TRY(recv(other, in, 4, 0));
}

CASE(named_hosts, TCP) {
    // The C library's resolver opens sockets of its own.
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *found;
    TRY(getaddrinfo("127.0.0.1", "80", &hints, &found));
    TRY(found->ai_family);
    freeaddrinfo(found);
    hints.ai_flags = 0;
    TRY(getaddrinfo("localhost", NULL, &hints, &found) == 0);
}

CASE(other_kinds_of_sockets, TCP) {
    int pair[2];
    TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    for (int i = 0; i < 30; i++) {
        require(send(pair[0], "ping", 4, 0) == 4 && recv(pair[1], in, 10, 0) == 4, "one way");
        require(write(pair[1], "pong", 4) == 4 && read(pair[0], in, 10) == 4, "the other way");
    }
    TRY(shutdown(pair[0], SHUT_WR));
    TRY(recv(pair[1], in, 10, 0));
    int one = socket(family(), SOCK_DGRAM, 0), other = socket(family(), SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof here;
    TRY(bind(one, (struct sockaddr *)&here, length));
    TRY(getsockname(one, (struct sockaddr *)&here, &length));
    for (int i = 0; i < 30; i++) {
        require(sendto(other, "datagram", 8, 0, (struct sockaddr *)&here, length) == 8, "sendto");
        require(recv(one, in, sizeof in, 0) == 8, "recv");
    }
    TRY(sendto(other, "", 0, 0, (struct sockaddr *)&here, length));
    TRY(recv(one, in, sizeof in, 0));
    TRY(sendto(other, "cut", 3, 0, (struct sockaddr *)&here, length));
    TRY(recv(one, in, 2, MSG_TRUNC));
}
