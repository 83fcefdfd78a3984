// SPDX-License-Identifier: Apache-2.0 OR MIT
// Epoll sets with several members: connections and other descriptors, nested sets, several waiters,
// few slots for events, waiting and wake-ups.

#include "case.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

static char in[200000];

static int add(int epoll, int fd, unsigned events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

CASE(connections_and_other_descriptors, WARM | V6 | RACE | MIXED) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(5);
        TRY(send(fd, "x", 1, 0));
        meet(side, 3);
        return;
    }
    int epoll = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK), ends[2];
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    require(pipe(ends) == 0, "pipe");
    add(epoll, fd, EPOLLIN, 1);
    add(epoll, event, EPOLLIN, 2);
    add(epoll, ends[0], EPOLLIN | EPOLLET, 3);
    add(epoll, timer, EPOLLIN, 4);
    note_events("idle", epoll, 0);
    struct itimerspec soon = {{0, 0}, {0, 5000000}};
    timerfd_settime(timer, 0, &soon, NULL);
    note_events("the timer", epoll, PATIENCE_MS);
    TRY(read(timer, in, 8));
    TRY(write(ends[1], "x", 1));
    note_events("the pipe", epoll, PATIENCE_MS);
    note_events("the pipe, once", epoll, 0);
    reach(side, 1);
    note_events("the connection", epoll, PATIENCE_MS);
    TRY(eventfd_write(event, 1));
    // A busy set checks the kernel only from time to time.
    sleep_ms(1);
    note_events("connection and event", epoll, -1);
    TRY(recv(fd, in, 10, 0));
    note_events("the event", epoll, -1);
    TRY(read(event, in, 8));
    note_events("nothing", epoll, 10);
    meet(side, 3);
}

CASE(twenty_connections_and_one_is_ready, BARE | WARM | RACE) {
    int ends[20], epoll = epoll_create1(0);
    for (int i = 0; i < 20; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(ends[i], side);
        add(epoll, ends[i], i % 2 ? EPOLLIN : EPOLLIN | EPOLLET, i);
    }
    for (int round = 0; round < 60; round++) {
        int chosen = round * 7 % 20;
        if (side == CLIENT) {
            await_peer(side, round + 1);
            require(send(ends[chosen], "x", 1, 0) == 1, "send");
            continue;
        }
        reach(side, round + 1);
        note_events("round", epoll, PATIENCE_MS);
        require(recv(ends[chosen], in, 10, 0) == 1, "receive");
    }
    meet(side, 100);
}

CASE(one_place_for_events_is_fair, BARE | WARM) {
    int ends[5], epoll = epoll_create1(0), seen[5] = {0};
    for (int i = 0; i < 5; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(ends[i], side);
        add(epoll, ends[i], EPOLLIN, i);
    }
    for (int i = 0; side == CLIENT && i < 5; i++)
        require(send(ends[i], "data", 4, 0) == 4, "send");
    meet(side, 1);
    for (int i = 0; side == SERVER && i < 5; i++)
        await_bytes(ends[i], 4);
    // No bytes are read; still every connection is reported in turn.
    for (int i = 0; side == SERVER && i < 50; i++) {
        struct epoll_event event;
        require(epoll_wait(epoll, &event, 1, PATIENCE_MS) == 1, "epoll_wait");
        seen[event.data.u64]++;
    }
    note("seen: %d %d %d %d %d", seen[0] > 0, seen[1] > 0, seen[2] > 0, seen[3] > 0, seen[4] > 0);
    meet(side, 2);
}

CASE(copies_of_a_set, WARM | V6) {
    // Each copy refers to the set; closing the first number does not matter.
    int epoll = epoll_create1(0), copy = dup(epoll), other = fcntl(epoll, F_DUPFD, 50);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x5566778899};
    TRY(epoll_ctl(copy, EPOLL_CTL_ADD, fd, &event));
    TRY(close(epoll));
    note_events("nothing", other, 0);
    meet(side, 1);
    TRY(send(fd, "x", 1, 0));
    note_events("one copy", copy, 1000);
    note_events("the other", other, 1000);
    TRY(close(copy));
    event.data.u64 = 0x99;
    TRY(epoll_ctl(other, EPOLL_CTL_MOD, fd, &event));
    note_events("modified", other, 1000);
    TRY(recv(fd, event.data.ptr = &(char){0}, 1, 0));
    note_events("nothing again", other, 0);
    TRY(dup2(other, 70));
    TRY(close(other));
    TRY(epoll_ctl(70, EPOLL_CTL_DEL, fd, NULL));
    meet(side, 2);
}

CASE(sets_in_sets, WARM | RACE) {
    if (side == CLIENT) {
        for (int i = 1; i <= 2; i++) {
            await_peer(side, i);
            sleep_ms(5);
            TRY(send(fd, "x", 1, 0));
        }
        meet(side, 3);
        return;
    }
    int inner = epoll_create1(0), outer = epoll_create1(0);
    TRY(add(inner, fd, EPOLLIN, 1));
    TRY(add(outer, inner, EPOLLIN, 2));
    note_events("idle", outer, 0);
    reach(side, 1);
    note_events("data", outer, PATIENCE_MS);
    note_events("in the inner set", inner, 0);
    TRY(recv(fd, in, 10, 0));
    note_events("read", outer, 0);
    struct pollfd asked = {inner, POLLIN, 0};
    TRY(poll(&asked, 1, 0));
    reach(side, 2);
    TRY(poll(&asked, 1, PATIENCE_MS));
    note("poll: %s", events_text(asked.revents));
    meet(side, 3);
}

CASE(a_connection_in_two_sets, WARM | RACE) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(5);
        TRY(send(fd, "x", 1, 0));
        meet(side, 2);
        return;
    }
    int one = epoll_create1(0), other = epoll_create1(0);
    TRY(add(one, fd, EPOLLIN, 1));
    TRY(add(other, fd, EPOLLIN | EPOLLOUT | EPOLLET, 2));
    note_events("other", other, 0);
    reach(side, 1);
    note_events("one", one, PATIENCE_MS);
    note_events("other", other, PATIENCE_MS);
    note_events("other", other, 0);
    note_events("one", one, 0);
    TRY(recv(fd, in, 10, 0));
    note_events("one", one, 0);
    meet(side, 2);
}

struct waiter {
    int epoll;
    int result;
    struct epoll_event event;
    // Descriptor to which it reports its wake-up; 0: none.
    int tells;
};

static void *wait_for_event(void *given) {
    struct waiter *waiter = given;
    waiter->result = epoll_wait(waiter->epoll, &waiter->event, 1, PATIENCE_MS);
    if (waiter->tells)
        require(write(waiter->tells, "w", 1) == 1, "write");
    return NULL;
}

CASE(a_thread_waits_while_another_registers, WARM | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "x", 1, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 1);
    struct waiter waiter = {epoll_create1(0), 0, {0}};
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_event, &waiter);
    sleep_ms(20);
    TRY(add(waiter.epoll, fd, EPOLLIN, 5));
    pthread_join(thread, NULL);
    note("%d %s", waiter.result, events_text(waiter.event.events));
    meet(side, 1);
}

CASE(a_thread_waits_while_another_modifies, WARM | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "x", 1, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 1);
    struct waiter waiter = {epoll_create1(0), 0, {0}};
    TRY(add(waiter.epoll, fd, 0, 5));
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_event, &waiter);
    sleep_ms(20);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 6};
    TRY(epoll_ctl(waiter.epoll, EPOLL_CTL_MOD, fd, &event));
    pthread_join(thread, NULL);
    note("%d %s", waiter.result, events_text(waiter.event.events));
    meet(side, 1);
}

CASE(two_waiters_and_one_exclusive_event, WARM | RACE) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(20);
        TRY(send(fd, "x", 1, 0));
        meet(side, 2);
        return;
    }
    struct waiter waiters[2];
    pthread_t threads[2];
    int woken[2], over[2];
    require(pipe(woken) == 0 && pipe(over) == 0, "pipe");
    for (int i = 0; i < 2; i++) {
        waiters[i] = (struct waiter){epoll_create1(0), 0, {0}, woken[1]};
        TRY(add(waiters[i].epoll, fd, EPOLLIN | EPOLLEXCLUSIVE, 5));
        TRY(add(waiters[i].epoll, over[0], EPOLLIN, 6));
        pthread_create(&threads[i], NULL, wait_for_event, &waiters[i]);
    }
    reach(side, 1);
    char byte;
    require(read(woken[0], &byte, 1) == 1 && write(over[1], "o", 1) == 1, "read and write");
    int count = 0;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        count += waiters[i].result == 1 && waiters[i].event.data.u64 == 5;
    }
    // At least one is woken by the bytes; the other may be.
    note("woken: %d", count >= 1);
    meet(side, 2);
}

CASE(times_that_run_out, WARM | V6) {
    int epoll = epoll_create1(0);
    TRY(add(epoll, fd, EPOLLIN, 1));
    struct epoll_event event;
    int64_t begin = now_ms();
    TRY(epoll_wait(epoll, &event, 1, 30));
    note("long enough: %d", now_ms() - begin >= 29);
    begin = now_ms();
    TRY(epoll_pwait(epoll, &event, 1, 30, NULL));
    note("long enough: %d", now_ms() - begin >= 29);
    begin = now_ms();
    struct timespec time = {0, 30000000};
    TRY(epoll_pwait2(epoll, &event, 1, &time, NULL));
    note("long enough: %d", now_ms() - begin >= 29);
    meet(side, 1);
}

static volatile sig_atomic_t alarms;
static void count_alarm(int number) {
    (void)number;
    alarms++;
}

CASE(masks_while_waiting, WARM) {
    int epoll = epoll_create1(0);
    TRY(add(epoll, fd, EPOLLIN, 1));
    struct epoll_event event;
    signal(SIGUSR1, count_alarm);
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    raise(SIGUSR1);
    TRY(epoll_wait(epoll, &event, 1, 10));
    note("alarms: %d", alarms);
    TRY(epoll_pwait(epoll, &event, 1, PATIENCE_MS, &none));
    note("alarms: %d", alarms);
    TRY(epoll_pwait(epoll, &event, 1, 10, &none));
    raise(SIGUSR1);
    struct pollfd asked = {fd, POLLIN, 0};
    TRY(ppoll(&asked, 1, &(struct timespec){PATIENCE_MS / 1000, 0}, &none));
    note("alarms: %d", alarms);
    raise(SIGUSR1);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    TRY(pselect(fd + 1, &set, NULL, NULL, &(struct timespec){PATIENCE_MS / 1000, 0}, &none));
    note("alarms: %d", alarms);
    sigprocmask(SIG_SETMASK, NULL, &none);
    note("blocked as before: %d", sigismember(&none, SIGUSR1));
    meet(side, 1);
}

CASE(an_echo_server_of_ten_connections, BARE | WARM | V6 | MIXED) {
    int ends[10];
    for (int i = 0; i < 10; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(ends[i], side);
    }
    if (side == CLIENT) {
        uint64_t sum = CHECKSUM_BEGIN;
        for (int i = 0; i < 500; i++) {
            size_t length = 1 + i * 101 % 5000;
            fill(in, length, i);
            require(send_all(ends[i % 10], in, length) == length, "send");
            require(receive_all(ends[i % 10], in, length) == length, "receive");
            sum = checksum(sum, in, length);
        }
        note("received %016llx", (unsigned long long)sum);
        for (int i = 0; i < 10; i++)
            close(ends[i]);
        return;
    }
    int epoll = epoll_create1(0);
    for (int i = 0; i < 10; i++) {
        set_blocking(ends[i], 0);
        add(epoll, ends[i], EPOLLIN | EPOLLRDHUP | EPOLLET, ends[i]);
    }
    for (int open = 10; open > 0;) {
        struct epoll_event events[4];
        int ready = epoll_wait(epoll, events, 4, PATIENCE_MS);
        require(ready > 0, "epoll_wait");
        for (int i = 0; i < ready; i++) {
            int end = (int)events[i].data.u64;
            ssize_t got;
            while ((got = recv(end, in, sizeof in, 0)) > 0)
                require(send_all(end, in, got) == (size_t)got, "send");
            if (got == 0) {
                close(end);
                open--;
            }
        }
    }
    note("all closed");
}

// A server that is never idle, with most connections silent for long: each is reported when it
// sends.
CASE(most_of_many_connections_are_silent, BARE | WARM | RACE) {
    enum { MANY = 100, BUSY = 4, ROUNDS = 2500 };
    int ends[MANY];
    for (int i = 0; i < MANY; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        require(ends[i] >= 0, "a connection");
        warm_up(ends[i], side);
    }
    if (side == CLIENT) {
        // Two messages are in flight at any time, so that the server is always busy.
        uint32_t sent[2] = {0, 0}, got;
        int at[2] = {0, 1};
        for (uint32_t round = 0; round < ROUNDS; round++) {
            int way = round % 2;
            if (round >= 2) {
                require(receive_all(ends[at[way]], &got, sizeof got) == sizeof got, "receive");
                require(got == sent[way], "the answer");
            }
            int others = BUSY + way + 2 * (round * 7919u % ((MANY - BUSY) / 2));
            at[way] = round / 2 % 8 ? (int)(round % BUSY) : others;
            sent[way] = round;
            require(send_all(ends[at[way]], &round, sizeof round) == sizeof round, "send");
        }
        for (int way = 0; way < 2; way++)
            require(receive_all(ends[at[way]], &got, sizeof got) == sizeof got, "the last");
        note("%d answers", ROUNDS);
        meet(side, 1);
        return;
    }
    int epoll = epoll_create1(0);
    for (int i = 0; i < MANY; i++)
        add(epoll, ends[i], i / 2 % 2 ? EPOLLIN : EPOLLIN | EPOLLET, ends[i]);
    for (int round = 0; round < ROUNDS;) {
        struct epoll_event events[8];
        int ready = epoll_wait(epoll, events, 8, PATIENCE_MS);
        require(ready > 0, "epoll_wait");
        for (int i = 0; i < ready; i++, round++) {
            uint32_t number;
            require(receive_all((int)events[i].data.u64, &number, sizeof number) == sizeof number,
                    "a number");
            require(send_all((int)events[i].data.u64, &number, sizeof number) == sizeof number,
                    "the answer");
        }
    }
    note("%d numbers", ROUNDS);
    meet(side, 1);
}

// Many connections used in turn ring by marks that the set reads. Then the server waits for one of
// them in another way, which marks do not wake.
CASE(many_in_turn_and_one_is_waited_for_otherwise, BARE | WARM | RACE) {
    enum { MANY = 40, PASSES = 4, WAYS = 7 };
    int ends[MANY];
    for (int i = 0; i < MANY; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        require(ends[i] >= 0, "a connection");
        warm_up(ends[i], side);
    }
    char byte;
    if (side == CLIENT) {
        for (int way = 0; way < WAYS; way++) {
            for (int i = 0; i < PASSES * MANY; i++) {
                require(send(ends[i % MANY], "a", 1, 0) == 1, "send");
                require(recv(ends[i % MANY], &byte, 1, 0) == 1 && byte == 'a', "the answer");
            }
            // By then the waiting thread sleeps.
            sleep_ms(way % 2 ? 20 : 2);
            require(send(ends[way], "b", 1, 0) == 1, "send");
            require(recv(ends[way], &byte, 1, 0) == 1 && byte == 'b', "the other answer");
        }
        meet(side, 1);
        return;
    }
    int set = epoll_create1(0), outer = epoll_create1(0);
    for (int i = 0; i < MANY; i++)
        add(set, ends[i], i % 3 ? EPOLLIN : EPOLLIN | EPOLLET, i);
    struct epoll_event event;
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < PASSES * MANY; i++) {
            require(epoll_wait(set, &event, 1, PATIENCE_MS) == 1, "epoll_wait");
            int chosen = (int)event.data.u64;
            require(recv(ends[chosen], &byte, 1, 0) == 1 && byte == 'a', "a byte");
            require(send(ends[chosen], &byte, 1, 0) == 1, "an answer");
        }
        pid_t child = 0;
        struct pollfd one = {.fd = way == 2 ? set : ends[way], .events = POLLIN};
        if (way == 0) {
            require(epoll_ctl(set, EPOLL_CTL_DEL, ends[way], NULL) == 0, "delete");
        } else if (way == 1 || way == 2) {
            require(poll(&one, 1, PATIENCE_MS) == 1, "poll");
        } else if (way == 3) {
            add(outer, set, EPOLLIN, 99);
            require(epoll_wait(outer, &event, 1, PATIENCE_MS) == 1, "outer");
            require(event.data.u64 == 99, "outer");
            require(epoll_ctl(outer, EPOLL_CTL_DEL, set, NULL) == 0, "delete the set");
        } else if (way == 4) {
            require(epoll_wait(set, &event, 1, PATIENCE_MS) == 1 && event.data.u64 == 4, "the set");
        } else if (way == 6) {
            child = fork();
            if (child == 0) {
                require(epoll_wait(set, &event, 1, PATIENCE_MS) == 1, "the child");
                require(event.data.u64 == 6, "the child");
            }
        }
        if (child == 0) {
            require(recv(ends[way], &byte, 1, 0) == 1 && byte == 'b', "another byte");
            require(send(ends[way], &byte, 1, 0) == 1, "another answer");
            if (way == 6)
                _exit(0);
        } else {
            int status;
            require(waitpid(child, &status, 0) == child && status == 0, "the child's end");
        }
        if (way == 0)
            add(set, ends[way], EPOLLIN, way);
    }
    note("%d ways", WAYS);
    meet(side, 1);
}

// Wake-up settings of a closed connection must not apply to the next one in its place.
CASE(many_in_turn_close_and_others_come, BARE | WARM | RACE) {
    enum { MANY = 40, PASSES = 6, TIMES = 3 };
    int set = epoll_create1(0), ends[MANY];
    char byte;
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < MANY; i++) {
            ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
            require(ends[i] >= 0, "a connection");
            warm_up(ends[i], side);
            if (side == SERVER)
                add(set, ends[i], EPOLLIN, i);
        }
        for (int i = 0; i < PASSES * MANY; i++) {
            int chosen = i % MANY;
            if (side == CLIENT) {
                require(send(ends[chosen], "a", 1, 0) == 1, "send");
                require(recv(ends[chosen], &byte, 1, 0) == 1 && byte == 'a', "the answer");
                continue;
            }
            struct epoll_event event;
            require(epoll_wait(set, &event, 1, PATIENCE_MS) == 1, "epoll_wait");
            require((int)event.data.u64 == chosen, "whose turn it is");
            require(recv(ends[chosen], &byte, 1, 0) == 1 && byte == 'a', "a byte");
            require(send(ends[chosen], &byte, 1, 0) == 1, "an answer");
        }
        note("%d connections", MANY);
        meet(side, time + 1);
        for (int i = 0; i < MANY; i++)
            close(ends[i]);
    }
}

CASE(two_sets_and_two_copies, WARM | RACE) {
    if (side == CLIENT) {
        for (int i = 1; i <= 3; i++) {
            await_peer(side, i);
            TRY(send(fd, "x", 1, 0));
        }
        meet(side, 4);
        return;
    }
    int one = epoll_create1(0), other = epoll_create1(0), copy = dup(fd);
    TRY(add(one, fd, EPOLLIN, 1));
    TRY(add(other, copy, EPOLLIN | EPOLLET, 2));
    reach(side, 1);
    note_events("one", one, PATIENCE_MS);
    note_events("other", other, PATIENCE_MS);
    TRY(close(copy));
    TRY(recv(fd, in, 10, 0));
    reach(side, 2);
    note_events("one", one, PATIENCE_MS);
    // The file description is still open, so the kernel also reports for the closed copy.
    note_events("other", other, PATIENCE_MS);
    TRY(recv(fd, in, 10, 0));
    TRY(close(other));
    reach(side, 3);
    note_events("one", one, PATIENCE_MS);
    TRY(recv(fd, in, 10, 0));
    meet(side, 4);
}
