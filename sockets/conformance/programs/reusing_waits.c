// SPDX-License-Identifier: Apache-2.0 OR MIT
// Waiting for connections over reused streams: in accept, poll, select and sets, asleep or not,
// alone or with other descriptors.

#include "again.h"

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/select.h>

#define ROUNDS 3

// Delay before the client connects, so that the waiting thread sleeps in the kernel.
#define ASLEEP_MS 20

// Talks over one connection, and closes it.
static void talk(int end, enum side side) {
    exchange(end, side, "whoever waited");
    close_again(end, side);
}

// The client connects: before the server waits, or after it has been waiting for a while.
static void connect_before_or_late(int is_late) {
    if (is_late) {
        meet_again(CLIENT);
        sleep_ms(ASLEEP_MS);
        talk(connect_again(), CLIENT);
    } else {
        int end = connect_again();
        meet_again(CLIENT);
        talk(end, CLIENT);
    }
}

CASE(accept_that_sleeps_or_not, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (side == CLIENT) {
            connect_before_or_late(i % 2);
        } else {
            meet_again(side);
            int end = TRY_OK(accept(listener, NULL, NULL));
            talk(end, side);
        }
    }
    prove_again(side);
}

CASE(accept_without_blocking_again, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    for (int i = 0; i < ROUNDS; i++) {
        int end = -1;
        if (side == SERVER) {
            set_blocking(listener, 0);
            TRY(accept(listener, NULL, NULL));
            note_poll("nobody", listener);
        }
        meet_again(side);
        if (side == CLIENT)
            end = connect_again();
        meet_again(side);
        if (side == SERVER) {
            note_poll("somebody", listener);
            note_poll("still", listener);
            end = TRY_OK(accept(listener, NULL, NULL));
            note("flags %#x", fcntl(end, F_GETFL));
            TRY(accept(listener, NULL, NULL));
            note_poll("nobody", listener);
        }
        talk(end, side);
    }
    prove_again(side);
}

CASE(accept_for_some_time, TCP | REUSED) {
    int listener = begin_again(fd, side);
    struct timeval time = {0, 300000};
    if (side == SERVER)
        TRY(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    // The accepted connections inherit the timeout.
    warm_up_again(fd, side, listener);
    for (int i = 0; i < ROUNDS; i++) {
        if (side == SERVER) {
            int64_t before = now_ms();
            TRY(accept(listener, NULL, NULL));
            int64_t waited = now_ms() - before;
            note("waited: %d", waited >= 295 && waited < 2000);
        }
        meet_again(side);
        if (side == CLIENT) {
            connect_before_or_late(0);
        } else {
            meet_again(side);
            int end = TRY_OK(accept(listener, NULL, NULL));
            talk(end, side);
        }
    }
    prove_again(side);
}

CASE(poll_for_a_connection, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (side == CLIENT) {
            connect_before_or_late(i % 2);
            continue;
        }
        struct pollfd asked[] = {{listener, POLLIN | POLLOUT, 0}, {fd, POLLIN, 0}, {-1, POLLIN, 0}};
        TRY(poll(asked, 3, 0) >= 0);
        meet_again(side);
        TRY(poll(asked, 3, PATIENCE_MS));
        note("%s, %s", events_text(asked[0].revents), events_text(asked[1].revents));
        asked[0].events = POLLOUT;
        TRY(poll(asked, 1, 0));
        asked[0].events = POLLRDNORM;
        TRY(poll(asked, 1, 0));
        note("%s", events_text(asked[0].revents));
        int end = TRY_OK(accept(listener, NULL, NULL));
        TRY(poll(asked, 1, 10));
        talk(end, side);
    }
    prove_again(side);
}

CASE(select_for_a_connection, TCP | REUSED) {
    int listener = begin_again(fd, side);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (side == CLIENT) {
            connect_before_or_late(i % 2);
            continue;
        }
        meet_again(side);
        fd_set set;
        FD_ZERO(&set);
        FD_SET(listener, &set);
        FD_SET(fd, &set);
        int highest = (listener > fd ? listener : fd) + 1;
        TRY(select(highest, &set, NULL, NULL, &(struct timeval){5, 0}));
        note("%d %d", FD_ISSET(listener, &set) != 0, FD_ISSET(fd, &set) != 0);
        int end = TRY_OK(accept(listener, NULL, NULL));
        FD_SET(listener, &set);
        TRY(select(highest, &set, NULL, NULL, &(struct timeval){0, 10000}));
        talk(end, side);
    }
    prove_again(side);
}

CASE(a_connection_and_a_listener_in_one_list, TCP | REUSED) {
    // The server waits for words over one connection and for the next connection at the same time.
    int listener = begin_again(fd, side);
    int first = again(side, listener);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        meet_again(side);
        int is_late = i / 2 % 2, is_new = i % 2, end = -1;
        if (side == CLIENT) {
            if (is_late)
                sleep_ms(ASLEEP_MS);
            if (is_new)
                end = connect_again();
            else
                TRY(send(first, "words", 5, 0));
            if (!is_late)
                meet_again(side);
        } else {
            if (!is_late)
                meet_again(side);
            char in[10];
            struct pollfd asked[] = {{listener, POLLIN, 0}, {first, POLLIN, 0}};
            TRY(poll(asked, 2, PATIENCE_MS));
            note("%s, %s", events_text(asked[0].revents), events_text(asked[1].revents));
            if (is_new)
                end = TRY_OK(accept(listener, NULL, NULL));
            else
                TRY(recv(first, in, 5, MSG_WAITALL));
        }
        if (is_new)
            talk(end, side);
    }
    talk(first, side);
    prove_again(side);
}

// A set that contains the listener.
static int new_set(int listener, unsigned events) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = events, .data.u64 = 0x7777777777};
    require(epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) == 0, "epoll_ctl");
    return epoll;
}

// The server waits on a set, several times, for several connections.
static void wait_in_set(int fd, enum side side, unsigned events) {
    int listener = begin_again(fd, side), epoll = -1;
    int first = again(side, listener);
    talk(first, side);
    // Only the kernel knows that a one-shot event was reported, so it makes the later connections.
    if (events & EPOLLONESHOT)
        prove_again(side);
    if (side == SERVER)
        epoll = new_set(listener, events);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int is_late = i % 2, ends[2] = {-1, -1};
        if (side == SERVER)
            note_events("nobody", epoll, 0);
        meet_again(side);
        if (side == CLIENT) {
            if (is_late)
                sleep_ms(ASLEEP_MS);
            ends[0] = connect_again();
            if (!is_late)
                meet_again(side);
        } else {
            if (!is_late)
                meet_again(side);
            note_events("one", epoll, PATIENCE_MS);
            note_events("the same", epoll, 10);
        }
        meet_again(side);
        if (side == CLIENT)
            ends[1] = connect_again();
        meet_again(side);
        if (side == SERVER) {
            note_events("another", epoll, 10);
            note_events("both", epoll, 10);
            ends[0] = TRY_OK(accept(listener, NULL, NULL));
            note_events("one is left", epoll, 10);
            ends[1] = TRY_OK(accept(listener, NULL, NULL));
            note_events("none is left", epoll, 10);
            struct epoll_event event = {.events = events, .data.u64 = 0x8888888888};
            if (events & EPOLLONESHOT)
                TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &event));
        }
        for (int j = 0; j < 2; j++)
            talk(ends[j], side);
    }
    if (!(events & EPOLLONESHOT))
        prove_again(side);
}

CASE(a_set_tells_as_long_as_there_is_one, TCP | V6 | REUSED) { wait_in_set(fd, side, EPOLLIN); }

CASE(a_set_tells_what_is_new, TCP | REUSED) { wait_in_set(fd, side, EPOLLIN | EPOLLET); }

CASE(a_set_tells_once, TCP | REUSED) { wait_in_set(fd, side, EPOLLIN | EPOLLONESHOT); }

CASE(a_set_tells_exclusively, TCP | REUSED) { wait_in_set(fd, side, EPOLLIN | EPOLLEXCLUSIVE); }

CASE(a_set_is_told_of_one_that_waits_already, TCP | REUSED) {
    int listener = begin_again(fd, side);
    for (int i = 0; i < ROUNDS; i++) {
        int end = side == CLIENT ? connect_again() : -1;
        meet_again(side);
        if (side == SERVER) {
            int epoll = new_set(listener, EPOLLIN | EPOLLET);
            note_events("added", epoll, PATIENCE_MS);
            struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 0x8888888888};
            TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &event));
            note_events("changed", epoll, 100);
            event.events = EPOLLOUT;
            TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &event));
            note_events("nothing that it has", epoll, 10);
            TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, listener, NULL));
            note_events("deleted", epoll, 10);
            TRY(close(epoll));
            end = TRY_OK(accept(listener, NULL, NULL));
        }
        talk(end, side);
    }
    prove_again(side);
}

CASE(a_set_in_another_one, TCP | REUSED) {
    int listener = begin_again(fd, side), inner = -1, outer = -1;
    talk(again(side, listener), side);
    prove_again(side);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (side == SERVER && i == 2) {
            inner = new_set(listener, EPOLLIN);
            outer = new_set(inner, EPOLLIN);
        }
        if (side == CLIENT) {
            connect_before_or_late(i % 2);
            continue;
        }
        meet_again(side);
        if (outer >= 0) {
            note_events("outside", outer, PATIENCE_MS);
            note_events("inside", inner, 0);
        }
        int end = TRY_OK(accept(listener, NULL, NULL));
        talk(end, side);
    }
}

CASE(a_set_that_is_polled, TCP | REUSED) {
    int listener = begin_again(fd, side), epoll = -1;
    talk(again(side, listener), side);
    prove_again(side);
    for (int i = 0; i < 2 * ROUNDS; i++) {
        if (side == CLIENT) {
            connect_before_or_late(i % 2);
            continue;
        }
        if (i == 2)
            epoll = new_set(listener, EPOLLIN);
        meet_again(side);
        if (epoll >= 0) {
            struct pollfd asked = {epoll, POLLIN, 0};
            TRY(poll(&asked, 1, PATIENCE_MS));
            note("%s", events_text(asked.revents));
            note_events("inside", epoll, 0);
        }
        int end = TRY_OK(accept(listener, NULL, NULL));
        talk(end, side);
    }
}

// Several threads wait for the same listener, each in another way.
static struct {
    int listener, is_over;
    int served;
} waiting;

static void *wait_and_serve(void *how) {
    static int turn;
    int own = __atomic_fetch_add(&turn, 1, __ATOMIC_SEQ_CST) % 3;
    int epoll = own == 2 ? new_set(waiting.listener, EPOLLIN | EPOLLEXCLUSIVE) : -1;
    while (!__atomic_load_n(&waiting.is_over, __ATOMIC_SEQ_CST)) {
        struct pollfd asked = {waiting.listener, POLLIN, 0};
        struct epoll_event event;
        if (own == 1 && poll(&asked, 1, 50) < 1)
            continue;
        if (own == 2 && epoll_wait(epoll, &event, 1, 50) < 1)
            continue;
        int end = accept(waiting.listener, NULL, NULL);
        if (end < 0) {
            if (own == 0)
                poll(&asked, 1, 10);
            continue;
        }
        char byte;
        set_blocking(end, 1);
        require(recv(end, &byte, 1, 0) == 1 && send(end, &byte, 1, 0) == 1, "a byte");
        require(recv(end, &byte, 1, 0) == 0 && close(end) == 0, "the end");
        __atomic_fetch_add(&waiting.served, 1, __ATOMIC_SEQ_CST);
    }
    return how;
}

CASE(threads_that_wait_in_different_ways, TCP | RACE | REUSED) {
    enum { COUNT = 300 };
    waiting.listener = begin_again(fd, side);
    if (side == CLIENT) {
        meet_again(side);
        for (int i = 0; i < COUNT; i++) {
            int end = connect_again();
            char byte = i;
            require(send(end, &byte, 1, 0) == 1 && recv(end, &byte, 1, 0) == 1, "a byte");
            require(byte == (char)i && close(end) == 0, "the same");
            if (i % 100 == 50)
                sleep_ms(ASLEEP_MS);
        }
        meet_again(side);
        meet_again(side);
    } else {
        set_blocking(waiting.listener, 0);
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            require(pthread_create(&threads[i], NULL, wait_and_serve, NULL) == 0, "a thread");
        meet_again(side);
        meet_again(side);
        __atomic_store_n(&waiting.is_over, 1, __ATOMIC_SEQ_CST);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        note("served %d", waiting.served);
        set_blocking(waiting.listener, 1);
        meet_again(side);
    }
    int end = again(side, waiting.listener);
    talk(end, side);
    prove_again(side);
}

static volatile sig_atomic_t interrupts;

static void interrupt(int signal) { interrupts += signal > 0; }

static void *interrupt_later(void *thread) {
    sleep_ms(ASLEEP_MS);
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void handle(int flags) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = flags};
    sigaction(SIGUSR1, &action, NULL);
}

CASE(signals_interrupt_who_waits, TCP | REUSED) {
    int listener = begin_again(fd, side);
    if (side == SERVER) {
        pthread_t self = pthread_self(), other;
        struct pollfd asked = {listener, POLLIN, 0};
        int epoll = new_set(listener, EPOLLIN);
        handle(0);
        for (int i = 0; i < 3; i++) {
            require(pthread_create(&other, NULL, interrupt_later, &self) == 0, "a thread");
            if (i == 0)
                TRY(accept(listener, NULL, NULL));
            else if (i == 1)
                TRY(poll(&asked, 1, PATIENCE_MS));
            else
                note_events("interrupted", epoll, PATIENCE_MS);
            pthread_join(other, NULL);
        }
        note("interrupts: %d", interrupts);
        TRY(close(epoll));
        handle(SA_RESTART);
        require(pthread_create(&other, NULL, interrupt_later, &self) == 0, "a thread");
        meet_again(side);
        int end = TRY_OK(accept(listener, NULL, NULL));
        note("interrupts: %d", interrupts);
        pthread_join(other, NULL);
        talk(end, side);
    } else {
        meet_again(side);
        sleep_ms(5 * ASLEEP_MS);
        talk(connect_again(), side);
    }
    int end = again(side, listener);
    talk(end, side);
    prove_again(side);
}

static void *accept_for_ever(void *result) {
    *(int *)result = accept(waiting.listener, NULL, NULL);
    return NULL;
}

CASE(who_accepts_is_cancelled, TCP | REUSED) {
    waiting.listener = begin_again(fd, side);
    for (int i = 0; i < ROUNDS; i++) {
        if (side == SERVER) {
            pthread_t thread;
            int result = -2;
            void *ended;
            require(pthread_create(&thread, NULL, accept_for_ever, &result) == 0, "a thread");
            sleep_ms(i * ASLEEP_MS);
            TRY(pthread_cancel(thread));
            TRY(pthread_join(thread, &ended));
            note("cancelled: %d, accept has given %d", ended == PTHREAD_CANCELED, result);
        }
        meet_again(side);
        int end = again(side, waiting.listener);
        talk(end, side);
    }
    prove_again(side);
}

// Connections made by the kernel (from another address) among others.
CASE(connections_of_both_kinds_are_all_accepted, TCP | RACE | REUSED) {
    enum { COUNT = 200 };
    int listener = begin_again(fd, side), ends[COUNT];
    meet_again(side);
    if (side == SERVER) {
        int seen[2] = {0, 0}, done[COUNT] = {0};
        for (int i = 0; i < COUNT; i++) {
            struct sockaddr_in from;
            socklen_t length = sizeof from;
            int end = accept(listener, (struct sockaddr *)&from, &length);
            unsigned char number;
            require(end >= 0 && recv(end, &number, 1, 0) == 1, "a byte");
            require(number < COUNT && !done[number]++, "each once");
            int is_kernels = from.sin_addr.s_addr == inet_addr("127.0.0.2");
            require(is_kernels == (number % 4 == 0), "from whom it says");
            seen[is_kernels]++;
            require(send(end, &number, 1, 0) == 1 && close(end) == 0, "answer");
        }
        note("%d and %d", seen[0], seen[1]);
    } else {
        // Number of simultaneous connections.
        enum { WINDOW = 8 };
        for (int i = 0; i < COUNT + WINDOW; i++) {
            unsigned char number = i - WINDOW, answer;
            if (i >= WINDOW) {
                int end = ends[i - WINDOW];
                require(recv(end, &answer, 1, 0) == 1 && answer == number, "its own answer");
                require(recv(end, &answer, 1, 0) == 0 && close(end) == 0, "the end");
            }
            if (i >= COUNT)
                continue;
            ends[i] = socket_again(0);
            struct sockaddr_in from = {.sin_family = AF_INET};
            from.sin_addr.s_addr = inet_addr("127.0.0.2");
            if (i % 4 == 0)
                require(bind(ends[i], (struct sockaddr *)&from, sizeof from) == 0, "bind");
            socklen_t length;
            const struct sockaddr *there = there_again(&length);
            require(connect(ends[i], there, length) == 0, "connect");
            number = i;
            require(send(ends[i], &number, 1, 0) == 1, "send");
        }
        note("done");
    }
    int end = again(side, listener);
    talk(end, side);
    prove_again(side);
}

CASE(children_share_a_listener, TCP | RACE | REUSED) {
    // They inherit it from their parent, which waits for them; before that, the parent serves
    // alone.
    enum { CHILDREN = 2, COUNT = 'q' };
    int listener = begin_again(fd, side);
    int end = again(side, listener);
    talk(end, side);
    prove_again(side);
    if (side == CLIENT) {
        meet_again(side);
        for (int i = 0; i < COUNT; i++) {
            end = connect_again();
            char byte = i;
            require(send(end, &byte, 1, 0) == 1 && recv(end, &byte, 1, 0) == 1, "a byte");
            require(byte == (char)i && recv(end, &byte, 1, 0) == 0 && close(end) == 0, "the same");
        }
        for (int i = 0; i < CHILDREN; i++) {
            char last;
            end = connect_again();
            require(send(end, "q", 1, 0) == 1 && recv(end, &last, 1, 0) == 0, "the last");
            close(end);
        }
        note("done");
        return;
    }
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        for (char byte = 0; children[i] == 0 && byte != 'q';) {
            end = accept(listener, NULL, NULL);
            require(end >= 0 && recv(end, &byte, 1, 0) == 1, "a byte");
            require(byte == 'q' || send(end, &byte, 1, 0) == 1, "answer");
            require(close(end) == 0, "close");
            if (byte == 'q')
                _exit(0);
        }
    }
    meet_again(side);
    for (int i = 0; i < CHILDREN; i++)
        note_end("child", children[i]);
}
