// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections over reused streams: their names, options and flags, and their data.

#include "again.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <sched.h>
#include <sys/stat.h>

#define ROUNDS 3

static char in[400000], out[400000];

// A side's end of the next connection, `ROUNDS` times.
#define EACH_AGAIN(listener, end)                                                                  \
    for (int round = 0, end; round < ROUNDS && (end = again(side, listener), 1); round++)

CASE(the_same_words_again, TCP | V6 | MIXED | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "the first words of a connection");
        exchange(end, side, "and more");
        close_again(end, side);
    }
    prove_again(side);
}

static int is_same(const struct sockaddr_storage *one, const struct sockaddr_storage *other) {
    if (one->ss_family != other->ss_family)
        return 0;
    if (one->ss_family == AF_INET)
        return memcmp(one, other, sizeof(struct sockaddr_in)) == 0;
    const struct sockaddr_in6 *a = (const void *)one, *b = (const void *)other;
    return a->sin6_port == b->sin6_port && memcmp(&a->sin6_addr, &b->sin6_addr, 16) == 0;
}

CASE(names_are_those_of_the_connection, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < ROUNDS; round++) {
        struct sockaddr_storage here = {0}, there = {0}, told = {0}, accepted = {0};
        socklen_t length = sizeof here, accepted_length = sizeof accepted;
        int end = -1;
        if (side == CLIENT) {
            end = connect_again();
            meet_again(side);
        } else {
            meet_again(side);
            end = TRY_OK(accept(listener, (struct sockaddr *)&accepted, &accepted_length));
            note("%u bytes of family %d", accepted_length, accepted.ss_family);
        }
        TRY(getsockname(end, (struct sockaddr *)&here, &length));
        note("%u bytes of family %d", length, here.ss_family);
        length = sizeof there;
        TRY(getpeername(end, (struct sockaddr *)&there, &length));
        require(send_all(end, &here, sizeof here) == sizeof here, "tells its name");
        require(receive_all(end, &told, sizeof told) == sizeof told, "is told the other one");
        note("the peer is who it says: %d", is_same(&there, &told));
        socklen_t listens;
        const struct sockaddr_storage *known = (const void *)there_again(&listens);
        note("the listener's: %d", is_same(side == CLIENT ? &there : &here, known));
        if (side == SERVER)
            note("accepted from the peer: %d", is_same(&accepted, &told));
        close_again(end, side);
    }
    prove_again(side);
}

static void note_options(int end) {
    static const struct {
        int level, name;
        const char *text;
    } options[] = {
        {SOL_SOCKET, SO_ERROR, "SO_ERROR"},         {SOL_SOCKET, SO_TYPE, "SO_TYPE"},
        {SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE"}, {SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR"},
        {SOL_SOCKET, SO_RCVLOWAT, "SO_RCVLOWAT"},   {SOL_SOCKET, SO_ACCEPTCONN, "SO_ACCEPTCONN"},
        {SOL_SOCKET, SO_OOBINLINE, "SO_OOBINLINE"}, {IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY"},
        {IPPROTO_TCP, TCP_CORK, "TCP_CORK"},        {IPPROTO_TCP, TCP_KEEPIDLE, "TCP_KEEPIDLE"},
        {SOL_SOCKET, SO_LINGER, "SO_LINGER"},       {SOL_SOCKET, SO_PRIORITY, "SO_PRIORITY"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        int value[4] = {0};
        socklen_t length = sizeof value;
        int result = getsockopt(end, options[i].level, options[i].name, value, &length);
        note("%s: %d, %u bytes, %d %d", options[i].text, result, length, value[0], value[1]);
    }
}

CASE(options_of_one_are_not_those_of_the_next, TCP | REUSED) {
    int listener = begin_again(fd, side), on = 1;
    EACH_AGAIN(listener, end) {
        note_options(end);
        // Options that programs set on most of their connections, and options that hardly any sets.
        TRY(setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
        TRY(setsockopt(end, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
        if (round == 1) {
            struct timeval time = {3, 0};
            TRY(setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
            TRY(setsockopt(end, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on));
            TRY(setsockopt(end, SOL_SOCKET, SO_PRIORITY, &on, sizeof on));
        }
        note_options(end);
        exchange(end, side, "with options");
        close_again(end, side);
    }
    prove_again(side);
}

// More connections than streams can have been kept before.
#define ALL_KEPT 20

CASE(keep_alive_of_one_is_not_that_of_the_next, TCP | REUSED) {
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 77},
        {IPPROTO_TCP, TCP_KEEPINTVL, 7},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
    };
    int listener = begin_again(fd, side);
    for (int round = 0; round < 2 * ALL_KEPT; round++) {
        if (round == ALL_KEPT)
            forget_again();
        int end = again(side, listener);
        for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
            int value = -1;
            socklen_t length = sizeof value;
            TRY(getsockopt(end, options[i].level, options[i].name, &value, &length));
            note("%d: %d", options[i].name, value);
            value = options[i].value;
            TRY(setsockopt(end, options[i].level, options[i].name, &value, sizeof value));
            TRY(getsockopt(end, options[i].level, options[i].name, &value, &length));
            note("%d", value);
        }
        exchange(end, side, "with options");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(options_set_before_connecting, TCP | REUSED) {
    int listener = begin_again(fd, side), on = 1, idle = 77;
    for (int round = 0; round < 4; round++) {
        int end = -1;
        // The server has closed the previous one.
        meet_again(side);
        if (side == CLIENT) {
            socklen_t length;
            const struct sockaddr *there = there_again(&length);
            end = socket_again(0);
            TRY(setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
            if (round > 0)
                TRY(setsockopt(end, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
            if (round > 1)
                TRY(setsockopt(end, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle));
            TRY(connect(end, there, length));
            note_options(end);
        }
        meet_again(side);
        if (side == SERVER)
            end = TRY_OK(accept(listener, NULL, NULL));
        exchange(end, side, "with options");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(a_listener_gives_its_options, TCP | REUSED) {
    int listener = begin_again(fd, side), on = 1;
    for (int part = 0; part < 3; part++) {
        if (side == SERVER && part == 1)
            TRY(setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
        if (side == SERVER && part == 2)
            TRY(setsockopt(listener, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
        meet_again(side);
        EACH_AGAIN(listener, end) {
            if (side == SERVER)
                note_options(end);
            exchange(end, side, "with what the listener has");
            close_again(end, side);
        }
        if (part == 0)
            prove_again(side);
    }
}

// Set by other calls than setsockopt, but properties of the socket as well.
CASE(signals_of_one_are_not_those_of_the_next, TCP | REUSED) {
    int listener = begin_again(fd, side), on = 1;
    for (int way = 0; way < 5; way++) {
        for (int round = 0; round < 2; round++) {
            int end = again(side, listener), none = 0;
            note("flags %#x, owner %d", fcntl(end, F_GETFL), fcntl(end, F_GETOWN));
            note("signal %d", fcntl(end, F_GETSIG));
            if (round == 0) {
                switch (way) {
                case 0:
                    TRY(fcntl(end, F_SETOWN, 1));
                    break;
                case 1:
                    TRY(fcntl(end, F_SETSIG, SIGWINCH));
                    break;
                case 2:
                    TRY(fcntl(end, F_SETFL, O_APPEND));
                    break;
                case 3:
                    TRY(ioctl(end, FIOASYNC, &on));
                    break;
                default:
                    TRY(ioctl(end, FIOSETOWN, &none));
                    TRY(fcntl(end, F_SETFL, O_NONBLOCK | O_RDWR));
                    set_blocking(end, 1);
                }
            }
            exchange(end, side, "whoever is told");
            close_again(end, side);
        }
    }
    prove_again(side);
}

CASE(options_of_any_kind_are_of_one_connection, TCP | REUSED) {
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_RCVBUF, 20000},          {SOL_SOCKET, SO_SNDBUF, 20000},
        {IPPROTO_TCP, TCP_KEEPIDLE, 77},         {IPPROTO_TCP, TCP_KEEPINTVL, 7},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},           {IPPROTO_TCP, TCP_USER_TIMEOUT, 4321},
        {SOL_SOCKET, SO_SNDTIMEO, 0},            {IPPROTO_TCP, TCP_LINGER2, 5},
        {IPPROTO_TCP, TCP_NOTSENT_LOWAT, 12345}, {IPPROTO_IP, IP_TOS, 16},
    };
    int listener = begin_again(fd, side);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        for (int round = 0; round < 2; round++) {
            int end = again(side, listener), usual = 0;
            socklen_t length = sizeof usual;
            // The kernel chooses buffer sizes freely, but not that of the previous connection.
            TRY(getsockopt(end, options[i].level, options[i].name, &usual, &length));
            note("%d: that of the last one: %d", options[i].name,
                 usual == options[i].value || usual == 2 * options[i].value);
            if (round == 0 && options[i].name == SO_SNDTIMEO) {
                struct timeval time = {5, 0};
                TRY(setsockopt(end, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time));
            } else if (round == 0) {
                TRY(setsockopt(end, options[i].level, options[i].name, &options[i].value,
                               sizeof options[i].value));
            }
            exchange(end, side, "with an option");
            close_again(end, side);
        }
    }
    prove_again(side);
}

CASE(another_network_has_others_at_the_same_address, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "here");
        close_again(end, side);
    }
    prove_again(side);
    if (side == CLIENT) {
        // Without the privilege it stays here, with and without the library.
        int is_elsewhere = TRY(unshare(CLONE_NEWNET)) == 0;
        socklen_t length;
        const struct sockaddr *there = there_again(&length);
        int end = socket_again(0);
        int result = connect(end, there, length);
        note("it is reached: %d", is_elsewhere ? result == 0 : 0);
        TRY(close(end));
    }
}

static int lowest(void) {
    int fd = dup(STDIN_FILENO);
    close(fd);
    return fd;
}

static void note_flags(int end, int expected) {
    note("flags %#x, close on exec %d", fcntl(end, F_GETFL), fcntl(end, F_GETFD));
    note("the lowest number that was free: %d", end == expected);
}

CASE(flags_and_numbers, TCP | REUSED) {
    static const int flags[] = {0, SOCK_NONBLOCK, SOCK_CLOEXEC, SOCK_NONBLOCK | SOCK_CLOEXEC};
    int listener = begin_again(fd, side);
    for (int round = 0; round < 4; round++) {
        int end = -1, free_number = lowest();
        if (side == CLIENT) {
            socklen_t length;
            const struct sockaddr *there = there_again(&length);
            end = socket_again(flags[round]);
            int result = connect(end, there, length);
            note("connect: %d %s", result, result ? strerrorname_np(errno) : "");
            await_events(end, POLLOUT);
        }
        meet_again(side);
        if (side == SERVER)
            end = TRY_OK(accept4(listener, NULL, NULL, flags[round]));
        note_flags(end, free_number);
        struct stat one, other;
        note("a socket: %d", fstat(end, &one) == 0 && S_ISSOCK(one.st_mode));
        note("another one than that: %d", fstat(fd, &other) == 0 && one.st_ino != other.st_ino);
        TRY(recv(end, in, 1, MSG_DONTWAIT));
        meet_again(side);
        set_blocking(end, 1);
        exchange(end, side, "whatever the flags");
        close_again(end, side);
    }
    if (side == SERVER)
        TRY(accept4(listener, NULL, NULL, 12345));
    prove_again(side);
}

CASE(connected_without_blocking_again, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < ROUNDS; round++) {
        int end = -1, error = -1;
        if (side == CLIENT) {
            socklen_t length, bytes = sizeof error;
            const struct sockaddr *there = there_again(&length);
            end = socket_again(SOCK_NONBLOCK);
            TRY(connect(end, there, length));
            struct pollfd asked = {end, POLLOUT | POLLIN, 0};
            TRY(poll(&asked, 1, PATIENCE_MS));
            note("%s", events_text(asked.revents));
            TRY(getsockopt(end, SOL_SOCKET, SO_ERROR, &error, &bytes));
            note("error %d", error);
            TRY(connect(end, there, length));
            TRY(connect(end, there, length));
            TRY(connect(end, there, 3));
            set_blocking(end, 1);
        }
        meet_again(side);
        if (side == SERVER)
            end = TRY_OK(accept(listener, NULL, NULL));
        exchange(end, side, "connected at leisure");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(connecting_wrongly_again, TCP | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        socklen_t length;
        const struct sockaddr *there = there_again(&length);
        if (side == CLIENT) {
            TRY(connect(end, there, length));
            TRY(connect(end, NULL, length));
            int other = socket_again(0);
            TRY(connect(other, there, 2));
            TRY(connect(other, NULL, length));
            TRY(connect(other, (struct sockaddr *)8, length));
            TRY(send(other, "x", 1, MSG_NOSIGNAL));
            TRY(close(other));
        } else {
            TRY(connect(end, there, length));
            TRY(listen(end, 5));
            TRY(accept(end, NULL, NULL));
        }
        exchange(end, side, "still connected");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(bound_before_connecting, TCP | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < ROUNDS; round++) {
        int end = -1;
        struct sockaddr_in from = {.sin_family = AF_INET}, seen = {0};
        socklen_t length = sizeof seen;
        if (side == CLIENT) {
            const struct sockaddr *there = there_again(&length);
            end = socket_again(0);
            from.sin_addr.s_addr = inet_addr("127.0.0.2");
            TRY(bind(end, (struct sockaddr *)&from, sizeof from));
            TRY(connect(end, there, length));
        }
        meet_again(side);
        if (side == SERVER) {
            end = TRY_OK(accept(listener, (struct sockaddr *)&seen, &length));
            note("from %s", inet_ntoa(seen.sin_addr));
        }
        exchange(end, side, "from an address of its own");
        close_again(end, side);
        end = again(side, listener);
        exchange(end, side, "from any");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(bytes_of_the_last_one_are_gone, TCP | V6 | REUSED) {
    static const size_t sizes[] = {1, 300000, 5, 70000, 64, 400000, 3, 65536, 1000};
    int listener = begin_again(fd, side);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int end = again(side, listener), there = -1;
        TRY(ioctl(end, FIONREAD, &there));
        note("%d bytes at the start", there);
        TRY(recv(end, in, 1, MSG_DONTWAIT));
        meet_again(side);
        // In both directions, one after the other.
        for (int way = 0; way < 2; way++) {
            if ((side == CLIENT) == (way == 0)) {
                fill(out, sizes[i], 2 * i + way);
                note("sent: %zu", send_all(end, out, sizes[i]));
            } else {
                note_bytes("received", in, receive_all(end, in, sizes[i]));
            }
        }
        close_again(end, side);
    }
    prove_again(side);
}

CASE(sent_and_closed_before_it_is_accepted, TCP | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < ROUNDS; round++) {
        if (side == CLIENT) {
            int end = connect_again();
            TRY(send(end, "left behind", 11, 0));
            TRY(close(end));
        }
        meet_again(side);
        if (side == SERVER) {
            int end = TRY_OK(accept(listener, NULL, NULL));
            note_poll("accepted", end);
            TRY(recv(end, in, sizeof in, 0));
            note_bytes("received", in, 11);
            TRY(recv(end, in, sizeof in, 0));
            TRY(close(end));
        }
        meet_again(side);
    }
    prove_again(side);
}

CASE(many_that_wait_to_be_accepted, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < 6; round++) {
        enum { MANY = 12 };
        int ends[MANY], seen[MANY] = {0};
        for (int i = 0; side == CLIENT && i < MANY; i++) {
            ends[i] = connect_again();
            char number = i;
            require(send(ends[i], &number, 1, 0) == 1, "send");
        }
        meet_again(side);
        for (int i = 0; i < MANY; i++) {
            char number;
            if (side == SERVER) {
                ends[i] = accept(listener, NULL, NULL);
                require(ends[i] >= 0 && recv(ends[i], &number, 1, 0) == 1, "receive");
                seen[(int)number]++;
                require(send(ends[i], &number, 1, 0) == 1, "send");
            } else {
                require(recv(ends[i], &number, 1, 0) == 1, "receive");
                require(number == i, "the answer is its own");
            }
        }
        for (int i = 0; side == SERVER && i < MANY; i++)
            require(seen[i] == 1, "each once");
        for (int i = 0; i < MANY; i++)
            require(close(ends[i]) == 0, "close");
        meet_again(side);
    }
    note("done");
    prove_again(side);
}

CASE(two_listeners, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    struct sockaddr_storage where;
    socklen_t length;
    int other = -1;
    if (side == SERVER) {
        other = listen_here(&where, &length);
        require(send_all(fd, &where, sizeof where) == sizeof where, "tells where");
    } else {
        require(receive_all(fd, &where, sizeof where) == sizeof where, "is told where");
    }
    there_again(&length);
    for (int round = 0; round < 6; round++) {
        int one = again(side, listener), two = -1;
        if (side == CLIENT) {
            two = socket_again(0);
            require(connect(two, (struct sockaddr *)&where, length) == 0, "connect");
        }
        meet_again(side);
        if (side == SERVER)
            two = TRY_OK(accept(other, NULL, NULL));
        exchange(one, side, "by the one");
        exchange(two, side, "by the other");
        close_again(one, side);
        close_again(two, side);
    }
    prove_again(side);
}

// Each client thread connects and asks, each server thread accepts and answers.
enum { THREADS = 4, EACH = 40 };
static struct {
    enum side side;
    int listener;
    long sum;
} shared_by_threads;

static void *busy(void *nothing) {
    long sum = 0;
    for (int i = 0; i < EACH; i++) {
        int number = i, answer = 0;
        if (shared_by_threads.side == CLIENT) {
            int end = connect_again();
            require(send(end, &number, sizeof number, 0) == sizeof number, "send");
            require(recv(end, &answer, sizeof answer, MSG_WAITALL) == sizeof answer, "receive");
            require(answer == number + 1, "the answer is its own");
            require(close(end) == 0, "close");
            sum += answer;
        } else {
            int end = accept(shared_by_threads.listener, NULL, NULL);
            require(recv(end, &number, sizeof number, MSG_WAITALL) == sizeof number, "receive");
            answer = number + 1;
            require(send(end, &answer, sizeof answer, 0) == sizeof answer, "send");
            require(recv(end, &number, 1, 0) == 0 && close(end) == 0, "the end");
            sum += answer;
        }
    }
    __atomic_fetch_add(&shared_by_threads.sum, sum, __ATOMIC_SEQ_CST);
    return nothing;
}

CASE(threads_connect_and_accept, TCP | RACE | REUSED) {
    shared_by_threads.listener = begin_again(fd, side);
    shared_by_threads.side = side;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        require(pthread_create(&threads[i], NULL, busy, NULL) == 0, "a thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    note("sum %ld", shared_by_threads.sum);
    meet_again(side);
    // Even so, one of the last connections is made without the kernel if no thread sleeps.
    EACH_AGAIN(shared_by_threads.listener, end) {
        exchange(end, side, "alone again");
        close_again(end, side);
    }
    prove_again(side);
}
