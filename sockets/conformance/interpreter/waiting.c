// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls that wait for several descriptors. Events are recorded by descriptor name, sorted.
#include "steps.h"

#include <sys/epoll.h>
#include <sys/select.h>

// poll, ppoll: MILLISECONDS (NAME EVENTS)...
static int prepare_poll(struct call *call, struct pollfd *asked) {
    int count = 0;
    for (int at = 1; at + 1 < call->count; at += 2)
        asked[count++] = (struct pollfd){descriptor(call, at), argument(call, at + 1), 0};
    return count;
}

static void say_polled(struct call *call, const struct pollfd *asked, int count, int ready) {
    say_result(call, ready);
    for (int i = 0; i < count && ready > 0; i++)
        say(call, " s%ld:%s", argument(call, 1 + 2 * i), events_text(asked[i].revents));
}

static void do_poll(struct call *call) {
    struct pollfd asked[ARGUMENTS];
    int count = prepare_poll(call, asked);
    say_polled(call, asked, count, poll(asked, count, argument(call, 0)));
}

static void do_ppoll(struct call *call) {
    struct pollfd asked[ARGUMENTS];
    int count = prepare_poll(call, asked);
    long time = argument(call, 0);
    struct timespec limit = {time / 1000, time % 1000 * 1000000};
    say_polled(call, asked, count, ppoll(asked, count, time < 0 ? NULL : &limit, NULL));
}

// select, pselect: MILLISECONDS (NAME EVENTS)...; events are IN, OUT and PRI
static void do_select_as(struct call *call, int by_pselect) {
    fd_set sets[3];
    static const short kinds[3] = {POLLIN, POLLOUT, POLLPRI};
    int highest = -1, ready;
    for (int kind = 0; kind < 3; kind++)
        FD_ZERO(&sets[kind]);
    for (int at = 1; at + 1 < call->count; at += 2) {
        int fd = descriptor(call, at);
        for (int kind = 0; kind < 3 && fd >= 0; kind++) {
            if (argument(call, at + 1) & kinds[kind])
                FD_SET(fd, &sets[kind]);
        }
        highest = fd > highest ? fd : highest;
    }
    long time = argument(call, 0);
    struct timeval limit = {time / 1000, time % 1000 * 1000};
    struct timespec fine = {time / 1000, time % 1000 * 1000000};
    if (by_pselect)
        ready = pselect(highest + 1, &sets[0], &sets[1], &sets[2], &fine, NULL);
    else
        ready = select(highest + 1, &sets[0], &sets[1], &sets[2], &limit);
    say_result(call, ready);
    for (int at = 1; at + 1 < call->count && ready > 0; at += 2) {
        int fd = descriptor(call, at);
        unsigned events = 0;
        for (int kind = 0; kind < 3 && fd >= 0; kind++)
            events |= FD_ISSET(fd, &sets[kind]) ? kinds[kind] : 0;
        say(call, " s%ld:%s", argument(call, at), events_text(events));
    }
}

static void do_select(struct call *call) { do_select_as(call, 0); }
static void do_pselect(struct call *call) { do_select_as(call, 1); }

// epoll: NAME
static void do_epoll(struct call *call) {
    say_descriptor(call, argument(call, 0), epoll_create1(0));
}

// epoll_add, epoll_mod, epoll_del: SET NAME [EVENTS]
static void control(struct call *call, int operation) {
    struct epoll_event event = {argument(call, 2), {.u64 = argument(call, 1)}};
    say_result(call, epoll_ctl(descriptor(call, 0), operation, descriptor(call, 1), &event));
}

static void do_epoll_add(struct call *call) { control(call, EPOLL_CTL_ADD); }
static void do_epoll_mod(struct call *call) { control(call, EPOLL_CTL_MOD); }
static void do_epoll_del(struct call *call) { control(call, EPOLL_CTL_DEL); }

static int compare_events(const void *one, const void *other) {
    const struct epoll_event *first = one, *second = other;
    return (first->data.u64 > second->data.u64) - (first->data.u64 < second->data.u64);
}

// A busy set checks the kernel's descriptors only from time to time.
static int set_of(struct call *call) {
    usleep(200);
    return descriptor(call, 0);
}

static void say_events(struct call *call, struct epoll_event *events, int ready) {
    say_result(call, ready);
    if (ready > 0)
        qsort(events, ready, sizeof *events, compare_events);
    for (int i = 0; i < ready; i++)
        say(call, " s%llu:%s", (unsigned long long)events[i].data.u64,
            events_text(events[i].events));
}

enum { EVENTS = 40 };

// epoll_wait, epoll_pwait, epoll_pwait2: SET MILLISECONDS
static void do_epoll_wait(struct call *call) {
    struct epoll_event events[EVENTS];
    int set = set_of(call);
    say_events(call, events, epoll_wait(set, events, EVENTS, argument(call, 1)));
}

static void do_epoll_pwait(struct call *call) {
    struct epoll_event events[EVENTS];
    int set = set_of(call);
    say_events(call, events, epoll_pwait(set, events, EVENTS, argument(call, 1), NULL));
}

static void do_epoll_pwait2(struct call *call) {
    struct epoll_event events[EVENTS];
    int set = set_of(call);
    long time = argument(call, 1);
    struct timespec limit = {time / 1000, time % 1000 * 1000000};
    say_events(call, events, epoll_pwait2(set, events, EVENTS, time < 0 ? NULL : &limit, NULL));
}

const struct operation waiting_operations[] = {
    {"poll", do_poll},
    {"ppoll", do_ppoll},
    {"select", do_select},
    {"pselect", do_pselect},
    {"epoll", do_epoll},
    {"epoll_add", do_epoll_add},
    {"epoll_mod", do_epoll_mod},
    {"epoll_del", do_epoll_del},
    {"epoll_wait", do_epoll_wait},
    {"epoll_pwait", do_epoll_pwait},
    {"epoll_pwait2", do_epoll_pwait2},
    {NULL, NULL},
};
