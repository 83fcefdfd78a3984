// SPDX-License-Identifier: Apache-2.0 OR MIT
// Functions shared by cases and the interpreter of random programs.

#include "basics.h"

const char *events_text(unsigned events) {
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {{POLLIN, "IN"},         {POLLOUT, "OUT"},  {POLLPRI, "PRI"}, {POLLRDHUP, "RDHUP"},
                 {POLLHUP, "HUP"},       {POLLERR, "ERR"},  {POLLNVAL, "NVAL"},
                 {POLLRDNORM, "RDNORM"}, {POLLWRNORM, "WRNORM"}};
    static _Thread_local char text[100];
    text[0] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(events & names[i].bit))
            continue;
        strcat(text, *text ? "|" : "");
        strcat(text, names[i].name);
        events &= ~names[i].bit;
    }
    if (events)
        sprintf(text + strlen(text), "|%#x", events);
    return *text ? text : "0";
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(long milliseconds) {
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

void fill(void *bytes, size_t length, uint64_t seed) {
    unsigned char *out = bytes;
    uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (size_t i = 0; i < length; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out[i] = (unsigned char)(state >> 32);
    }
}

uint64_t checksum(uint64_t so_far, const void *bytes, size_t length) {
    const unsigned char *in = bytes;
    for (size_t i = 0; i < length; i++)
        so_far = (so_far ^ in[i]) * 1099511628211ULL;
    return so_far;
}

// Space for as many descriptors as the kernel accepts per message.
union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(253 * sizeof(int))];
};

ssize_t pass(int over, const int *fds, int count) {
    union control control = {0};
    struct iovec part = {"d", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    return sendmsg(over, &message, 0);
}

int take(int over, int *fds, int room) {
    union control control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
    message.msg_controllen = CMSG_LEN(room * sizeof(int));
    if (recvmsg(over, &message, 0) != 1)
        return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (!header)
        return 0;
    int count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(header), count * sizeof(int));
    return count;
}
