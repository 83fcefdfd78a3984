// SPDX-License-Identifier: Apache-2.0 OR MIT
// Calls that move bytes. The bytes sent depend only on the line of the program; of received bytes,
// the checksum is recorded.
#include "steps.h"

#include <sys/mman.h>
#include <sys/sendfile.h>

static size_t limited(long length) {
    return length < 0 ? 0 : length > ROOM ? (size_t)ROOM : (size_t)length;
}

static char *bytes_to_send(struct call *call, size_t length) {
    fill(room(), length, call->seed);
    return room();
}

static void say_received(struct call *call, long received) {
    say_result(call, received);
    if (received > 0)
        say(call, " #%08x", (unsigned)checksum(CHECKSUM_BEGIN, room(), limited(received)));
}

// Splits memory into pieces of different lengths, one of them empty.
static void cut(struct iovec *parts, int pieces, char *memory, size_t length) {
    size_t at = 0;
    for (int i = 0; i < pieces; i++) {
        size_t rest = length - at, size = i == 1 ? 0 : rest / (pieces - i) * (i % 3);
        if (size > rest || i == pieces - 1)
            size = rest;
        parts[i] = (struct iovec){memory + at, size};
        at += size;
    }
}

enum { MOST_PIECES = 16 };

static int pieces_of(const struct call *call, int which) {
    long pieces = argument(call, which);
    return pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : (int)pieces;
}

// send, write: NAME LENGTH [FLAGS]
static void do_send(struct call *call) {
    size_t length = limited(argument(call, 1));
    char *bytes = bytes_to_send(call, length);
    say_result(call, send(descriptor(call, 0), bytes, length, argument(call, 2)));
}

static void do_sendto(struct call *call) {
    size_t length = limited(argument(call, 1));
    char *bytes = bytes_to_send(call, length);
    say_result(call, sendto(descriptor(call, 0), bytes, length, argument(call, 2), NULL, 0));
}

static void do_write(struct call *call) {
    size_t length = limited(argument(call, 1));
    char *bytes = bytes_to_send(call, length);
    say_result(call, write(descriptor(call, 0), bytes, length));
}

// writev, sendmsg, readv, recvmsg: NAME LENGTH PIECES [FLAGS]
static void do_writev(struct call *call) {
    struct iovec parts[MOST_PIECES];
    size_t length = limited(argument(call, 1));
    int pieces = pieces_of(call, 2);
    cut(parts, pieces, bytes_to_send(call, length), length);
    say_result(call, writev(descriptor(call, 0), parts, pieces));
}

static void do_sendmsg(struct call *call) {
    struct iovec parts[MOST_PIECES];
    size_t length = limited(argument(call, 1));
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = pieces_of(call, 2)};
    cut(parts, message.msg_iovlen, bytes_to_send(call, length), length);
    say_result(call, sendmsg(descriptor(call, 0), &message, argument(call, 3)));
}

// sendmmsg, recvmmsg: NAME LENGTH MESSAGES [FLAGS]; all messages have the same length
enum { MOST_MESSAGES = 4 };

static int prepare_messages(struct call *call, struct mmsghdr *messages, struct iovec *parts) {
    long wanted = argument(call, 2);
    int count = wanted < 1 ? 1 : wanted > MOST_MESSAGES ? MOST_MESSAGES : (int)wanted;
    size_t length = limited(argument(call, 1)) / MOST_MESSAGES;
    memset(messages, 0, sizeof *messages * MOST_MESSAGES);
    for (int i = 0; i < count; i++) {
        parts[i] = (struct iovec){room() + i * length, length};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    return count;
}

static void do_sendmmsg(struct call *call) {
    struct mmsghdr messages[MOST_MESSAGES];
    struct iovec parts[MOST_MESSAGES];
    bytes_to_send(call, limited(argument(call, 1)));
    int count = prepare_messages(call, messages, parts);
    int sent = sendmmsg(descriptor(call, 0), messages, count, argument(call, 3));
    say_result(call, sent);
    for (int i = 0; i < sent; i++)
        say(call, " %u", messages[i].msg_len);
}

static void do_recvmmsg(struct call *call) {
    struct mmsghdr messages[MOST_MESSAGES];
    struct iovec parts[MOST_MESSAGES];
    int count = prepare_messages(call, messages, parts);
    int received = recvmmsg(descriptor(call, 0), messages, count, argument(call, 3), NULL);
    say_result(call, received);
    for (int i = 0; i < received; i++) {
        unsigned length = messages[i].msg_len;
        unsigned sum = checksum(CHECKSUM_BEGIN, parts[i].iov_base, length);
        say(call, " %u #%08x", length, length ? sum : 0);
    }
}

// recv, read: NAME LENGTH [FLAGS]
static void do_recv(struct call *call) {
    size_t length = limited(argument(call, 1));
    long flags = argument(call, 2);
    long received = recv(descriptor(call, 0), room(), length, flags);
    if (flags & MSG_TRUNC)
        say_result(call, received);
    else
        say_received(call, received);
}

static void do_recvfrom(struct call *call) {
    size_t length = limited(argument(call, 1));
    struct sockaddr_storage from;
    socklen_t bytes = sizeof from;
    int fd = descriptor(call, 0);
    long flags = argument(call, 2);
    long received = recvfrom(fd, room(), length, flags, (void *)&from, &bytes);
    // With MSG_TRUNC, nothing is written to the buffer.
    if (flags & MSG_TRUNC)
        say_result(call, received);
    else
        say_received(call, received);
    if (received >= 0)
        say(call, ", name of %u", bytes);
}

static void do_read(struct call *call) {
    say_received(call, read(descriptor(call, 0), room(), limited(argument(call, 1))));
}

static void do_readv(struct call *call) {
    struct iovec parts[MOST_PIECES];
    int pieces = pieces_of(call, 2);
    cut(parts, pieces, room(), limited(argument(call, 1)));
    say_received(call, readv(descriptor(call, 0), parts, pieces));
}

static void do_recvmsg(struct call *call) {
    struct iovec parts[MOST_PIECES];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = pieces_of(call, 2)};
    cut(parts, message.msg_iovlen, room(), limited(argument(call, 1)));
    say_received(call, recvmsg(descriptor(call, 0), &message, argument(call, 3)));
    if (message.msg_flags)
        say(call, ", flags %#x", message.msg_flags);
}

// Waits for events of a descriptor; returns whether they occurred.
static int becomes(int fd, short events) {
    return poll(&(struct pollfd){fd, events, 0}, 1, 1000) == 1;
}

// sendall, recvall: NAME LENGTH PIECE; until everything is sent or received
static void do_sendall(struct call *call) {
    int fd = descriptor(call, 0);
    long length = argument(call, 1), done = 0, sent = 0;
    long piece = limited(argument(call, 2));
    char *bytes = bytes_to_send(call, piece);
    while (done < length && piece > 0) {
        // Continues where a short send stopped, so that the received bytes do not depend on it.
        long at = done % piece, left = piece - at;
        sent = send(fd, bytes + at, left < length - done ? left : length - done, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN && becomes(fd, POLLOUT)))
            continue;
        if (sent < 0)
            break;
        done += sent;
    }
    say(call, "all %ld", done);
    if (sent < 0)
        say(call, ", then "), say_result(call, sent);
}

static void do_recvall(struct call *call) {
    int fd = descriptor(call, 0);
    long length = argument(call, 1), done = 0, received = 0;
    long piece = limited(argument(call, 2));
    uint64_t sum = CHECKSUM_BEGIN;
    while (done < length && piece > 0) {
        received = recv(fd, room(), piece < length - done ? piece : length - done, 0);
        if (received < 0 && (errno == EAGAIN && becomes(fd, POLLIN)))
            continue;
        if (received <= 0)
            break;
        sum = checksum(sum, room(), received);
        done += received;
    }
    say(call, "all %ld #%08x", done, (unsigned)sum);
    if (done < length)
        say(call, ", then "), say_result(call, received);
}

// fill: NAME; sends without blocking until nothing fits
static void do_fill(struct call *call) {
    int fd = descriptor(call, 0);
    size_t total = 0;
    memset(room(), 'f', ROOM);
    for (int quiet = 0; quiet < 3;) {
        ssize_t sent = send(fd, room(), 64 << 10, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            break;
        total += sent < 0 ? 0 : sent;
        quiet = sent < 0 ? quiet + 1 : 0;
        if (sent < 0)
            sleep_ms(1);
    }
    shared->amounts[argument(call, 0) % NAMES] = total;
    say(call, total > 65536 ? "much, then " : "little, then "), say_result(call, -1);
}

// empty: NAME FILLED BEFORE; receives the BEFORE bytes and those with which FILLED was filled
static void do_empty(struct call *call) {
    int fd = descriptor(call, 0);
    size_t total = shared->amounts[argument(call, 1) % NAMES] + limited(argument(call, 2));
    size_t done = 0;
    while (done < total && becomes(fd, POLLIN)) {
        size_t left = total - done;
        ssize_t received = recv(fd, room(), left < 100000 ? left : 100000, MSG_DONTWAIT);
        if (received <= 0)
            break;
        done += received;
    }
    say(call, done == total ? "all of it" : "not all of it");
}

// sendfile: NAME LENGTH
static void do_sendfile(struct call *call) {
    size_t length = limited(argument(call, 1));
    int file = memfd_create("file", MFD_CLOEXEC);
    char *bytes = bytes_to_send(call, length);
    if (file < 0 || write(file, bytes, length) != (ssize_t)length)
        say(call, "no file, ");
    off_t at = 0;
    say_result(call, sendfile(descriptor(call, 0), file, &at, length));
    say(call, " at %ld", (long)at);
    close(file);
}

// splice_to, splice_from: NAME LENGTH; through a pipe
static void do_splice_to(struct call *call) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    size_t length = limited(argument(call, 1)) % 65537;
    if (write(ends[1], bytes_to_send(call, length), length) != (ssize_t)length)
        say(call, "no room, ");
    say_result(call, splice(ends[0], NULL, descriptor(call, 0), NULL, length, argument(call, 2)));
    close(ends[0]), close(ends[1]);
}

static void do_splice_from(struct call *call) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    size_t length = limited(argument(call, 1)) % 65537;
    int fd = descriptor(call, 0);
    long moved = splice(fd, NULL, ends[1], NULL, length, SPLICE_F_NONBLOCK | argument(call, 2));
    if (moved > 0 && read(ends[0], room(), moved) != moved)
        say(call, "lost, ");
    say_received(call, moved);
    close(ends[0]), close(ends[1]);
}

// fionread: NAME
static void do_fionread(struct call *call) {
    int there = -1;
    long result = ioctl(descriptor(call, 0), FIONREAD, &there);
    say_result(call, result < 0 ? result : there);
}

const struct operation data_operations[] = {
    {"send", do_send},         {"sendto", do_sendto},     {"write", do_write},
    {"writev", do_writev},     {"sendmsg", do_sendmsg},   {"sendmmsg", do_sendmmsg},
    {"recv", do_recv},         {"recvfrom", do_recvfrom}, {"read", do_read},
    {"readv", do_readv},       {"recvmsg", do_recvmsg},   {"recvmmsg", do_recvmmsg},
    {"sendall", do_sendall},   {"recvall", do_recvall},   {"fill", do_fill},
    {"empty", do_empty},       {"sendfile", do_sendfile}, {"splice_to", do_splice_to},
    {"splice_from", do_splice_from}, {"fionread", do_fionread}, {NULL, NULL},
};
