// SPDX-License-Identifier: Apache-2.0 OR MIT
// Signals while a call blocks: some calls are restarted, others return, and no byte is lost.

#include "case.h"

#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>

static char in[300000];
static volatile sig_atomic_t signals;
static volatile int interrupted_fd;

static void count_signal(int number) {
    (void)number;
    signals++;
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    require(sigaction(number, &action, NULL) == 0, "sigaction");
}

// A SIGALRM after `milliseconds`, repeated every `again` milliseconds unless that is 0.
static void alarm_in(long milliseconds, long again) {
    struct itimerval timer = {{0, again * 1000}, {0, milliseconds * 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

// A call that is interrupted repeatedly, because it may not block yet at the first signal.
#define INTERRUPT(call)                                                                            \
    do {                                                                                           \
        signals = 0;                                                                               \
        alarm_in(20, 20);                                                                          \
        TRY(call);                                                                                 \
        alarm_in(0, 0);                                                                            \
        note("signalled: %d", signals > 0);                                                        \
    } while (0)

CASE(receiving_is_interrupted, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        await_peer(side, 1);
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        return;
    }
    struct iovec part = {in, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    handle(SIGALRM, count_signal, 0);
    INTERRUPT(recv(fd, in, 10, 0));
    INTERRUPT(read(fd, in, 10));
    INTERRUPT(readv(fd, &part, 1));
    INTERRUPT(recvmsg(fd, &message, 0));
    INTERRUPT(recv(fd, in, 10, MSG_PEEK));
    reach(side, 1);
    TRY(recv(fd, in, 10, 0));
    note_bytes("received", in, 4);
    meet(side, 2);
}

CASE(receiving_is_restarted, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(60);
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        return;
    }
    handle(SIGALRM, count_signal, SA_RESTART);
    reach(side, 1);
    INTERRUPT(recv(fd, in, 10, 0));
    note_bytes("received", in, 4);
    meet(side, 2);
}

CASE(receiving_with_a_time_is_never_restarted, WARM) {
    struct timeval time = {5, 0};
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    handle(SIGALRM, count_signal, SA_RESTART);
    INTERRUPT(recv(fd, in, 10, 0));
    meet(side, 1);
}

CASE(waitall_is_interrupted, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 4);
    handle(SIGALRM, count_signal, 0);
    INTERRUPT(recv(fd, in, 10, MSG_WAITALL));
    note_bytes("received", in, 4);
    INTERRUPT(recv(fd, in, 10, MSG_WAITALL));
    meet(side, 1);
}

CASE(sending_is_interrupted, WARM | V6) {
    if (side == CLIENT) {
        fill_up(fd);
        handle(SIGALRM, count_signal, 0);
        INTERRUPT(send(fd, in, 10, 0));
        fill_up(fd);
        INTERRUPT(write(fd, in, 10));
        reach(side, 1);
        await_peer(side, 1);
        await_events(fd, POLLOUT);
        TRY(send(fd, "after", 5, 0));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    drain(fd);
    reach(side, 1);
    TRY(recv(fd, in, 5, MSG_WAITALL));
    note_bytes("received", in, 5);
    meet(side, 2);
}

CASE(sending_is_restarted, WARM) {
    if (side == CLIENT) {
        fill_up(fd);
        handle(SIGALRM, count_signal, SA_RESTART);
        reach(side, 1);
        INTERRUPT(send(fd, "after", 5, 0));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    sleep_ms(50);
    drain(fd);
    meet(side, 2);
}

CASE(polling_is_interrupted_even_with_restart, WARM | V6 | MIXED) {
    handle(SIGALRM, count_signal, SA_RESTART);
    struct pollfd asked = {fd, POLLIN, 0};
    INTERRUPT(poll(&asked, 1, PATIENCE_MS));
    INTERRUPT(ppoll(&asked, 1, NULL, NULL));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    INTERRUPT(select(fd + 1, &set, NULL, NULL, NULL));
    INTERRUPT(pselect(fd + 1, &set, NULL, NULL, NULL, NULL));
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    INTERRUPT(epoll_wait(epoll, &event, 1, -1));
    INTERRUPT(epoll_pwait(epoll, &event, 1, PATIENCE_MS, NULL));
    meet(side, 1);
}

CASE(accepting_is_interrupted, COLD) {
    int listening = listen_here(NULL, NULL);
    handle(SIGALRM, count_signal, 0);
    INTERRUPT(accept(listening, NULL, NULL));
    meet(side, 1);
}

static void send_from_handler(int number) {
    (void)number;
    int saved = errno;
    if (send(interrupted_fd, "from the handler", 16, MSG_DONTWAIT | MSG_NOSIGNAL) == 16)
        signals++;
    errno = saved;
}

CASE(a_handler_sends_on_the_connection_that_waits, WARM | RACE) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 16, MSG_WAITALL));
        note_bytes("received", in, 16);
        TRY(send(fd, "data", 4, 0));
        meet(side, 1);
        return;
    }
    interrupted_fd = fd;
    handle(SIGALRM, send_from_handler, SA_RESTART);
    INTERRUPT(recv(fd, in, 10, 0));
    note("sent by the handler: %d", signals > 0);
    meet(side, 1);
}

static void receive_in_handler(int number) {
    (void)number;
    int saved = errno;
    if (recv(interrupted_fd, in + 100, 4, MSG_DONTWAIT) == 4)
        signals++;
    errno = saved;
}

CASE(a_handler_receives_what_a_call_waits_for, WARM) {
    if (side == CLIENT) {
        await_peer(side, 1);
        TRY(send(fd, "data", 4, 0));
        await_peer(side, 2);
        return;
    }
    interrupted_fd = fd;
    handle(SIGALRM, receive_in_handler, 0);
    sigset_t alarm_set, old;
    sigemptyset(&alarm_set);
    sigaddset(&alarm_set, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm_set, &old);
    reach(side, 1);
    await_bytes(fd, 4);
    raise(SIGALRM);
    struct pollfd none = {-1, 0, 0};
    TRY(ppoll(&none, 1, &(struct timespec){PATIENCE_MS / 1000, 0}, &old));
    note("received by the handler: %d", signals);
    note_bytes("received", in + 100, 4);
    TRY(recv(fd, in, 10, MSG_DONTWAIT));
    reach(side, 2);
}

CASE(many_signals_lose_no_byte, WARM | RACE | V6 | MIXED) {
    static char out[3000];
    handle(SIGALRM, count_signal, SA_RESTART);
    alarm_in(1, 1);
    uint64_t sum = CHECKSUM_BEGIN;
    for (int i = 0; i < 1500; i++) {
        size_t length = 1 + i * 37 % 3000;
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == (side == CLIENT)) {
                fill(out, length, i + side);
                require(send_all(fd, out, length) == length, "send");
            } else {
                require(receive_all(fd, in, length) == length, "receive");
                sum = checksum(sum, in, length);
            }
        }
    }
    note("received %016llx", (unsigned long long)sum);
}

CASE(many_signals_without_restart_lose_no_byte, WARM | RACE) {
    static char out[300000];
    handle(SIGALRM, count_signal, 0);
    alarm_in(1, 1);
    size_t done = 0;
    fill(out, sizeof out, 1);
    for (int round = 0; round < 10; round++) {
        for (done = 0; done < sizeof out;) {
            ssize_t more = side == CLIENT ? send(fd, out + done, sizeof out - done, 0)
                                          : recv(fd, in + done, sizeof in - done, 0);
            require(more > 0 || errno == EINTR, "send or receive");
            done += more > 0 ? more : 0;
        }
        require(side == CLIENT || memcmp(in, out, sizeof out) == 0, "the bytes");
    }
    note("done");
}

CASE(errno_is_kept_when_all_is_well, WARM) {
    errno = EXDEV;
    if (side == CLIENT) {
        send(fd, "data", 4, 0);
        note("after send: %s", strerrorname_np(errno));
        errno = EXDEV;
        write(fd, "data", 4);
        note("after write: %s", strerrorname_np(errno));
        errno = EXDEV;
        shutdown(fd, SHUT_WR);
        note("after shutdown: %s", strerrorname_np(errno));
        meet(side, 1);
        return;
    }
    recv(fd, in, 8, MSG_WAITALL);
    note("after recv: %s", strerrorname_np(errno));
    struct pollfd asked = {fd, POLLIN, 0};
    errno = EXDEV;
    poll(&asked, 1, 100);
    note("after poll: %s", strerrorname_np(errno));
    errno = EXDEV;
    recv(fd, in, 8, 0);
    note("after the end: %s", strerrorname_np(errno));
    meet(side, 1);
}
