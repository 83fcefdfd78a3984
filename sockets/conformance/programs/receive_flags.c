// SPDX-License-Identifier: Apache-2.0 OR MIT
// Flags for receiving and sending.

#include "case.h"

static char in[200000], out[200000];

CASE(peek_leaves_the_bytes, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "0123456789", 10, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 10);
    TRY(recv(fd, in, 4, MSG_PEEK));
    note_bytes("peeked", in, 4);
    TRY(recv(fd, in, 100, MSG_PEEK));
    note_bytes("peeked", in, 10);
    TRY(recv(fd, in, 3, 0));
    note_bytes("received", in, 3);
    TRY(recv(fd, in, 100, MSG_PEEK | MSG_DONTWAIT));
    note_bytes("peeked", in, 7);
    TRY(recv(fd, in, 100, 0));
    note_bytes("received", in, 7);
    TRY(recv(fd, in, 100, MSG_PEEK | MSG_DONTWAIT));
    meet(side, 1);
}

CASE(peek_sees_several_messages, WARM) {
    if (side == CLIENT) {
        for (int i = 0; i < 50; i++) {
            fill(out, 1000, i);
            require(send(fd, out, 1000, 0) == 1000, "send");
        }
        meet(side, 1);
        return;
    }
    await_bytes(fd, 50000);
    TRY(recv(fd, in, sizeof in, MSG_PEEK));
    note_bytes("peeked", in, 50000);
    struct iovec parts[2] = {{in, 30000}, {in + 100000, 30000}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    TRY(recvmsg(fd, &message, MSG_PEEK));
    note_bytes("first part", in, 30000);
    note_bytes("second part", in + 100000, 20000);
    TRY(recv(fd, in, 50000, MSG_WAITALL));
    note_bytes("received", in, 50000);
    meet(side, 1);
}

CASE(peek_waits_for_the_first_byte, WARM) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(20);
        TRY(send(fd, "late", 4, 0));
        meet(side, 2);
        return;
    }
    reach(side, 1);
    TRY(recv(fd, in, 4, MSG_PEEK));
    TRY(recv(fd, in, 100, 0));
    note_bytes("received", in, 4);
    meet(side, 2);
}

CASE(waitall_waits_for_all, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        for (int i = 0; i < 10; i++) {
            fill(out, 5000, i);
            TRY(send(fd, out, 5000, 0));
            sleep_ms(2);
        }
        return;
    }
    TRY(recv(fd, in, 50000, MSG_WAITALL));
    note_bytes("received", in, 50000);
}

CASE(waitall_is_cut_short_by_the_end, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "first", 5, 0));
        sleep_ms(10);
        TRY(send(fd, "second", 6, 0));
        sleep_ms(10);
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 1000, MSG_WAITALL));
    note_bytes("received", in, 11);
    TRY(recv(fd, in, 1000, MSG_WAITALL));
    meet(side, 1);
}

CASE(waitall_without_blocking_takes_what_is_there, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "some", 4, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 4);
    TRY(recv(fd, in, 1000, MSG_WAITALL | MSG_DONTWAIT));
    TRY(recv(fd, in, 1000, MSG_WAITALL | MSG_DONTWAIT));
    set_blocking(fd, 0);
    TRY(recv(fd, in, 1000, MSG_WAITALL));
    meet(side, 1);
}

CASE(waitall_of_many_pieces, WARM) {
    struct iovec parts[3] = {{in, 1000}, {in + 2000, 30000}, {in + 50000, 9000}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    if (side == CLIENT) {
        fill(out, 40000, 1);
        TRY(send(fd, out, 500, 0));
        sleep_ms(5);
        TRY(send(fd, out + 500, 20000, 0));
        sleep_ms(5);
        TRY(send(fd, out + 20500, 19500, 0));
        meet(side, 1);
        return;
    }
    TRY(recvmsg(fd, &message, MSG_WAITALL));
    note_bytes("received", in, 60000);
    meet(side, 1);
}

CASE(dontwait_says_that_nothing_is_there, WARM | V6 | MIXED) {
    struct iovec part = {in, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    TRY(recv(fd, in, 10, MSG_DONTWAIT));
    TRY(recvfrom(fd, in, 10, MSG_DONTWAIT, NULL, NULL));
    TRY(recvmsg(fd, &message, MSG_DONTWAIT));
    TRY(recv(fd, in, 10, MSG_DONTWAIT | MSG_PEEK));
    TRY(recv(fd, in, 10, MSG_DONTWAIT | MSG_TRUNC));
    set_blocking(fd, 0);
    TRY(read(fd, in, 10));
    TRY(readv(fd, &part, 1));
    TRY(recv(fd, in, 10, 0));
    meet(side, 1);
}

CASE(full_connections_take_nothing_until_drained, WARM | V6 | MIXED) {
    struct iovec part = {out, 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (side == CLIENT) {
        note("something fitted: %d", fill_up(fd) > 1000);
        TRY(send(fd, out, 1, MSG_DONTWAIT));
        TRY(sendto(fd, out, 1, MSG_DONTWAIT, NULL, 0));
        TRY(sendmsg(fd, &message, MSG_DONTWAIT));
        set_blocking(fd, 0);
        TRY(write(fd, out, 1));
        TRY(writev(fd, &part, 1));
        note_poll("full", fd);
        reach(side, 1);
        await_peer(side, 1);
        await_events(fd, POLLOUT);
        TRY(send(fd, "again", 5, 0));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    note("something was there: %d", drain(fd) > 1000);
    reach(side, 1);
    TRY(recv(fd, in, 5, 0));
    note_bytes("received", in, 5);
    meet(side, 2);
}

CASE(blocked_senders_go_on_when_drained, WARM | V6) {
    if (side == CLIENT) {
        fill_up(fd);
        reach(side, 1);
        fill(out, sizeof out, 3);
        TRY(send(fd, out, sizeof out, 0));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    sleep_ms(20);
    size_t total = 0;
    ssize_t got;
    static char last[sizeof out];
    while ((got = recv(fd, in, sizeof in, 0)) > 0) {
        // The last 200,000 bytes stay in `last`.
        if ((size_t)got < sizeof last)
            memmove(last, last + got, sizeof last - got);
        memcpy(last + sizeof last - got, in, got);
        total += got;
    }
    note("ended with %zd, all was there: %d", got, total > sizeof out);
    note_bytes("the last", last, sizeof last);
    meet(side, 2);
}

CASE(trunc_throws_bytes_away, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "0123456789abcdef", 16, 0));
        meet(side, 1);
        return;
    }
    await_bytes(fd, 16);
    memset(in, '-', 20);
    TRY(recv(fd, in, 4, MSG_TRUNC));
    TRY(recv(fd, NULL, 4, MSG_TRUNC));
    TRY(recv(fd, in, 100, 0));
    note_bytes("left", in, 8);
    TRY(recv(fd, in, 100, MSG_TRUNC | MSG_DONTWAIT));
    meet(side, 1);
}

CASE(more_delays_at_most, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "one ", 4, MSG_MORE));
        TRY(send(fd, "two ", 4, MSG_MORE));
        TRY(send(fd, "three", 5, 0));
        meet(side, 1);
        TRY(send(fd, "alone", 5, MSG_MORE));
        meet(side, 2);
        return;
    }
    TRY(recv(fd, in, 13, MSG_WAITALL));
    note_bytes("received", in, 13);
    meet(side, 1);
    TRY(recv(fd, in, 5, MSG_WAITALL));
    note_bytes("received", in, 5);
    meet(side, 2);
}

CASE(the_error_queue_is_empty, WARM | TCP) {
    TRY(recv(fd, in, 10, MSG_ERRQUEUE));
    TRY(recv(fd, in, 10, MSG_ERRQUEUE | MSG_DONTWAIT));
    meet(side, 1);
}

CASE(no_urgent_data_without_a_sender, WARM) {
    TRY(recv(fd, in, 1, MSG_OOB | MSG_DONTWAIT));
    int mark = -1;
    TRY(ioctl(fd, SIOCATMARK, &mark));
    note("at the mark: %d", mark);
    meet(side, 1);
}

CASE(peek_with_waitall, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "01234", 5, 0));
        sleep_ms(20);
        TRY(send(fd, "56789", 5, 0));
        sleep_ms(20);
        TRY(send(fd, "ab", 2, 0));
        TRY(shutdown(fd, SHUT_WR));
        meet(side, 1);
        return;
    }
    TRY(recv(fd, in, 10, MSG_PEEK | MSG_WAITALL));
    note_bytes("peeked", in, 10);
    TRY(recv(fd, in, 3, MSG_PEEK | MSG_WAITALL));
    TRY(recv(fd, in, 10, MSG_WAITALL));
    note_bytes("received", in, 10);
    TRY(recv(fd, in, 10, MSG_PEEK | MSG_WAITALL));
    TRY(recv(fd, in, 10, MSG_WAITALL));
    note_bytes("received", in, 2);
    meet(side, 1);
}

CASE(nothing_asked_for_at_the_end, WARM) {
    struct msghdr empty = {0};
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_WR));
    } else {
        await_events(fd, POLLRDHUP);
        TRY(recv(fd, in, 0, 0));
        TRY(read(fd, in, 0));
        TRY(recvmsg(fd, &empty, 0));
        TRY(recv(fd, in, 0, MSG_DONTWAIT));
        TRY(recv(fd, in, 1, 0));
    }
    meet(side, 1);
}

CASE(nothing_asked_for_where_nothing_is, WARM | V6) {
    // A recv of zero bytes still waits for data; a read of zero bytes does not.
    char bytes[4];
    if (side == SERVER) {
        TRY(recv(fd, bytes, 0, MSG_DONTWAIT));
        TRY(read(fd, bytes, 0));
        meet(side, 1);
        TRY(recv(fd, bytes, 0, 0));
        TRY(recv(fd, bytes, 4, MSG_WAITALL));
    } else {
        meet(side, 1);
        TRY(send(fd, "some", 4, 0));
    }
    meet(side, 2);
}

CASE(more_than_a_page_thrown_away, WARM | V6 | TCP) {
    char bytes[20000] = {0};
    if (side == CLIENT) {
        TRY(send(fd, bytes, sizeof bytes, 0));
    } else {
        await_bytes(fd, sizeof bytes);
        TRY(recv(fd, NULL, 15000, MSG_TRUNC));
        TRY(recv(fd, bytes, sizeof bytes, 0));
    }
    meet(side, 1);
}
