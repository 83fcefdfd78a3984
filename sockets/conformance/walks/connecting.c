// SPDX-License-Identifier: Apache-2.0 OR MIT
// The connection of a walk: a new one, upgraded by a dialogue that is not in the trace.
#include "walk.h"

// TCP and Unix listeners, and their addresses.
static int listeners[2];
static struct sockaddr_storage addresses[2];
static socklen_t lengths[2];

static void fail(const char *what) {
    perror(what);
    _exit(95);
}

static void listen_at(int which, sa_family_t family, socklen_t length) {
    struct sockaddr_storage *address = addresses + which;
    address->ss_family = family;
    if (family == AF_INET)
        ((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listeners[which] = socket(family, SOCK_STREAM, 0);
    // Without a name, the kernel chooses one for a Unix socket.
    if (bind(listeners[which], (struct sockaddr *)address, length) < 0 ||
        listen(listeners[which], 8) < 0)
        fail("listen");
    lengths[which] = sizeof *address;
    getsockname(listeners[which], (struct sockaddr *)address, lengths + which);
}

void prepare_connections(void) {
    listen_at(0, AF_INET, sizeof(struct sockaddr_in));
    listen_at(1, AF_UNIX, sizeof(sa_family_t));
}

static char exchange_byte(int fd, int side, char own) {
    char other = 0;
    if (side == 1 && send(fd, &own, 1, MSG_NOSIGNAL) != 1)
        fail("dialogue: send");
    if (recv(fd, &other, 1, 0) != 1)
        fail("dialogue: receive");
    if (side == 0 && send(fd, &own, 1, MSG_NOSIGNAL) != 1)
        fail("dialogue: send");
    return other;
}

// Each byte tells whether its sender is accelerated. B ends the dialogue with `e`.
static void warm_up(int fd, int side) {
    int64_t deadline = now_ms() + PATIENCE_MS / 4;
    int are_both = freeport_is_accelerated == NULL;
    for (int round = 0;; round++) {
        int is_own = freeport_is_accelerated && freeport_is_accelerated(fd) == 1;
        int is_last = side == 1 && round >= 8 && (are_both || now_ms() > deadline);
        char other = exchange_byte(fd, side, is_last ? 'e' : is_own ? 'a' : 'p');
        if (is_last || other == 'e')
            break;
        is_own = freeport_is_accelerated && freeport_is_accelerated(fd) == 1;
        are_both = !freeport_is_accelerated || (is_own && other == 'a');
        if (round > 20 && freeport_is_accelerated)
            sched_yield();
    }
}

int connect_end(int side, int is_unix) {
    int fd;
    if (side == 0) {
        fd = accept(listeners[is_unix], NULL, NULL);
    } else {
        fd = socket(is_unix ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)(addresses + is_unix), lengths[is_unix]) < 0)
            fail("connect");
    }
    if (fd < 0)
        fail("socket");
    int one = 1;
    if (!is_unix)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    warm_up(fd, side);
    return fd;
}
