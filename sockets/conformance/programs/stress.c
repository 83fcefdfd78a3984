// SPDX-License-Identifier: Apache-2.0 OR MIT
// No synchronization here: threads and processes send, receive, are interrupted and pass
// connections on at arbitrary times. Nevertheless, streams must be exact and end once, and a thread
// that waits for something present must wake. If it does not, its side is still waiting at the time
// limit, which the harness reports.
//
// The seed determines the amounts, the sizes of pieces, the calls, and the delays.

#include "case.h"

#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>

enum { MOST = 30000 };

// Pseudo-random numbers; each thread has its own state.
static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return *state >> 33;
}

static uint64_t seeded(enum side side, int thread) {
    const char *given = getenv("CONFORMANCE_SEED");
    uint64_t state = (given ? strtoull(given, NULL, 10) : 1) * 1000 + side * 100 + thread;
    for (int i = 0; i < 5; i++)
        next(&state);
    return state;
}

static void dawdle(uint64_t *random) {
    if (next(random) % 16 == 0)
        usleep(next(random) % 400);
}

// The byte at a position of a stream.
static unsigned char letter(uint64_t at) { return (unsigned char)((at * 0x9e3779b1) >> 11); }

static void do_nothing(int number) { (void)number; }

// Waits by one of several calls, all of which may be interrupted.
static void wait_for(int fd, short events, uint64_t *random) {
    struct pollfd asked = {fd, events, 0};
    struct epoll_event event = {.events = (unsigned short)events};
    fd_set set;
    int epoll, ready = -1;
    while (ready < 0) {
        switch (next(random) % 4) {
        case 0:
            ready = poll(&asked, 1, -1);
            break;
        case 1:
            ready = ppoll(&asked, 1, &(struct timespec){60, 0}, NULL);
            break;
        case 2:
            FD_ZERO(&set);
            FD_SET(fd, &set);
            ready = select(fd + 1, events & POLLIN ? &set : NULL, events & POLLOUT ? &set : NULL,
                           NULL, NULL);
            break;
        default:
            epoll = epoll_create1(EPOLL_CLOEXEC);
            event.events |= next(random) % 2 ? (unsigned)EPOLLET : 0;
            require(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
            ready = epoll_wait(epoll, &event, 1, -1);
            close(epoll);
        }
        require(ready >= 0 || errno == EINTR, "waiting");
    }
}

// Receives some bytes, in one of several ways; 0 at the end of the stream.
static ssize_t receive_some(int fd, void *bytes, size_t length, uint64_t *random) {
    for (;;) {
        ssize_t got;
        int without_waiting = next(random) % 2 ? MSG_DONTWAIT : 0;
        if (next(random) % 4 == 0) {
            wait_for(fd, POLLIN, random);
            without_waiting = MSG_DONTWAIT;
        }
        if (next(random) % 3 == 0) {
            struct iovec parts[2] = {{bytes, length / 2}, {(char *)bytes + length / 2, 0}};
            parts[1].iov_len = length - length / 2;
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            got = recvmsg(fd, &message, without_waiting);
        } else {
            got = recv(fd, bytes, length, without_waiting);
        }
        if (got >= 0)
            return got;
        require(errno == EAGAIN || errno == EINTR, "receiving");
        if (errno == EAGAIN)
            wait_for(fd, POLLIN, random);
    }
}

static size_t send_some(int fd, const void *bytes, size_t length, uint64_t *random) {
    for (;;) {
        int flags = MSG_NOSIGNAL | (next(random) % 2 ? MSG_DONTWAIT : 0);
        ssize_t sent = send(fd, bytes, length, flags);
        if (sent > 0)
            return sent;
        require(sent < 0 && (errno == EAGAIN || errno == EINTR), "sending");
        if (errno == EAGAIN)
            wait_for(fd, POLLOUT, random);
    }
}

// Sends the part of a stream from `from` up to, but not including, `to`.
static void send_stream(int fd, uint64_t from, uint64_t to, uint64_t *random) {
    unsigned char bytes[MOST];
    while (from < to) {
        uint64_t most = next(random) % 4 ? 300 : MOST;
        uint64_t length = 1 + next(random) % most;
        length = length < to - from ? length : to - from;
        for (uint64_t i = 0; i < length; i++)
            bytes[i] = letter(from + i);
        for (uint64_t done = 0; done < length;)
            done += send_some(fd, bytes + done, length - done, random);
        from += length;
        dawdle(random);
    }
}

// Receives and checks bytes at a position; returns their number.
static ssize_t check_some(int fd, uint64_t at, uint64_t most, uint64_t *random) {
    unsigned char bytes[MOST];
    uint64_t length = 1 + next(random) % MOST;
    ssize_t got = receive_some(fd, bytes, length < most ? length : most, random);
    for (ssize_t i = 0; i < got; i++)
        require(bytes[i] == letter(at + i), "the stream is what was sent");
    dawdle(random);
    return got;
}

static void check_stream(int fd, uint64_t from, uint64_t to, uint64_t *random) {
    while (from < to) {
        ssize_t got = check_some(fd, from, to - from, random);
        require(got > 0, "the stream goes on");
        from += got;
    }
}

static void check_end(int fd) {
    char byte;
    for (int i = 0; i < 3; i++) {
        ssize_t got;
        do
            got = recv(fd, &byte, 1, 0);
        while (got < 0 && errno == EINTR);
        require(got == 0, "the stream ends, and stays so");
    }
}

// Threads that run until their work is done, and are interrupted in the meantime.
enum { THREADS = 8 };

struct part {
    void (*run)(struct part *part);
    enum side side;
    int fd, number;
    uint64_t length;
};

static atomic_int finished, is_over;
static pthread_t threads[THREADS];

static void *run_part(void *given) {
    struct part *part = given;
    part->run(part);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void *interrupt(void *count) {
    uint64_t random = seeded(0, 50);
    while (!atomic_load(&is_over)) {
        usleep(100 + next(&random) % 2000);
        int number = next(&random) % 2 ? SIGUSR1 : SIGUSR2;
        pthread_kill(threads[next(&random) % (intptr_t)count], number);
    }
    return NULL;
}

// Runs all of them concurrently. Threads are joined only after the interrupts have stopped.
static void run_parts(struct part *parts, intptr_t count) {
    struct sigaction action = {.sa_handler = do_nothing};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, NULL);
    for (int i = 0; i < count; i++)
        require(pthread_create(&threads[i], NULL, run_part, &parts[i]) == 0, "pthread_create");
    pthread_t interrupter;
    pthread_create(&interrupter, NULL, interrupt, (void *)count);
    while (atomic_load(&finished) < count)
        sleep_ms(1);
    atomic_store(&is_over, 1);
    pthread_join(interrupter, NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void send_part(struct part *part) {
    uint64_t random = seeded(part->side, part->number);
    send_stream(part->fd, 0, part->length, &random);
    require(shutdown(part->fd, SHUT_WR) == 0, "shutdown");
}

static void check_part(struct part *part) {
    uint64_t random = seeded(part->side, part->number);
    check_stream(part->fd, 0, part->length, &random);
    check_end(part->fd);
}

static uint64_t length_of(enum side side) {
    uint64_t random = seeded(side, 0);
    return 20000 + next(&random) % 1500000;
}

CASE(both_ways_by_all_calls_with_interrupts, WARM | V6 | RACE) {
    struct part parts[2] = {{send_part, side, fd, 1, length_of(side)},
                            {check_part, side, fd, 2, length_of(1 - side)}};
    run_parts(parts, 2);
    note("both streams were exact");
    meet(side, 1);
}

// Sends the stream, but holds back its last third, except for a few bytes at a time, until both
// sides are upgraded: however slow the machine, the connection leaves the kernel within the stream.
static void send_part_across(struct part *part) {
    enum { FEW = 16 };
    uint64_t random = seeded(part->side, part->number);
    uint64_t at = part->length / 3 * 2;
    send_stream(part->fd, 0, at, &random);
    while (at + FEW < part->length && !is_as_upgraded_as_it_will_be(part->fd, part->side)) {
        send_stream(part->fd, at, at + FEW, &random);
        at += FEW;
        sleep_ms(1);
    }
    send_stream(part->fd, at, part->length, &random);
    require(shutdown(part->fd, SHUT_WR) == 0, "shutdown");
}

CASE(halfway_by_all_calls_with_interrupts, ACROSS | RACE | TCP) {
    // The connection leaves the kernel during all of this.
    struct part parts[2] = {{send_part_across, side, fd, 1, 3 * length_of(side)},
                            {check_part, side, fd, 2, 3 * length_of(1 - side)}};
    run_parts(parts, 2);
    note("both streams were exact");
    prove(fd, side);
    meet(side, 1);
}

// Several connections of a server whose threads share a set. Each thread answers the bytes present.
enum { CONNECTIONS = 6, SERVERS = 3, QUESTIONS = 150 };

static int shared_set;
static atomic_int open_connections;

static void ask_part(struct part *part) {
    uint64_t random = seeded(CLIENT, part->number);
    unsigned char question[2000], answer[2000];
    for (int i = 0; i < QUESTIONS; i++) {
        size_t length = 1 + next(&random) % sizeof question, done = 0;
        for (size_t at = 0; at < length; at++)
            question[at] = letter(i * 7919 + part->number + at);
        while (done < length)
            done += send_some(part->fd, question + done, length - done, &random);
        for (done = 0; done < length;) {
            ssize_t got = receive_some(part->fd, answer + done, length - done, &random);
            require(got > 0, "an answer");
            done += got;
        }
        require(memcmp(question, answer, length) == 0, "the answer is the question");
        dawdle(&random);
    }
    require(shutdown(part->fd, SHUT_WR) == 0, "shutdown");
    check_end(part->fd);
}

// Answers the bytes present. Returns whether the connection is still open.
static int answer_all(int fd, uint64_t *random) {
    unsigned char bytes[3000];
    for (;;) {
        ssize_t got = recv(fd, bytes, 1 + next(random) % sizeof bytes, MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            require(errno == EAGAIN, "receiving a question");
            return 1;
        }
        for (ssize_t done = 0; done < got;)
            done += send_some(fd, bytes + done, got - done, random);
        if (got == 0)
            return 0;
    }
}

static void serve_part(struct part *part) {
    uint64_t random = seeded(SERVER, part->number);
    struct epoll_event event;
    while (atomic_load(&open_connections) > 0) {
        if (epoll_wait(shared_set, &event, 1, 50) != 1)
            continue;
        int fd = event.data.fd;
        if (answer_all(fd, &random)) {
            event.events = EPOLLIN | EPOLLONESHOT | (next(&random) % 2 ? (unsigned)EPOLLET : 0);
            require(epoll_ctl(shared_set, EPOLL_CTL_MOD, fd, &event) == 0, "armed again");
        } else {
            require(close(fd) == 0, "close");
            atomic_fetch_sub(&open_connections, 1);
        }
    }
}

CASE(threads_that_share_a_set, BARE | V6 | RACE) {
    struct part parts[THREADS] = {0};
    int count = side == SERVER ? SERVERS : CONNECTIONS;
    shared_set = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < CONNECTIONS; i++) {
        int end = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(end, side);
        struct epoll_event event = {EPOLLIN | EPOLLONESHOT, {.fd = end}};
        require(side == CLIENT || epoll_ctl(shared_set, EPOLL_CTL_ADD, end, &event) == 0, "add");
        parts[i] = (struct part){ask_part, side, end, i, 0};
    }
    atomic_store(&open_connections, CONNECTIONS);
    for (int i = 0; side == SERVER && i < SERVERS; i++)
        parts[i].run = serve_part;
    run_parts(parts, count);
    note("all was answered");
}

// A server waits for many connections on one set, without a timeout. Data arrive on several of them
// at once, while the server sleeps, wakes up or polls.
enum { MANY = 24, BURSTS = 1500 };

static void ask_in_bursts(const int *ends) {
    uint64_t random = seeded(CLIENT, 0);
    for (int i = 0; i < BURSTS; i++) {
        uint64_t asked = next(&random) & next(&random) & ((1 << MANY) - 1);
        unsigned char question = letter(i), answer;
        for (int at = 0; at < MANY; at++) {
            if (asked >> at & 1) {
                require(send(ends[at], &question, 1, 0) == 1, "a question");
                dawdle(&random);
            }
        }
        for (int at = 0; at < MANY; at++) {
            if (asked >> at & 1) {
                require(recv(ends[at], &answer, 1, 0) == 1, "an answer");
                require(answer == question, "the answer is the question");
            }
        }
        dawdle(&random);
    }
}

static void answer_bursts(int set) {
    uint64_t random = seeded(SERVER, 0);
    for (int open = MANY; open > 0;) {
        struct epoll_event events[MANY];
        int count = epoll_wait(set, events, 1 + next(&random) % MANY, -1);
        require(count > 0, "epoll_wait");
        for (int i = 0; i < count; i++) {
            if (!answer_all(events[i].data.fd, &random)) {
                require(close(events[i].data.fd) == 0, "close");
                open--;
            }
        }
        dawdle(&random);
    }
}

CASE(bursts_on_many_of_a_set, BARE | V6 | RACE) {
    int ends[MANY], set = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < MANY; i++) {
        int end = ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(end, side);
        struct epoll_event event = {EPOLLIN | (i % 2 ? (unsigned)EPOLLET : 0), {.fd = end}};
        require(side == CLIENT || epoll_ctl(set, EPOLL_CTL_ADD, end, &event) == 0, "add");
    }
    if (side == SERVER) {
        answer_bursts(set);
    } else {
        ask_in_bursts(ends);
        for (int i = 0; i < MANY; i++)
            require(close(ends[i]) == 0, "close");
    }
    note("all was answered");
}

// Two processes hold a connection in turn, and tell each other the position in the stream. Both see
// its end.
static void read_in_turn(int fd, int own, int begins, uint64_t *random,
                         void (*hand)(int over, int fd), int (*get)(int over, int fd)) {
    uint64_t at = 0, length = length_of(CLIENT) / 4;
    for (int turn = 0, was_over = 0; !was_over; turn++) {
        if (turn || !begins) {
            require(read(own, &at, sizeof at) == sizeof at, "a turn");
            fd = get(own, fd);
        }
        was_over = at == length;
        uint64_t until = at + next(random) % 20000;
        until = until < length ? until : length;
        while (at < until)
            at += check_some(fd, at, until - at, random);
        if (at == length)
            check_end(fd);
        if (was_over)
            break;
        require(write(own, &at, sizeof at) == sizeof at, "to hand on");
        hand(own, fd);
        was_over = at == length;
    }
}

static void stream_to_those(int fd, enum side side) {
    uint64_t random = seeded(side, 4);
    send_stream(fd, 0, length_of(CLIENT) / 4, &random);
    require(shutdown(fd, SHUT_WR) == 0, "shutdown");
    meet(side, 1);
}

static void hand_it(int over, int fd) {
    give(over, fd);
    close(fd);
}

static int get_it(int over, int fd) {
    (void)fd;
    return taken(over);
}

static void hand_nothing(int over, int fd) { (void)over, (void)fd; }

static int get_nothing(int over, int fd) {
    (void)over;
    return fd;
}

CASE(passed_around_meanwhile, WARM | V6 | RACE) {
    int pair[2];
    uint64_t random = seeded(side, 3);
    if (side == CLIENT) {
        stream_to_those(fd, side);
        return;
    }
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        close(fd);
        read_in_turn(-1, pair[1], 0, &random, hand_it, get_it);
        _exit(0);
    }
    close(pair[1]);
    read_in_turn(fd, pair[0], 1, &random, hand_it, get_it);
    note_end("child", child);
    meet(side, 1);
}

CASE(forked_and_read_in_turn, WARM | V6 | RACE) {
    int pair[2];
    uint64_t random = seeded(side, 3);
    if (side == CLIENT) {
        stream_to_those(fd, side);
        return;
    }
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        read_in_turn(fd, pair[1], 0, &random, hand_nothing, get_nothing);
        _exit(0);
    }
    close(pair[1]);
    read_in_turn(fd, pair[0], 1, &random, hand_nothing, get_nothing);
    note_end("child", child);
    meet(side, 1);
}
