// SPDX-License-Identifier: Apache-2.0 OR MIT
// Steps of walks, by name.
#include "walk.h"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

enum { ROOM = 256 << 10, PARTS_MAX = 1024 };

static char *room(void) {
    static char memory[ROOM];
    return memory;
}

static size_t amount(const struct step *step) {
    return step->number < 0 ? 0 : step->number > ROOM ? ROOM : step->number;
}

static void send_by(struct end *end, const struct step *step, int flags) {
    fill(room(), amount(step), end->seed++);
    trace_result(send(end->fd, room(), amount(step), flags | MSG_DONTWAIT));
}

static void do_send(struct end *end, const struct step *step) { send_by(end, step, MSG_NOSIGNAL); }

static void do_more(struct end *end, const struct step *step) {
    send_by(end, step, MSG_NOSIGNAL | MSG_MORE);
}

// Like `write`: with SIGPIPE.
static void do_write(struct end *end, const struct step *step) { send_by(end, step, 0); }

static void do_urgent(struct end *end, const struct step *step) {
    send_by(end, step, MSG_NOSIGNAL | MSG_OOB);
}

// Many parts of one byte each.
static void do_parts(struct end *end, const struct step *step) {
    static struct iovec parts[PARTS_MAX];
    int count = amount(step) > PARTS_MAX ? PARTS_MAX : (int)amount(step);
    fill(room(), count, end->seed++);
    for (int i = 0; i < count; i++)
        parts[i] = (struct iovec){room() + i, 1};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    trace_result(sendmsg(end->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL));
}

static void receive_by(struct end *end, const struct step *step, int flags) {
    long result = recv(end->fd, room(), amount(step), flags | MSG_DONTWAIT);
    trace_result(result);
    if (result > 0 && !(flags & MSG_TRUNC))
        trace(" %016llx", (unsigned long long)checksum(CHECKSUM_BEGIN, room(), result));
}

static void do_recv(struct end *end, const struct step *step) { receive_by(end, step, 0); }
static void do_peek(struct end *end, const struct step *step) { receive_by(end, step, MSG_PEEK); }
static void do_all(struct end *end, const struct step *step) { receive_by(end, step, MSG_WAITALL); }
static void do_drop(struct end *end, const struct step *step) { receive_by(end, step, MSG_TRUNC); }

// With room for ancillary data, of which there are none.
static void do_recvmsg(struct end *end, const struct step *step) {
    char control[100];
    struct iovec parts[2] = {{room(), amount(step) / 2},
                             {room() + amount(step) / 2, amount(step) - amount(step) / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = control,
                             .msg_controllen = sizeof control};
    long result = recvmsg(end->fd, &message, MSG_DONTWAIT);
    trace_result(result);
    if (result >= 0)
        trace(" flags %#x control %zu %016llx", message.msg_flags, message.msg_controllen,
              (unsigned long long)checksum(CHECKSUM_BEGIN, room(), result));
}

// From a file with these bytes.
static void do_sendfile(struct end *end, const struct step *step) {
    int file = memfd_create("bytes", MFD_CLOEXEC), on = 1;
    fill(room(), amount(step), end->seed++);
    if (file < 0 || write(file, room(), amount(step)) < 0 || ioctl(end->fd, FIONBIO, &on) < 0)
        trace("no file ");
    off_t at = 0;
    trace_result(sendfile(end->fd, file, &at, amount(step)));
    trace(" to %ld", (long)at);
    close(file);
}

static void shut(struct end *end, int how) { trace_result(shutdown(end->fd, how)); }

static void do_rd(struct end *end, const struct step *step) {
    (void)step;
    shut(end, SHUT_RD);
}

static void do_wr(struct end *end, const struct step *step) {
    (void)step;
    shut(end, SHUT_WR);
}

static void do_both(struct end *end, const struct step *step) {
    (void)step;
    shut(end, SHUT_RDWR);
}

static void do_close(struct end *end, const struct step *step) {
    (void)step;
    trace_result(close(end->fd));
    end->fd = -1;
}

// Another descriptor replaces this one, which is closed.
static void do_dup(struct end *end, const struct step *step) {
    (void)step;
    int copy = dup(end->fd);
    trace_result(copy < 0 ? -1 : close(end->fd));
    end->fd = copy;
}

static void set(struct end *end, int level, int name, int value) {
    trace_result(setsockopt(end->fd, level, name, &value, sizeof value));
}

static void do_linger(struct end *end, const struct step *step) {
    struct linger linger = {step->number != 0, 0};
    trace_result(setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
}

static void do_nodelay(struct end *end, const struct step *step) {
    set(end, IPPROTO_TCP, TCP_NODELAY, step->number);
}

static void do_cork(struct end *end, const struct step *step) {
    set(end, IPPROTO_TCP, TCP_CORK, step->number);
}

static void do_rcvbuf(struct end *end, const struct step *step) {
    set(end, SOL_SOCKET, SO_RCVBUF, step->number);
}

static void do_sndbuf(struct end *end, const struct step *step) {
    set(end, SOL_SOCKET, SO_SNDBUF, step->number);
}

static void do_nonblock(struct end *end, const struct step *step) {
    int on = step->number;
    trace_result(ioctl(end->fd, FIONBIO, &on));
}

static void do_error(struct end *end, const struct step *step) {
    (void)step;
    int error = -1;
    socklen_t length = sizeof error;
    long result = getsockopt(end->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    trace_result(result);
    if (result == 0)
        trace(" %s", error ? strerrorname_np(error) : "none");
}

static void do_unspec(struct end *end, const struct step *step) {
    (void)step;
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    trace_result(connect(end->fd, &none, sizeof none));
}

static void do_peer(struct end *end, const struct step *step) {
    (void)step;
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    trace_result(getpeername(end->fd, (struct sockaddr *)&address, &length));
}

// The TCP state. Whether the peer's kernel has already acknowledged an end depends on timing.
static void do_info(struct end *end, const struct step *step) {
    (void)step;
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    trace_result(getsockopt(end->fd, IPPROTO_TCP, TCP_INFO, &info, &length));
    trace(" state %d", info.tcpi_state == TCP_FIN_WAIT1 ? TCP_FIN_WAIT2 : info.tcpi_state);
}

static void do_keepalive(struct end *end, const struct step *step) {
    set(end, SOL_SOCKET, SO_KEEPALIVE, step->number);
}

// A set reports this end from now on.
static void do_watch(struct end *end, const struct step *step) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI};
    if (step->number)
        event.events |= EPOLLET;
    if (end->set < 0)
        end->set = epoll_create1(0);
    trace_result(epoll_ctl(end->set, EPOLL_CTL_ADD, end->fd, &event));
}

static const struct {
    const char *name;
    void (*run)(struct end *end, const struct step *step);
} operations[] = {
    {"send", do_send},       {"more", do_more},       {"write", do_write},   {"urgent", do_urgent},
    {"parts", do_parts},     {"recv", do_recv},       {"peek", do_peek},     {"all", do_all},
    {"drop", do_drop},       {"rd", do_rd},           {"wr", do_wr},         {"both", do_both},
    {"close", do_close},     {"dup", do_dup},         {"linger", do_linger}, {"cork", do_cork},
    {"nodelay", do_nodelay}, {"rcvbuf", do_rcvbuf},   {"sndbuf", do_sndbuf}, {"error", do_error},
    {"unspec", do_unspec},   {"nonblock", do_nonblock}, {"peer", do_peer},   {"watch", do_watch},
    {"recvmsg", do_recvmsg}, {"sendfile", do_sendfile}, {"info", do_info},
    {"keepalive", do_keepalive},
};

void take_step(struct end *end, const struct step *step) {
    if (end->fd < 0) {
        trace("closed");
        return;
    }
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, step->name) != 0)
            continue;
        errno = 0;
        operations[i].run(end, step);
        return;
    }
    trace("no such step");
}

void trace_state(struct end *end) {
    if (end->fd < 0) {
        trace("; closed");
        return;
    }
    struct pollfd asked = {end->fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP, 0};
    poll(&asked, 1, 0);
    trace("; %s", events_text(asked.revents));
    int bytes = 0;
    if (ioctl(end->fd, FIONREAD, &bytes) < 0)
        trace(" %s", strerrorname_np(errno));
    else
        trace(" %d", bytes);
    struct epoll_event event;
    if (end->set < 0)
        return;
    int ready = epoll_wait(end->set, &event, 1, 0);
    trace(" set %s", ready == 1 ? events_text(event.events) : "-");
}
