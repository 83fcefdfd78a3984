// SPDX-License-Identifier: Apache-2.0 OR MIT
// How a connection ends for the peer of a process that ends in one of many ways, with and without
// unread bytes, and with and without bytes sent.

#include "case.h"

#include <sys/prctl.h>

static char in[1000];

enum end { BY_CLOSE, BY_EXIT, BY_UNDERSCORE_EXIT, BY_KILL, BY_EXEC, BY_LINGER, BY_LINGER_AND_EXIT,
           BY_SHUTDOWN };

// First operation of the other side after the connection has ended.
enum then { READS, WRITES, ASKS };

// Location of the unread bytes.
enum place { NOWHERE, IN_KERNEL, IN_RING, IN_BOTH };

static void linger_for_no_time(int fd) {
    struct linger linger = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

static void end_by(enum end end, int fd) {
    switch (end) {
    case BY_LINGER:
        linger_for_no_time(fd);
        // fall through
    case BY_CLOSE:
        close(fd);
        _exit(0);
    case BY_SHUTDOWN:
        shutdown(fd, SHUT_RDWR);
        close(fd);
        _exit(0);
    case BY_LINGER_AND_EXIT:
        linger_for_no_time(fd);
        // fall through
    case BY_EXIT:
        exit(0);
    case BY_UNDERSCORE_EXIT:
        _exit(0);
    case BY_KILL:
        kill(getpid(), SIGKILL);
        break;
    case BY_EXEC:
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        execl("/bin/true", "true", NULL);
    }
    _exit(9);
}

// Bytes are sent without delay.
static void do_not_delay(int fd) {
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

// The upgrade while bytes sent before it are still unread.
static void upgrade_with_unread(int fd, enum side side, const char *unread) {
    if (side == CLIENT)
        require(send(fd, unread, strlen(unread), 0) > 0, "send");
    for (int i = 0; i < 24; i++) {
        if (side == SERVER) {
            require(send(fd, "x", 1, 0) == 1, "send");
            sleep_ms(1);
        } else {
            require(recv(fd, in, 1, 0) == 1, "receive");
        }
    }
}

static void end_one(int fd, enum end end, enum place place, int sends) {
    do_not_delay(fd);
    if (place == IN_KERNEL || place == IN_BOTH)
        upgrade_with_unread(fd, SERVER, "early");
    else
        warm_up(fd, SERVER);
    int unread = (place == IN_KERNEL || place == IN_BOTH ? 5 : 0) + (place >= IN_RING ? 4 : 0);
    await_bytes(fd, unread);
    if (sends)
        require(send(fd, "last words", 10, 0) == 10, "send");
    end_by(end, fd);
}

static void see_end(int fd, enum then then) {
    await_events(fd, POLLRDHUP);
    sleep_ms(3);
    if (then == ASKS) {
        note_poll("asked", fd);
        int error = -1;
        socklen_t length = sizeof error;
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
        note("error: %s", error > 0 ? strerrorname_np(error) : error ? "?" : "none");
    }
    if (then == WRITES) {
        TRY(send(fd, "data", 4, MSG_NOSIGNAL));
        sleep_ms(3);
    }
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, 0));
    note_poll("read", fd);
    TRY(send(fd, "data", 4, MSG_NOSIGNAL));
    sleep_ms(3);
    TRY(send(fd, "data", 4, MSG_NOSIGNAL));
    note_poll("written", fd);
}

static void end_all(enum end end, int fd, enum side side) {
    static const char *then_text[] = {"reads", "writes", "asks"};
    static const char *place_text[] = {"nowhere", "in the kernel", "in the ring", "in both"};
    int point = 0;
    for (enum place place = NOWHERE; place <= IN_BOTH; place++) {
        for (int sends = 0; sends < 2; sends++) {
            for (enum then then = READS; then <= ASKS; then++, point += 2) {
                if (side == SERVER) {
                    pid_t child = fork();
                    if (child == 0) {
                        int accepted = accept(fd, NULL, NULL);
                        close(fd);
                        end_one(accepted, end, place, sends);
                    }
                    waitpid(child, NULL, 0);
                    reach(side, point + 1);
                    continue;
                }
                int one = connect_there();
                do_not_delay(one);
                note("unread %s, %s, then who %s", place_text[place],
                     sends ? "something sent" : "nothing sent", then_text[then]);
                if (place == IN_KERNEL || place == IN_BOTH)
                    upgrade_with_unread(one, side, "early");
                else
                    warm_up(one, side);
                if (place >= IN_RING)
                    require(send(one, "late", 4, 0) == 4, "send");
                await_peer(side, point + 1);
                see_end(one, then);
                close(one);
            }
        }
    }
}

CASE(by_close, BARE | V6) { end_all(BY_CLOSE, fd, side); }
CASE(by_exit, BARE) { end_all(BY_EXIT, fd, side); }
CASE(by_underscore_exit, BARE) { end_all(BY_UNDERSCORE_EXIT, fd, side); }
CASE(by_a_signal, BARE) { end_all(BY_KILL, fd, side); }
CASE(by_another_program, BARE) { end_all(BY_EXEC, fd, side); }
CASE(by_lingering_for_no_time, BARE) { end_all(BY_LINGER, fd, side); }
CASE(by_lingering_for_no_time_and_exit, BARE) { end_all(BY_LINGER_AND_EXIT, fd, side); }
// This makes half-upgraded Unix sockets return to the kernel, which takes the peer's time.
CASE(by_shutdown, BARE | TCP) { end_all(BY_SHUTDOWN, fd, side); }
