// SPDX-License-Identifier: Apache-2.0 OR MIT
// Every call that sends or receives, with data of all sizes and shapes.

#include "case.h"

static char out[8 << 20], in[8 << 20];
static const size_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097, 16384, 65535,
                               65536, 65537, 131072, 262144, 1000000};
#define SIZES (sizeof sizes / sizeof *sizes)

CASE(send_and_recv_of_many_sizes, WARM | V6 | MIXED) {
    for (size_t i = 0; i < SIZES; i++) {
        fill(out, sizes[i], i);
        if (side == CLIENT) {
            TRY(send(fd, out, sizes[i], 0));
            meet(side, i + 1);
            continue;
        }
        TRY(receive_all(fd, in, sizes[i]));
        note_bytes("received", in, sizes[i]);
        note("as sent: %d", memcmp(in, out, sizes[i]) == 0);
        meet(side, i + 1);
    }
}

CASE(write_and_read_of_many_sizes, WARM | V6) {
    for (size_t i = 0; i < SIZES; i++) {
        if (side == SERVER) {
            fill(out, sizes[i], i);
            TRY(write(fd, out, sizes[i]));
            continue;
        }
        for (size_t done = 0; done < sizes[i];) {
            ssize_t got = read(fd, in + done, sizes[i] - done);
            require(got > 0, "read");
            done += got;
        }
        note_bytes("read", in, sizes[i]);
    }
}

CASE(nothing_is_sent_by_zero_bytes, WARM | V6) {
    struct iovec none = {out, 0};
    struct msghdr message = {.msg_iov = &none, .msg_iovlen = 1};
    struct msghdr empty = {0};
    if (side == CLIENT) {
        TRY(send(fd, out, 0, 0));
        TRY(send(fd, NULL, 0, 0));
        TRY(write(fd, out, 0));
        TRY(writev(fd, &none, 1));
        TRY(writev(fd, &none, 0));
        TRY(sendmsg(fd, &message, 0));
        TRY(sendmsg(fd, &empty, 0));
        reach(side, 1);
        await_peer(side, 1);
        TRY(send(fd, "end", 3, 0));
        return;
    }
    await_peer(side, 1);
    TRY(recv(fd, in, sizeof in, MSG_DONTWAIT));
    reach(side, 1);
    await_bytes(fd, 3);
    TRY(read(fd, in, 0));
    TRY(recv(fd, in, 0, 0));
    TRY(readv(fd, &none, 1));
    TRY(recvmsg(fd, &message, 0));
    TRY(recv(fd, in, sizeof in, 0));
    note_bytes("received", in, 3);
}

// Pieces of these lengths, laid out one after the other.
static int pieces(struct iovec *into, char *bytes, const size_t *lengths, int count) {
    for (int i = 0; i < count; i++) {
        into[i] = (struct iovec){lengths[i] ? bytes : NULL, lengths[i]};
        bytes += lengths[i];
    }
    return count;
}

static const size_t shape_odd[] = {0, 1, 0, 3, 100, 0, 7};
static const size_t shape_long[] = {70000, 1, 70000, 5000};
static const size_t shape_other[] = {10, 0, 1, 60000, 0, 30000};

CASE(writev_and_readv_of_odd_shapes, WARM | V6 | MIXED) {
    struct iovec parts[8];
    if (side == CLIENT) {
        fill(out, 300000, 7);
        TRY(writev(fd, parts, pieces(parts, out, shape_odd, 7)));
        TRY(writev(fd, parts, pieces(parts, out, shape_long, 4)));
        TRY(writev(fd, parts, pieces(parts, out, shape_other, 6)));
        return;
    }
    await_bytes(fd, 111);
    static const size_t small[] = {5, 0, 6};
    TRY(readv(fd, parts, pieces(parts, in, small, 3)));
    note_bytes("first", in, 11);
    static const size_t large[] = {50, 0, 50};
    TRY(readv(fd, parts, pieces(parts, in, large, 3)));
    note_bytes("second", in, 100);
    size_t expected = 145001 + 90011, got = 0;
    uint64_t sum = CHECKSUM_BEGIN;
    while (got < expected) {
        ssize_t more = readv(fd, parts, pieces(parts, in, shape_other, 6));
        require(more > 0, "readv");
        sum = checksum(sum, in, more);
        got += more;
    }
    note("the rest: %zu bytes %016llx", got, (unsigned long long)sum);
}

// Some programs rely on one receive returning what one send has sent. In the kernel this holds for
// short messages.
CASE(short_messages_come_whole, WARM | V6 | MIXED | RACE) {
    int cut = 0;
    fill(out, 2000, 11);
    for (int turn = 0; turn < 12000; turn++) {
        // From the first long one on, they need more room than before.
        int is_long = turn > 10000 && turn % 50 == 0;
        size_t length = 1 + turn * 7 % 60 + (is_long ? 1900 : 0), first = length / 3;
        if (turn % 2 == (side == CLIENT)) {
            struct iovec parts[] = {{out, first}, {out + first, length - first}};
            ssize_t sent = turn % 3 ? send(fd, out, length, 0) : writev(fd, parts, 2);
            require(sent == (ssize_t)length, "it is sent");
            continue;
        }
        ssize_t got = recv(fd, in, length, 0);
        require(got > 0, "something is received");
        cut += got != (ssize_t)length;
        require(receive_all(fd, in + got, length - got) == length - got, "all is received");
        require(memcmp(in, out, length) == 0, "it is as sent");
    }
    note("messages that were cut: %d", cut);
}

CASE(a_thousand_pieces_at_once, WARM) {
    struct iovec parts[1024];
    fill(out, 1024 * 50, 3);
    for (int i = 0; i < 1024; i++)
        parts[i] = (struct iovec){(side == CLIENT ? out : in) + i * 50, 1 + i % 50};
    size_t total = 0;
    for (int i = 0; i < 1024; i++)
        total += parts[i].iov_len;
    if (side == CLIENT) {
        TRY(writev(fd, parts, 1024));
        return;
    }
    await_bytes(fd, total);
    TRY(readv(fd, parts, 1024));
    note_bytes("pieces", in, 1024 * 50);
}

CASE(sendto_and_recvfrom_on_a_stream, WARM | V6) {
    struct sockaddr_storage from;
    memset(&from, 0x5a, sizeof from);
    socklen_t length = sizeof from;
    if (side == CLIENT) {
        TRY(sendto(fd, "plain", 5, 0, NULL, 0));
        const struct sockaddr *there = address(&length);
        TRY(sendto(fd, "addressed", 9, 0, there, length));
        return;
    }
    await_bytes(fd, 5);
    TRY(recvfrom(fd, in, 5, 0, (struct sockaddr *)&from, &length));
    note("length of the address: %u, touched: %d", length, ((char *)&from)[20] != 0x5a);
    TRY(recvfrom(fd, in, 9, MSG_WAITALL, NULL, NULL));
    note_bytes("received", in, 9);
}

CASE(sendmsg_and_recvmsg, WARM | V6 | MIXED) {
    struct iovec parts[8];
    struct msghdr message = {.msg_iov = parts};
    char control[100];
    if (side == CLIENT) {
        fill(out, 300, 9);
        message.msg_iovlen = pieces(parts, out, shape_odd, 7);
        TRY(sendmsg(fd, &message, 0));
        TRY(sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
        return;
    }
    await_bytes(fd, 222);
    struct sockaddr_storage from;
    message.msg_iovlen = pieces(parts, in, shape_odd, 7);
    message.msg_name = &from;
    message.msg_namelen = sizeof from;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    message.msg_flags = 0x7777;
    TRY(recvmsg(fd, &message, 0));
    note("name %u, control %zu, flags %#x", message.msg_namelen, message.msg_controllen,
         message.msg_flags);
    note_bytes("first", in, 111);
    TRY(recvmsg(fd, &message, MSG_CMSG_CLOEXEC));
    note("flags %#x", message.msg_flags);
    note_bytes("second", in, 111);
}

CASE(sendmmsg_and_recvmmsg, WARM | V6) {
    struct iovec parts[3];
    struct mmsghdr messages[3];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 3; i++) {
        parts[i] = (struct iovec){(side == CLIENT ? out : in) + 100 * i, 10 + i};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    if (side == CLIENT) {
        fill(out, 300, 4);
        TRY(sendmmsg(fd, messages, 3, 0));
        note("lengths %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
        TRY(sendmmsg(fd, messages, 0, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 33);
    TRY(recvmmsg(fd, messages, 3, 0, NULL));
    note("lengths %u %u %u", messages[0].msg_len, messages[1].msg_len, messages[2].msg_len);
    for (int i = 0; i < 3; i++)
        note_bytes("message", in + 100 * i, messages[i].msg_len);
    TRY(recvmmsg(fd, messages, 3, MSG_DONTWAIT, NULL));
    struct timespec soon = {0, 1000000};
    TRY(recvmmsg(fd, messages, 3, MSG_DONTWAIT, &soon));
    meet(side, 1);
}

CASE(recvmmsg_takes_what_is_there, WARM) {
    struct iovec parts[4];
    struct mmsghdr messages[4];
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 4; i++) {
        parts[i] = (struct iovec){in + 100 * i, 10};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    if (side == CLIENT) {
        TRY(send(fd, "0123456789abcde", 15, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 15);
    TRY(recvmmsg(fd, messages, 4, MSG_WAITFORONE, NULL));
    note("lengths %u %u", messages[0].msg_len, messages[1].msg_len);
    note_bytes("first", in, 10);
    note_bytes("second", in + 100, 5);
    meet(side, 1);
}

CASE(eight_mebibytes_blocking, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        fill(out, sizeof out, 1);
        TRY(send(fd, out, sizeof out, 0));
        TRY(shutdown(fd, SHUT_WR));
        return;
    }
    TRY(receive_all(fd, in, sizeof in));
    note_bytes("received", in, sizeof in);
    TRY(recv(fd, in, 1, 0));
}

CASE(each_sends_a_mebibyte_and_a_half_at_once, WARM | V6 | TCP) {
    // Neither side reads before both have sent everything.
    size_t length = 3 << 19;
    fill(out, length, side);
    TRY(send(fd, out, length, 0));
    meet(side, 1);
    TRY(receive_all(fd, in, length));
    note_bytes("received", in, length);
    meet(side, 2);
}

CASE(eight_mebibytes_with_waitall, WARM) {
    if (side == SERVER) {
        fill(out, sizeof out, 2);
        TRY(write(fd, out, sizeof out));
        return;
    }
    TRY(recv(fd, in, sizeof in, MSG_WAITALL));
    note_bytes("received", in, sizeof in);
}

CASE(four_mebibytes_without_blocking, WARM | V6 | MIXED) {
    size_t length = 4 << 20;
    set_blocking(fd, 0);
    if (side == CLIENT) {
        fill(out, length, 5);
        TRY(send_all(fd, out, length));
        meet(side, 1);
        return;
    }
    TRY(receive_all(fd, in, length));
    note_bytes("received", in, length);
    TRY(recv(fd, in, 10, 0));
    meet(side, 1);
}

// Both sides send and receive concurrently, as much as fits each time.
static void exchange(int fd, enum side side, size_t length) {
    size_t sent = 0, received = 0;
    fill(out, length, side + 20);
    set_blocking(fd, 0);
    while (sent < length || received < length) {
        struct pollfd asked = {fd, 0, 0};
        asked.events = (sent < length ? POLLOUT : 0) | (received < length ? POLLIN : 0);
        require(poll(&asked, 1, PATIENCE_MS) == 1, "poll");
        if (asked.revents & POLLOUT) {
            ssize_t more = send(fd, out + sent, length - sent, MSG_NOSIGNAL);
            require(more > 0 || errno == EAGAIN, "send");
            sent += more > 0 ? more : 0;
        }
        if (asked.revents & POLLIN) {
            ssize_t more = recv(fd, in + received, length - received, 0);
            require(more > 0 || errno == EAGAIN, "receive");
            received += more > 0 ? more : 0;
        }
    }
    note_bytes("received", in, received);
}

CASE(four_mebibytes_both_ways_at_once, WARM | V6 | MIXED) { exchange(fd, side, 4 << 20); }

CASE(both_send_before_either_receives, WARM | V6) {
    // Twice the minimum that the kernel buffers for a connection on one machine.
    size_t length = 200000;
    fill(out, length, side);
    TRY(send(fd, out, length, 0));
    meet(side, 1);
    TRY(recv(fd, in, length, MSG_WAITALL));
    note_bytes("received", in, length);
}

CASE(many_small_messages_one_after_the_other, WARM | MIXED) {
    uint64_t sum = CHECKSUM_BEGIN;
    for (int i = 0; i < 3000; i++) {
        size_t length = 1 + i * 37 % 200;
        if (side == CLIENT) {
            fill(out, length, i);
            require(send(fd, out, length, 0) == (ssize_t)length, "send");
            continue;
        }
        require(recv(fd, in, length, MSG_WAITALL) == (ssize_t)length, "receive");
        sum = checksum(sum, in, length);
    }
    note("received %016llx", (unsigned long long)sum);
}

CASE(request_and_answer_a_thousand_times, WARM | V6 | MIXED) {
    uint64_t sum = CHECKSUM_BEGIN;
    for (int i = 0; i < 1000; i++) {
        size_t request = 1 + i % 90, answer = 1 + i * 13 % 3000;
        if (side == CLIENT) {
            fill(out, request, i);
            require(send_all(fd, out, request) == request, "send");
            require(receive_all(fd, in, answer) == answer, "receive");
            sum = checksum(sum, in, answer);
        } else {
            require(receive_all(fd, in, request) == request, "receive");
            sum = checksum(sum, in, request);
            fill(out, answer, i);
            require(send_all(fd, out, answer) == answer, "send");
        }
    }
    note("received %016llx", (unsigned long long)sum);
}

// Symbols behind calls in a program compiled with fortify checks.
ssize_t __read_chk(int fd, void *into, size_t length, size_t room);
ssize_t __recv_chk(int fd, void *into, size_t length, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *into, size_t length, size_t room, int flags,
                       struct sockaddr *from, socklen_t *bytes);
int __poll_chk(struct pollfd *entries, nfds_t count, int milliseconds, size_t room);
int __ppoll_chk(struct pollfd *entries, nfds_t count, const struct timespec *time,
                const sigset_t *mask, size_t room);

CASE(fortified_calls, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "onetwothree", 11, 0));
        meet(side, 1);
        return;
    }
    struct pollfd asked = {fd, POLLIN, 0};
    await_bytes(fd, 11);
    TRY(__poll_chk(&asked, 1, PATIENCE_MS, sizeof asked));
    TRY(__ppoll_chk(&asked, 1, NULL, NULL, sizeof asked));
    TRY(__read_chk(fd, in, 3, sizeof in));
    TRY(__recv_chk(fd, in + 3, 3, sizeof in, MSG_WAITALL));
    TRY(__recvfrom_chk(fd, in + 6, 5, sizeof in, MSG_WAITALL, NULL, NULL));
    note_bytes("received", in, 11);
    meet(side, 1);
}
