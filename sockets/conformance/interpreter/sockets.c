// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls that make sockets, and operations on their descriptors, names and options.
#include "steps.h"

#include <arpa/inet.h>
#include <linux/close_range.h>

// socket: NAME FAMILY [FLAGS]
static void do_socket(struct call *call) {
    int fd = socket(argument(call, 1), SOCK_STREAM | argument(call, 2), 0);
    say_descriptor(call, argument(call, 0), fd);
}

// pair: NAME NAME
static void do_pair(struct call *call) {
    int pair[2];
    long result = socketpair(AF_UNIX, SOCK_STREAM | argument(call, 2), 0, pair);
    if (result < 0) {
        say_result(call, result);
        return;
    }
    say_descriptor(call, argument(call, 0), pair[0]);
    say(call, " ");
    say_descriptor(call, argument(call, 1), pair[1]);
}

// bind: NAME FAMILY; to a port or name that the kernel chooses, on this machine
static void do_bind(struct call *call) {
    struct sockaddr_storage here = {.ss_family = argument(call, 1)};
    socklen_t length = sizeof here.ss_family;
    int fd = descriptor(call, 0);
    if (here.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&here)->sin6_addr = in6addr_loopback;
        length = sizeof(struct sockaddr_in6);
    } else if (here.ss_family == AF_INET) {
        ((struct sockaddr_in *)&here)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        length = sizeof(struct sockaddr_in);
    }
    say_result(call, bind(fd, (struct sockaddr *)&here, length));
    long name = argument(call, 0) % NAMES;
    shared->address_lengths[name] = sizeof here;
    getsockname(fd, (void *)&shared->addresses[name], &shared->address_lengths[name]);
}

// listen: NAME BACKLOG
static void do_listen(struct call *call) {
    say_result(call, listen(descriptor(call, 0), argument(call, 1)));
}

// Disables Nagle's algorithm: otherwise arrival times would depend on timers.
static void hurry(int fd) { setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); }

// connect: NAME LISTENER
static void do_connect(struct call *call) {
    int fd = descriptor(call, 0), saved;
    long to = argument(call, 1) % NAMES;
    long result = connect(fd, (void *)&shared->addresses[to], shared->address_lengths[to]);
    saved = errno;
    hurry(fd);
    errno = saved;
    say_result(call, result);
}

static unsigned long reused(void) {
    return freeport_reused_connections ? freeport_reused_connections() : 0;
}

// accept: NAME LISTENER [FLAGS]
static void do_accept(struct call *call) {
    unsigned long before = reused();
    int fd = accept4(descriptor(call, 1), NULL, NULL, argument(call, 2)), saved = errno;
    atomic_fetch_add(&shared->reused, reused() > before);
    hurry(fd);
    errno = saved;
    say_descriptor(call, argument(call, 0), fd);
}

// shutdown: NAME HALVES
static void do_shutdown(struct call *call) {
    say_result(call, shutdown(descriptor(call, 0), argument(call, 1) - 1));
}

// close: NAME
static void do_close(struct call *call) { say_result(call, close(descriptor(call, 0))); }

// close_range: FIRST LAST [FLAGS]
static void do_close_range(struct call *call) {
    int first = descriptor(call, 0), last = descriptor(call, 1);
    if (first < 0 || last < 0)
        say(call, "no range");
    else
        say_result(call, close_range(first, last, argument(call, 2)));
}

// dup: NAME OLD, and the other calls that copy a descriptor; dup2, dup3: replace NAME
static void do_dup(struct call *call) {
    say_descriptor(call, argument(call, 0), dup(descriptor(call, 1)));
}

static void do_dupfd(struct call *call) {
    int least = argument(call, 2);
    say_descriptor(call, argument(call, 0), fcntl(descriptor(call, 1), F_DUPFD, least));
}

static void do_dupfd_cloexec(struct call *call) {
    int least = argument(call, 2);
    say_descriptor(call, argument(call, 0), fcntl(descriptor(call, 1), F_DUPFD_CLOEXEC, least));
}

static void do_dup2(struct call *call) {
    say_result(call, dup2(descriptor(call, 1), descriptor(call, 0)));
}

static void do_dup3(struct call *call) {
    say_result(call, dup3(descriptor(call, 1), descriptor(call, 0), O_CLOEXEC));
}

// nonblock, fionbio, cloexec: NAME 0|1; getfl, getfd: NAME
static void do_nonblock(struct call *call) {
    int fd = descriptor(call, 0), flags = fcntl(fd, F_GETFL);
    say_result(call, fcntl(fd, F_SETFL, argument(call, 1) ? flags | O_NONBLOCK
                                                          : flags & ~O_NONBLOCK));
}

static void do_fionbio(struct call *call) {
    int wanted = argument(call, 1);
    say_result(call, ioctl(descriptor(call, 0), FIONBIO, &wanted));
}

static void do_cloexec(struct call *call) {
    say_result(call, fcntl(descriptor(call, 0), F_SETFD, argument(call, 1) ? FD_CLOEXEC : 0));
}

static void do_getfl(struct call *call) { say_result(call, fcntl(descriptor(call, 0), F_GETFL)); }
static void do_getfd(struct call *call) { say_result(call, fcntl(descriptor(call, 0), F_GETFD)); }

// setopt: NAME OPTION VALUE [SECOND]; times in milliseconds
static void do_setopt(struct call *call) {
    int fd = descriptor(call, 0), value = argument(call, 2);
    int level = argument(call, 1) >> 16, option = argument(call, 1) & 0xffff;
    struct timeval time = {value / 1000, value % 1000 * 1000};
    struct linger linger = {value, argument(call, 3)};
    int is_socket = level == SOL_SOCKET;
    if (is_socket && (option == SO_RCVTIMEO || option == SO_SNDTIMEO))
        say_result(call, setsockopt(fd, level, option, &time, sizeof time));
    else if (is_socket && option == SO_LINGER)
        say_result(call, setsockopt(fd, level, option, &linger, sizeof linger));
    else
        say_result(call, setsockopt(fd, level, option, &value, sizeof value));
}

// getopt: NAME OPTION
static void do_getopt(struct call *call) {
    int words[8] = {0};
    socklen_t length = sizeof words;
    int level = argument(call, 1) >> 16, option = argument(call, 1) & 0xffff;
    say_result(call, getsockopt(descriptor(call, 0), level, option, words, &length));
    for (unsigned i = 0; errno == 0 && i < length / sizeof *words; i++)
        say(call, " %d", words[i]);
}

// sockname, peername: NAME
static void say_name(struct call *call, long result, const void *name, socklen_t length) {
    say_result(call, result);
    if (result < 0)
        return;
    say(call, ", %u bytes of family %d", length, ((const struct sockaddr *)name)->sa_family);
    for (int i = 0; i < NAMES && length > sizeof(sa_family_t); i++) {
        if (length == shared->address_lengths[i] && !memcmp(name, &shared->addresses[i], length))
            say(call, ", where s%d is", i);
    }
}

static void do_sockname(struct call *call) {
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof name;
    say_name(call, getsockname(descriptor(call, 0), (void *)&name, &length), &name, length);
}

static void do_peername(struct call *call) {
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof name;
    say_name(call, getpeername(descriptor(call, 0), (void *)&name, &length), &name, length);
}

const struct operation socket_operations[] = {
    {"socket", do_socket},
    {"pair", do_pair},
    {"bind", do_bind},
    {"listen", do_listen},
    {"connect", do_connect},
    {"accept", do_accept},
    {"shutdown", do_shutdown},
    {"close", do_close},
    {"close_range", do_close_range},
    {"dup", do_dup},
    {"dupfd", do_dupfd},
    {"dupfd_cloexec", do_dupfd_cloexec},
    {"dup2", do_dup2},
    {"dup3", do_dup3},
    {"nonblock", do_nonblock},
    {"fionbio", do_fionbio},
    {"cloexec", do_cloexec},
    {"getfl", do_getfl},
    {"getfd", do_getfd},
    {"setopt", do_setopt},
    {"getopt", do_getopt},
    {"sockname", do_sockname},
    {"peername", do_peername},
    {NULL, NULL},
};
