// SPDX-License-Identifier: Apache-2.0 OR MIT
// Repeated connections to the same listener.

#include "again.h"

// A warm-up makes several connections without a pause, so that both sides can agree on the stream
// to share; then one is tried for which the server does not sleep.
#define CONNECTIONS 6
#define TRIALS_PLAIN 2
#define TRIALS_MAX 60

static struct {
    struct sockaddr_storage where;
    socklen_t length;
} there;
static int points = 1000;
static unsigned long proved;

static unsigned long reused(void) {
    return freeport_reused_connections ? freeport_reused_connections() : 0;
}

const struct sockaddr *there_again(socklen_t *length) {
    *length = there.length;
    return (const struct sockaddr *)&there.where;
}

int socket_again(int flags) {
    int fd = socket(there.where.ss_family, SOCK_STREAM | flags, 0);
    require(fd >= 0, "socket");
    return fd;
}

int connect_again(void) {
    int fd = socket_again(0);
    require(connect(fd, (struct sockaddr *)&there.where, there.length) == 0, "connect again");
    return fd;
}

void skip_again(int connections) { points += 2 * connections; }

void meet_again(enum side side) { meet(side, ++points); }

int again(enum side side, int listener) {
    // First lets both sides finish the previous connection.
    meet_again(side);
    points++;
    if (side == CLIENT) {
        int end = connect_again();
        reach(side, points);
        return end;
    }
    await_peer(side, points);
    int end = accept(listener, NULL, NULL);
    require(end >= 0, "accept again");
    return end;
}

void forget_again(void) { proved = reused(); }

void prove_again(enum side side) {
    unsigned long now = reused();
    if (now > proved)
        has_reused(side);
    proved = now;
}

// A connection with a byte each way: the client's tells whether to continue, the server's whether
// the connection was made without the kernel.
static char converse(int end, enum side side, char byte) {
    char other;
    if (side == CLIENT) {
        require(send(end, &byte, 1, MSG_NOSIGNAL) == 1, "again: send");
        require(recv(end, &other, 1, 0) == 1, "again: receive");
        require(close(end) == 0, "again: close");
    } else {
        require(recv(end, &other, 1, 0) == 1, "again: receive");
        require(send(end, &byte, 1, MSG_NOSIGNAL) == 1, "again: send");
        require(recv(end, &byte, 1, 0) == 0, "again: the end");
        require(close(end) == 0, "again: close");
    }
    return other;
}

void warm_up_again(int fd, enum side side, int listener) {
    int preloaded = getenv("CONFORMANCE_PRELOADED") != NULL && freeport_reused_connections;
    char go_on = 'w';
    for (int trial = 0; go_on == 'w'; trial++) {
        for (int i = 0; i < CONNECTIONS; i++)
            converse(side == CLIENT ? connect_again() : accept(listener, NULL, NULL), side, 'w');
        unsigned long before = reused();
        int end = again(side, listener);
        char is_reused = reused() > before ? 'r' : 'k';
        char theirs = converse(end, side, is_reused);
        if (side == CLIENT) {
            int both = is_reused == 'r' && theirs == 'r';
            int done = trial + 1 >= (preloaded ? TRIALS_MAX : TRIALS_PLAIN) || (preloaded && both);
            go_on = done ? 's' : 'w';
            require(send(fd, &go_on, 1, 0) == 1, "again: goes on");
        } else {
            require(recv(fd, &go_on, 1, 0) == 1, "again: goes on");
        }
    }
    proved = reused();
}

int begin_again(int fd, enum side side) {
    int listener = -1;
    if (side == SERVER) {
        listener = listen_here(&there.where, &there.length);
        require(send_all(fd, &there, sizeof there) == sizeof there, "tells where");
    } else {
        require(receive_all(fd, &there, sizeof there) == sizeof there, "is told where");
    }
    warm_up_again(fd, side, listener);
    return listener;
}

void exchange(int fd, enum side side, const char *words) {
    char in[1000];
    size_t length = strlen(words);
    if (side == CLIENT) {
        TRY(send(fd, words, length, MSG_NOSIGNAL));
        ssize_t got = recv(fd, in, length, MSG_WAITALL);
        note_bytes("answer", in, got > 0 ? got : 0);
    } else {
        ssize_t got = recv(fd, in, length, MSG_WAITALL);
        note_bytes("words", in, got > 0 ? got : 0);
        TRY(send(fd, words, length, MSG_NOSIGNAL));
    }
}

void close_again(int fd, enum side side) {
    char byte;
    if (side == SERVER)
        TRY(recv(fd, &byte, 1, 0));
    TRY(close(fd));
}
