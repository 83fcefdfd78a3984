// SPDX-License-Identifier: Apache-2.0 OR MIT
// A server of the soak test: `server KIND ADDRESS`. Kinds differ in the process that serves a
// connection, and in how it waits.
#include "soak.h"

enum { WORKERS = 3, CONNECTIONS = 500, BEFORE_HANDING_ON = 2000 };

// A served connection.
struct work {
    struct header header;
    uint32_t header_bytes, told_bytes;
    uint64_t received, answered;
    int fd, ended;
    unsigned watched;
};

// Receives available bytes. 1: some, 0: none now, -1: the client has closed.
static int take(struct work *work, int flags) {
    static _Thread_local unsigned char bytes[PIECE];
    ssize_t count;
    if (work->header_bytes < sizeof work->header) {
        char *at = (char *)&work->header + work->header_bytes;
        count = recv(work->fd, at, sizeof work->header - work->header_bytes, flags);
        if (count > 0)
            work->header_bytes += count;
        if (work->header_bytes >= sizeof MAGIC && memcmp(work->header.magic, MAGIC, sizeof MAGIC)) {
            tell("wrong: server %d: the header is wrong\n", getpid());
            _exit(3);
        }
    } else {
        count = recv(work->fd, bytes, random_size(), flags);
        if (count > 0) {
            check("server", work->header.seed, work->received, bytes, count);
            work->received += count;
        }
    }
    if (count == 0) {
        work->ended = 1;
        return 1;
    }
    if (count < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return 1;
}

// Whether an answer is pending.
static int owes(const struct work *work) {
    int has_begun = work->header_bytes == sizeof work->header;
    return has_begun && (work->told_bytes < sizeof(uint64_t) || work->answered < work->received);
}

// Sends a part of the answer; returns the same values as `take`.
static int answer(struct work *work, int flags) {
    ssize_t count;
    if (work->told_bytes < sizeof(uint64_t)) {
        uint64_t pid = getpid();
        const char *at = (char *)&pid + work->told_bytes;
        count = send(work->fd, at, sizeof pid - work->told_bytes, flags | MSG_NOSIGNAL);
        if (count > 0)
            work->told_bytes += count;
    } else {
        uint64_t left = work->received - work->answered;
        size_t size = left < PIECE ? left : PIECE;
        const unsigned char *at = numbers_at(answer_seed(work->header.seed), work->answered);
        count = send(work->fd, at, size, flags | MSG_NOSIGNAL);
        if (count > 0)
            work->answered += count;
    }
    if (count < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return 1;
}

// Serves one connection to its end, or until this number of bytes has arrived.
static int serve_blocking(struct work *work, uint64_t until) {
    while (!work->ended && work->received < until) {
        if (take(work, 0) < 0)
            return -1;
        while (owes(work))
            if (answer(work, 0) < 0)
                return -1;
    }
    return work->ended ? -1 : 0;
}

static void serve_one(int fd) {
    struct work work = {.fd = fd};
    serve_blocking(&work, UINT64_MAX);
    close(fd);
}

static void *serve_in_thread(void *fd) {
    random_state ^= (uintptr_t)fd * 0x9e3779b97f4a7c15 + 1;
    serve_one((intptr_t)fd);
    return NULL;
}

static void threads(int listener) {
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pthread_t thread;
        if (fd >= 0 && pthread_create(&thread, NULL, serve_in_thread, (void *)(intptr_t)fd) == 0)
            pthread_detach(thread);
    }
}

static void fork_for_each(int listener) {
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (fork() == 0) {
            close(listener);
            serve_one(fd);
            _exit(0);
        }
        close(fd);
    }
}

// The forked child executes another program.
static void exec_for_each(int listener, const char *self) {
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            continue;
        if (fork() == 0) {
            close(listener);
            struct work work = {.fd = fd};
            if (serve_blocking(&work, BEFORE_HANDING_ON) == 0) {
                char words[4][24];
                snprintf(words[0], 24, "%d", fd);
                snprintf(words[1], 24, "%llu", (unsigned long long)work.header.seed);
                snprintf(words[2], 24, "%llu", (unsigned long long)work.received);
                snprintf(words[3], 24, "%llu", (unsigned long long)work.answered);
                execl(self, self, "go on", words[0], words[1], words[2], words[3], NULL);
                abort();
            }
            _exit(0);
        }
        close(fd);
    }
}

static void go_on(char **words) {
    struct work work = {.fd = atoi(words[0]),
                        .header_bytes = sizeof work.header,
                        .told_bytes = sizeof(uint64_t),
                        .received = strtoull(words[2], NULL, 10),
                        .answered = strtoull(words[3], NULL, 10)};
    work.header.seed = strtoull(words[1], NULL, 10);
    serve_blocking(&work, UINT64_MAX);
}

// A worker that serves connections passed to it.
struct worker {
    pid_t pid;
    int channel;
};

static void poll_all(int listener, int channel, struct worker *workers);

static struct worker begin_worker(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        // Accepted connections, and the channels of other workers.
        close_range(3, ends[1] - 1, 0);
        close_range(ends[1] + 1, ~0u, 0);
        random_state ^= getpid() * 0x9e3779b97f4a7c15;
        poll_all(-1, ends[1], NULL);
        _exit(0);
    }
    close(ends[1]);
    return (struct worker){pid, ends[0]};
}

// Passes a connection on. A worker that has exited is started again.
static void hand_on(struct work *work, struct worker *workers) {
    for (;;) {
        struct worker *worker = &workers[random_number(WORKERS)];
        char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = {0};
        struct iovec part = {work, sizeof *work};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &work->fd, sizeof(int));
        if (sendmsg(worker->channel, &message, MSG_NOSIGNAL) == sizeof *work)
            break;
        close(worker->channel);
        kill(worker->pid, SIGKILL);
        waitpid(worker->pid, NULL, 0);
        *worker = begin_worker();
    }
    close(work->fd);
}

// Receives a connection. False: the channel has been closed.
static int receive(int channel, struct work *work) {
    char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    struct iovec part = {work, sizeof *work};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != sizeof *work)
        return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header == NULL)
        abort();
    memcpy(&work->fd, CMSG_DATA(header), sizeof(int));
    return 1;
}

// Handles a connection without blocking; false: it has ended.
static int go_on_at_once(struct work *work) {
    int done = 1;
    while (owes(work) && (done = answer(work, MSG_DONTWAIT)) > 0) {
    }
    if (done < 0 || (work->ended && !owes(work)))
        return 0;
    int is_behind = work->received - work->answered > ANSWERS_BEHIND;
    if (!work->ended && !is_behind && take(work, MSG_DONTWAIT) < 0)
        return 0;
    while (owes(work) && (done = answer(work, MSG_DONTWAIT)) > 0) {
    }
    return done >= 0 && !(work->ended && !owes(work));
}

static short wanted(const struct work *work) {
    int is_behind = work->received - work->answered > ANSWERS_BEHIND;
    return (work->ended || is_behind ? 0 : POLLIN) | (owes(work) ? POLLOUT : 0);
}

// Serves all connections of a listener or a channel with `poll`. With workers, each connection is
// passed on after a while.
static void poll_all(int listener, int channel, struct worker *workers) {
    static struct work all[CONNECTIONS];
    static struct pollfd polled[CONNECTIONS + 1];
    int count = 0, source = listener >= 0 ? listener : channel;
    while (source >= 0 || count > 0) {
        polled[0] = (struct pollfd){.fd = count < CONNECTIONS ? source : -1, .events = POLLIN};
        for (int at = 0; at < count; at++)
            polled[at + 1] = (struct pollfd){.fd = all[at].fd, .events = wanted(&all[at])};
        if (poll(polled, count + 1, -1) < 0)
            continue;
        for (int at = count - 1; at >= 0; at--) {
            if (polled[at + 1].revents == 0)
                continue;
            int goes_on = go_on_at_once(&all[at]);
            int is_handed = goes_on && workers && all[at].received > BEFORE_HANDING_ON;
            if (is_handed)
                hand_on(&all[at], workers);
            if (!goes_on)
                close(all[at].fd);
            if (!goes_on || is_handed)
                all[at] = all[--count];
        }
        if (polled[0].revents && listener >= 0) {
            int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (fd >= 0)
                all[count++] = (struct work){.fd = fd};
        } else if (polled[0].revents) {
            if (receive(channel, &all[count]))
                count++;
            else
                source = -1;
        }
    }
}

// A child that does not use its copies, like one that executes another program.
static void fork_and_close_all(void) {
    if (fork() == 0) {
        close_range(3, ~0u, 0);
        _exit(0);
    }
}

// Serves all connections with `epoll`, and forks sometimes.
static void epoll_all(int listener) {
    signal(SIGCHLD, SIG_IGN);
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(set, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[16];
        int count = epoll_wait(set, events, 16, -1);
        for (int at = 0; at < count; at++) {
            struct work *work = events[at].data.ptr;
            if (work == NULL) {
                int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
                if (fd < 0)
                    continue;
                work = calloc(1, sizeof *work);
                work->fd = fd;
                work->watched = EPOLLIN;
                event = (struct epoll_event){.events = EPOLLIN, .data.ptr = work};
                epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
                if (random_number(4) == 0)
                    fork_and_close_all();
            } else if (!go_on_at_once(work)) {
                // A child may hold it a little longer, and then the epoll instance would too.
                epoll_ctl(set, EPOLL_CTL_DEL, work->fd, NULL);
                close(work->fd);
                free(work);
            } else {
                short now = wanted(work);
                unsigned watched = (now & POLLIN ? EPOLLIN : 0) | (now & POLLOUT ? EPOLLOUT : 0);
                if (watched != work->watched) {
                    work->watched = watched;
                    event = (struct epoll_event){.events = watched, .data.ptr = work};
                    epoll_ctl(set, EPOLL_CTL_MOD, work->fd, &event);
                }
            }
        }
    }
}

// Serves all connections with workers that share the listener.
static void prefork(int listener) {
    fcntl(listener, F_SETFL, O_NONBLOCK);
    for (int running = 0;; running--) {
        for (; running < WORKERS; running++) {
            if (fork() == 0) {
                random_state ^= getpid() * 0x9e3779b97f4a7c15;
                poll_all(listener, -1, NULL);
            }
        }
        while (wait(NULL) < 0) {
        }
    }
}

static void pass(int listener) {
    struct worker workers[WORKERS];
    for (int at = 0; at < WORKERS; at++)
        workers[at] = begin_worker();
    poll_all(listener, -1, workers);
}

int main(int count, char **words) {
    fill_numbers();
    tell_of_crashes();
    random_state = now_ms() * 0x9e3779b97f4a7c15 + getpid();
    const char *kind = words[1];
    if (count == 6 && strcmp(kind, "go on") == 0) {
        go_on(words + 2);
        return 0;
    }
    if (words[2][0] == 'u')
        unlink(words[2] + 2);
    int listener = socket_at(words[2], bind);
    if (listener < 0 || listen(listener, 500) != 0) {
        perror("listen");
        return 1;
    }
    if (strcmp(kind, "threads") == 0)
        threads(listener);
    else if (strcmp(kind, "fork") == 0)
        fork_for_each(listener);
    else if (strcmp(kind, "exec") == 0)
        exec_for_each(listener, words[0]);
    else if (strcmp(kind, "prefork") == 0)
        prefork(listener);
    else if (strcmp(kind, "pass") == 0)
        pass(listener);
    else if (strcmp(kind, "epoll") == 0)
        epoll_all(listener);
    else
        poll_all(listener, -1, NULL);
    return 2;
}
