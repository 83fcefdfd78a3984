// SPDX-License-Identifier: Apache-2.0 OR MIT
// A client of the soak test: `client NUMBER SEED ADDRESS...`. It talks to one server after the
// other, with all ways to wait, and exits after some time. It writes its state to its desk, which
// the test reads.
#include "soak.h"

#include <dlfcn.h>

enum way { BLOCKS, POLLS, SELECTS, EPOLLS, WAYS };
enum state { BEGINS = 1, CONNECTS, TALKS, IDLES, ENDS, RESTS };
enum { TALKS_AT_ONCE = 4, DESK_BYTES = 128 };

// State of a client. The first desk belongs to the test, which requests clients to rest there.
struct desk {
    _Atomic uint64_t steps, state, peer, since, server, talks, cuts, past, bytes, pid;
    char rest[DESK_BYTES - 10 * 8];
};
static struct desk *desks, *desk;

// A connection. Forked children continue with it, so it is in shared memory.
struct talk {
    int fd, server;
    uint64_t seed, sent, received, peer, since;
    unsigned header_bytes, told_bytes;
};
static struct talk *all;

static int (*is_accelerated)(int);

static void says(enum state state, const struct talk *talk) {
    desk->state = state;
    desk->peer = talk ? talk->peer : 0;
    desk->server = talk ? talk->server + 1 : 0;
    desk->since = now_ms();
    desk->steps++;
}

static int has_to_rest(void) { return desks[0].steps != 0; }

static void nothing(int signal) { (void)signal; }

// Waits for an event on a descriptor; false: timeout, or a signal.
static int waits(enum way way, int fd, short events, int ms) {
    if (way == SELECTS && fd < FD_SETSIZE) {
        fd_set reads, writes;
        FD_ZERO(&reads);
        FD_ZERO(&writes);
        if (events & POLLIN)
            FD_SET(fd, &reads);
        if (events & POLLOUT)
            FD_SET(fd, &writes);
        struct timeval time = {ms / 1000, ms % 1000 * 1000};
        return select(fd + 1, &reads, &writes, NULL, ms < 0 ? NULL : &time) > 0;
    }
    if (way == EPOLLS) {
        int set = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {.events = events, .data.fd = fd};
        epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
        int count = epoll_wait(set, &event, 1, ms);
        close(set);
        return count > 0;
    }
    struct pollfd polled = {.fd = fd, .events = events};
    return poll(&polled, 1, ms) > 0;
}

static int may_go_on(void) { return errno == EAGAIN || errno == EINTR; }

// Sends the next bytes, up to a position. -1: the connection has ended.
static int sends(struct talk *talk, uint64_t until, int flags) {
    ssize_t count;
    if (talk->header_bytes < sizeof(struct header)) {
        struct header header = {.seed = talk->seed};
        memcpy(header.magic, MAGIC, sizeof MAGIC);
        const char *at = (char *)&header + talk->header_bytes;
        count = send(talk->fd, at, sizeof header - talk->header_bytes, flags | MSG_NOSIGNAL);
        if (count > 0)
            talk->header_bytes += count;
    } else {
        uint64_t left = until - talk->sent;
        size_t size = random_size();
        size = size < left ? size : left;
        const unsigned char *at = numbers_at(talk->seed, talk->sent);
        if (random_number(3) == 0) {
            size_t first = random_number(size + 1);
            struct iovec parts[2] = {{(void *)at, first}, {(void *)(at + first), size - first}};
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            count = sendmsg(talk->fd, &message, flags | MSG_NOSIGNAL);
        } else {
            count = send(talk->fd, at, size, flags | MSG_NOSIGNAL);
        }
        if (count > 0)
            talk->sent += count;
    }
    if (count < 0)
        return may_go_on() ? 0 : -1;
    desk->steps++;
    return 1;
}

// Receives and verifies bytes. -1: the connection has ended.
static int receives(struct talk *talk, uint64_t until, int flags) {
    static _Thread_local unsigned char bytes[PIECE];
    ssize_t count;
    if (talk->told_bytes < sizeof(uint64_t)) {
        char *at = (char *)&talk->peer + talk->told_bytes;
        count = recv(talk->fd, at, sizeof talk->peer - talk->told_bytes, flags);
        if (count > 0)
            talk->told_bytes += count;
        if (talk->told_bytes == sizeof talk->peer)
            desk->peer = talk->peer;
    } else {
        size_t size = random_size(), left = until - talk->received;
        if (random_number(4) == 0) {
            size_t first = random_number(size + 1);
            struct iovec parts[2] = {{bytes, first}, {bytes + first, size - first}};
            struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
            count = recvmsg(talk->fd, &message, flags);
        } else if (flags == 0 && random_number(4) == 0) {
            count = recv(talk->fd, bytes, size < left ? size : left, MSG_WAITALL);
        } else {
            count = recv(talk->fd, bytes, size, flags);
        }
        if (count > 0) {
            check("client", answer_seed(talk->seed), talk->received, bytes, count);
            talk->received += count;
            desk->bytes += count;
        }
        if (talk->received > talk->sent) {
            tell("wrong: client %d: more came than was sent\n", getpid());
            _exit(3);
        }
    }
    if (count < 0)
        return may_go_on() ? 0 : -1;
    if (count == 0)
        return -1;
    desk->steps++;
    return 1;
}

// Messages and their answers. False: the connection has ended.
static int talks_blocking(struct talk *talk, uint64_t until) {
    while (talk->received < until || talk->told_bytes < sizeof(uint64_t)) {
        uint64_t end = talk->sent + random_size();
        end = end < until ? end : until;
        while (talk->sent < end || talk->header_bytes < sizeof(struct header))
            if (sends(talk, end, 0) < 0)
                return 0;
        while (talk->received < end || talk->told_bytes < sizeof(uint64_t))
            if (receives(talk, end, 0) < 0)
                return 0;
    }
    return 1;
}

// As many bytes as fit, in both directions.
static int talks_polling(struct talk *talk, uint64_t until, enum way way) {
    while (talk->received < until) {
        int sent = 0, received = receives(talk, until, MSG_DONTWAIT);
        int has_more = talk->sent < until || talk->header_bytes < sizeof(struct header);
        if (received >= 0 && has_more)
            sent = sends(talk, until, MSG_DONTWAIT);
        if (received < 0 || sent < 0)
            return 0;
        if (received == 0 && sent == 0)
            waits(way, talk->fd, POLLIN | (has_more ? POLLOUT : 0), 1000 + random_number(5000));
    }
    return 1;
}

struct sending {
    struct talk *talk;
    uint64_t until;
    int is_over;
};

static void *sends_all(void *argument) {
    struct sending *sending = argument;
    random_state = now_ms() * 0x9e3779b97f4a7c15 + 1;
    while (sending->talk->sent < sending->until)
        if (sends(sending->talk, sending->until, 0) < 0) {
            sending->is_over = 1;
            break;
        }
    return NULL;
}

// One thread sends, and another one receives. The expected number depends on the number of bytes
// sent, so the receiver waits for that.
static int talks_by_threads(struct talk *talk, uint64_t until) {
    if (!talks_blocking(talk, talk->sent + 1))
        return 0;
    struct sending sending = {talk, until, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, sends_all, &sending) != 0)
        abort();
    int goes_on = 1;
    uint64_t end = until;
    while (goes_on && talk->received < end) {
        static unsigned char bytes[PIECE];
        ssize_t count = recv(talk->fd, bytes, random_size(), 0);
        if (count > 0) {
            check("client", answer_seed(talk->seed), talk->received, bytes, count);
            talk->received += count;
            desk->bytes += count;
            desk->steps++;
        } else if (count == 0 || !may_go_on()) {
            goes_on = 0;
        }
    }
    if (!goes_on)
        shutdown(talk->fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    return goes_on && !sending.is_over;
}

// A forked child continues for a while. If it is killed, the position in the stream is unknown.
static int talks_by_child(struct talk *talk, uint64_t until, enum way way) {
    pid_t child = fork();
    if (child == 0) {
        int goes_on = way == BLOCKS ? talks_blocking(talk, until) : talks_polling(talk, until, way);
        _exit(goes_on ? 0 : 1);
    }
    int status;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) == 0 : -1;
}

static void is_closed(struct talk *talk) {
    if (is_accelerated && is_accelerated(talk->fd))
        desk->past++;
    close(talk->fd);
    talk->fd = -1;
}

// The server has closed the connection early.
static void is_cut(struct talk *talk) {
    tell("cut: %d %llu %llu %llu %d %llu %llu: in state %d, %s\n", talk->server,
         (unsigned long long)talk->peer, (unsigned long long)talk->since,
         (unsigned long long)now_ms(), getpid(), (unsigned long long)talk->sent,
         (unsigned long long)talk->received, (int)desk->state, strerror(errno));
    desk->cuts++;
    is_closed(talk);
}

// Waits for the end of file; no bytes are expected.
static void idles(struct talk *talk, enum way way) {
    says(IDLES, talk);
    int is_long = random_number(3) == 0;
    char byte;
    ssize_t count = -1;
    errno = EAGAIN;
    if (!is_long) {
        if (waits(way, talk->fd, POLLIN, random_number(2000)))
            count = recv(talk->fd, &byte, 1, MSG_DONTWAIT);
    } else if (way == BLOCKS) {
        while (count < 0 && errno != ECONNRESET && !has_to_rest())
            count = recv(talk->fd, &byte, 1, 0);
    } else {
        while (count < 0 && errno != ECONNRESET && !has_to_rest())
            if (waits(way, talk->fd, POLLIN, -1))
                count = recv(talk->fd, &byte, 1, MSG_DONTWAIT);
            else
                errno = EINTR;
    }
    if (count > 0) {
        tell("wrong: client %d: a byte %02x came that nobody has sent\n", getpid(), byte);
        _exit(3);
    }
    if (count == 0 || !may_go_on())
        is_cut(talk);
}

// Ends a connection in one of several ways.
static void ends(struct talk *talk) {
    says(ENDS, talk);
    if (random_number(3) == 0) {
        // Data in flight is lost.
        sends(talk, talk->sent + 1000, MSG_DONTWAIT);
    } else if (random_number(2) == 0) {
        shutdown(talk->fd, SHUT_WR);
        char byte;
        ssize_t count;
        do {
            count = recv(talk->fd, &byte, 1, 0);
        } while (count < 0 && errno == EINTR);
        if (count != 0) {
            is_cut(talk);
            return;
        }
    }
    is_closed(talk);
    desk->talks++;
}

// A child was killed within a transfer. The position in the stream is unknown, but it ends.
static void ends_somewhere(struct talk *talk) {
    says(ENDS, talk);
    static unsigned char bytes[PIECE];
    ssize_t count;
    shutdown(talk->fd, SHUT_WR);
    do {
        count = recv(talk->fd, bytes, sizeof bytes, 0);
        desk->steps++;
    } while (count > 0 || (count < 0 && errno == EINTR));
    is_closed(talk);
}

static void connects(struct talk *talk, int servers, char **addresses) {
    *talk = (struct talk){.fd = -1, .server = random_number(servers), .since = now_ms()};
    talk->seed = random_number(1ull << 40);
    says(CONNECTS, talk);
    talk->fd = socket_at(addresses[talk->server], connect);
    if (talk->fd < 0)
        usleep(1000 + random_number(20000));
}

static void talks(struct talk *talk) {
    says(TALKS, talk);
    enum way way = random_number(WAYS);
    // Few connections are long.
    uint64_t bytes = 1 + random_number(1ull << random_number(random_number(8) ? 17 : 24));
    uint64_t until = talk->sent + bytes;
    int goes_on;
    if (random_number(16) == 0)
        goes_on = talks_by_child(talk, until, way);
    else if (random_number(16) == 0)
        goes_on = talks_by_threads(talk, until);
    else if (way == BLOCKS)
        goes_on = talks_blocking(talk, until);
    else
        goes_on = talks_polling(talk, until, way);
    if (goes_on == 0)
        is_cut(talk);
    else if (goes_on < 0)
        ends_somewhere(talk);
}

static void rests(void) {
    for (int at = 0; at < TALKS_AT_ONCE; at++)
        if (all[at].fd >= 0)
            is_closed(&all[at]);
    says(RESTS, NULL);
    while (has_to_rest())
        usleep(10000);
}

int main(int count, char **words) {
    fill_numbers();
    tell_of_crashes();
    random_state = strtoull(words[2], NULL, 10) * 0x9e3779b97f4a7c15 + 0x1234567;
    int board = open("board", O_RDWR | O_CLOEXEC);
    size_t bytes = 256 * DESK_BYTES;
    desks = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, board, 0);
    size_t size = TALKS_AT_ONCE * sizeof *all;
    all = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (desks == MAP_FAILED || all == MAP_FAILED)
        return 1;
    close(board);
    desk = desks + atoi(words[1]);
    desk->pid = getpid();
    is_accelerated = (int (*)(int))dlsym(RTLD_DEFAULT, "freeport_is_accelerated");
    // The test wakes idle clients by this signal.
    struct sigaction action = {.sa_handler = nothing};
    sigaction(SIGUSR1, &action, NULL);
    for (int at = 0; at < TALKS_AT_ONCE; at++)
        all[at].fd = -1;
    says(BEGINS, NULL);
    for (uint64_t left = 20 + random_number(200); left > 0; left--) {
        if (has_to_rest())
            rests();
        struct talk *talk = &all[random_number(TALKS_AT_ONCE)];
        if (talk->fd < 0)
            connects(talk, count - 3, words + 3);
        if (talk->fd >= 0)
            talks(talk);
        if (talk->fd >= 0 && random_number(6) == 0)
            idles(talk, random_number(WAYS));
        if (talk->fd >= 0 && random_number(3) == 0)
            ends(talk);
    }
    // Open connections end with the process.
    return 0;
}
