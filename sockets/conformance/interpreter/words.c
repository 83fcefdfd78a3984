// SPDX-License-Identifier: Apache-2.0 OR MIT
// Names of numbers in programs.
#include "steps.h"

#include <linux/close_range.h>
#include <sys/epoll.h>

// An option, with its level.
#define SOCKET_OPTION(name) {#name, SOL_SOCKET << 16 | name}
#define TCP_OPTION(name) {#name, IPPROTO_TCP << 16 | name}

static const struct {
    const char *name;
    long number;
} words[] = {
    {"PEEK", MSG_PEEK},
    {"WAITALL", MSG_WAITALL},
    {"DONTWAIT", MSG_DONTWAIT},
    {"NOSIGNAL", MSG_NOSIGNAL},
    {"TRUNC", MSG_TRUNC},
    {"OOB", MSG_OOB},
    {"MORE", MSG_MORE},
    {"WAITFORONE", MSG_WAITFORONE},
    {"IN", EPOLLIN},
    {"OUT", EPOLLOUT},
    {"PRI", EPOLLPRI},
    {"RDHUP", EPOLLRDHUP},
    {"ET", (long)EPOLLET},
    {"ONESHOT", EPOLLONESHOT},
    {"EXCLUSIVE", EPOLLEXCLUSIVE},
    // One higher than the real values, since 0 is also the value of a missing argument.
    {"RD", SHUT_RD + 1},
    {"WR", SHUT_WR + 1},
    {"RDWR", SHUT_RDWR + 1},
    {"INET", AF_INET},
    {"INET6", AF_INET6},
    {"UNIX", AF_UNIX},
    {"NONBLOCK", SOCK_NONBLOCK},
    {"CLOEXEC", SOCK_CLOEXEC},
    {"RANGE_CLOEXEC", CLOSE_RANGE_CLOEXEC},
    SOCKET_OPTION(SO_ERROR),
    SOCKET_OPTION(SO_TYPE),
    SOCKET_OPTION(SO_DOMAIN),
    SOCKET_OPTION(SO_ACCEPTCONN),
    SOCKET_OPTION(SO_KEEPALIVE),
    SOCKET_OPTION(SO_OOBINLINE),
    SOCKET_OPTION(SO_RCVTIMEO),
    SOCKET_OPTION(SO_SNDTIMEO),
    SOCKET_OPTION(SO_LINGER),
    SOCKET_OPTION(SO_RCVLOWAT),
    SOCKET_OPTION(SO_PASSCRED),
    TCP_OPTION(TCP_NODELAY),
};

int number_of_word(const char *word, size_t length, long *number) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].name) == length && strncmp(words[i].name, word, length) == 0) {
            *number = words[i].number;
            return 1;
        }
    }
    return 0;
}
