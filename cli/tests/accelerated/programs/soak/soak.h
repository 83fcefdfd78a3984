// SPDX-License-Identifier: Apache-2.0 OR MIT
// Shared code of the servers and the clients of the soak test.
//
// A connection carries numbers in both directions. Each byte is determined by its position in the
// stream, and is never zero. The client begins with a header that selects the numbers; the server
// answers each later byte with the one at the same position of its own stream.
#ifndef SOAK_H
#define SOAK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD = 65521, PIECE = 48 << 10, ANSWERS_BEHIND = 1 << 20 };

// Header of a connection.
struct header {
    char magic[8];
    uint64_t seed;
};
static const char MAGIC[8] = {'n', 'u', 'm', 'b', 'e', 'r', 'e', 'd'};

static unsigned char numbers[2 * PERIOD];

static inline void fill_numbers(void) {
    for (uint32_t at = 0; at < sizeof numbers; at++)
        numbers[at] = 1 + (at % PERIOD * 2654435761u >> 16) % 255;
}

// The numbers of a stream from a position; at most PERIOD.
static inline const unsigned char *numbers_at(uint64_t seed, uint64_t at) {
    return numbers + (seed % PERIOD * 31 + at) % PERIOD;
}

// The stream of the server, derived from that of the client.
static inline uint64_t answer_seed(uint64_t seed) {
    return seed * 6364136223846793005u + 1442695040888963407u;
}

static inline uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

// The file of events, one per line, which the test reads.
static inline void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void tell(const char *format, ...) {
    static int events = -1;
    if (events < 0)
        events = open("events", O_WRONLY | O_APPEND | O_CLOEXEC);
    char line[400];
    va_list rest;
    va_start(rest, format);
    int length = vsnprintf(line, sizeof line, format, rest);
    va_end(rest);
    if (length > 0 && write(events, line, length) != length)
        abort();
}

static inline void crashes(int signal) {
    tell("wrong: %d ends by signal %d\n", getpid(), signal);
    _exit(3);
}

// A crash of a child is reported here, since no other process waits for it.
static inline void tell_of_crashes(void) {
    static const int ALL[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
    for (size_t at = 0; at < sizeof ALL / sizeof *ALL; at++)
        signal(ALL[at], crashes);
}

// Verifies that bytes are those of a stream.
static inline void check(const char *who, uint64_t seed, uint64_t at, const unsigned char *bytes,
                         size_t count) {
    const unsigned char *expected = numbers_at(seed, at);
    if (memcmp(bytes, expected, count) == 0)
        return;
    size_t wrong = 0;
    while (bytes[wrong] == expected[wrong])
        wrong++;
    char found[100] = "", *end = found;
    for (size_t place = wrong; place < count && place < wrong + 16; place++)
        end += sprintf(end, " %02x", bytes[place]);
    tell("wrong: %s %d: byte %llu of a stream is not %02x, but%s, in %zu behind %llu\n", who,
         getpid(), (unsigned long long)(at + wrong), expected[wrong], found, count,
         (unsigned long long)at);
    _exit(3);
}

static _Thread_local uint64_t random_state;

static inline uint64_t random_number(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % below;
}

// A size of any magnitude up to a piece.
static inline size_t random_size(void) {
    return 1 + random_number(1ull << random_number(16)) % PIECE;
}

// A socket that is bound or connected to an address: `4:PORT`, `6:PORT` or `u:PATH`.
typedef int socket_call(int, const struct sockaddr *, socklen_t);
static inline int socket_at(const char *address, socket_call *act) {
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un path;
    } at;
    socklen_t length;
    memset(&at, 0, sizeof at);
    if (address[0] == '4') {
        at.four.sin_family = AF_INET;
        at.four.sin_port = htons(atoi(address + 2));
        at.four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        length = sizeof at.four;
    } else if (address[0] == '6') {
        at.six.sin6_family = AF_INET6;
        at.six.sin6_port = htons(atoi(address + 2));
        at.six.sin6_addr = in6addr_loopback;
        length = sizeof at.six;
    } else {
        at.path.sun_family = AF_UNIX;
        snprintf(at.path.sun_path, sizeof at.path.sun_path, "%s", address + 2);
        length = sizeof at.path;
    }
    int made = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (made >= 0 && act(made, &at.any, length) != 0) {
        int error = errno;
        close(made);
        errno = error;
        return -1;
    }
    return made;
}

#endif
