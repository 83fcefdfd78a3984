// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ends of connections: shutdown of each half, close, reset, exit, and what the peer sees.

#include "case.h"

static char in[100000], out[100000];

static void note_rest(int fd) {
    ssize_t got = recv(fd, in, sizeof in, MSG_WAITALL);
    note("the rest: %zd %s", got, got < 0 ? strerrorname_np(errno) : "");
    if (got > 0)
        note_bytes("the rest", in, got);
}

// Result of a killed peer: the end of the stream, or a reset, depending on its unread bytes.
static void note_end_or_reset(int fd) {
    ssize_t got = recv(fd, in, 10, 0);
    note("ended: %d", got == 0 || (got < 0 && errno == ECONNRESET));
}

// Waits until sending must fail: the peer's answer to bytes after its close has arrived.
static void await_refusal(int fd) {
    int64_t deadline = now_ms() + PATIENCE_MS;
    struct pollfd asked = {fd, 0, 0};
    while (now_ms() < deadline && !(asked.revents & (POLLERR | POLLHUP)))
        poll(&asked, 1, 10);
}

CASE(half_closed_and_answered, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        TRY(shutdown(fd, SHUT_WR));
        TRY(send(fd, "more", 4, MSG_NOSIGNAL));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 6, 0));
        return;
    }
    note_rest(fd);
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, MSG_DONTWAIT));
    TRY(recv(fd, in, 10, MSG_PEEK));
    TRY(send(fd, "answer", 6, 0));
    TRY(close(fd));
}

CASE(states_while_half_closed, WARM | V6) {
    note_poll("open", fd);
    meet(side, 1);
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_WR));
        note_poll("write half closed here", fd);
        meet(side, 2);
        await_events(fd, POLLIN);
        note_poll("and data there", fd);
        TRY(recv(fd, in, 10, 0));
        note_poll("and read", fd);
        meet(side, 3);
        await_events(fd, POLLHUP);
        note_poll("closed by both", fd);
        TRY(recv(fd, in, 10, 0));
        note_poll("and read to the end", fd);
        meet(side, 4);
        return;
    }
    await_peer(side, 2);
    await_events(fd, POLLRDHUP);
    note_poll("write half closed there", fd);
    TRY(recv(fd, in, 10, 0));
    note_poll("and read to the end", fd);
    TRY(send(fd, "data", 4, 0));
    meet(side, 3);
    TRY(shutdown(fd, SHUT_WR));
    note_poll("closed by both", fd);
    meet(side, 4);
}

CASE(the_read_half_closed_here, WARM | V6 | TCP) {
    if (side == CLIENT) {
        await_peer(side, 1);
        TRY(send(fd, "data", 4, 0));
        meet(side, 2);
        TRY(send(fd, "more", 4, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        meet(side, 3);
        return;
    }
    TRY(shutdown(fd, SHUT_RD));
    note_poll("read half closed", fd);
    TRY(recv(fd, in, 10, 0));
    meet(side, 2);
    // Linux still delivers bytes that arrive afterwards.
    await_bytes(fd, 8);
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, 0));
    note_poll("and read", fd);
    TRY(send(fd, "answer", 6, 0));
    meet(side, 3);
}

CASE(the_read_half_closed_with_data_in_it, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "data", 4, 0));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    await_bytes(fd, 4);
    meet(side, 1);
    TRY(shutdown(fd, SHUT_RD));
    note_poll("read half closed", fd);
    TRY(recv(fd, in, 2, 0));
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, 0));
    meet(side, 2);
}

CASE(both_halves_closed_here, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_RDWR));
        note_poll("closed", fd);
        TRY(recv(fd, in, 10, 0));
        TRY(send(fd, "data", 4, MSG_NOSIGNAL));
        TRY(shutdown(fd, SHUT_RD));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    reach(side, 1);
    await_events(fd, POLLRDHUP);
    note_poll("closed there", fd);
    TRY(recv(fd, in, 10, 0));
    TRY(close(fd));
    meet(side, 2);
}

CASE(shutdown_more_than_once, WARM) {
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_WR));
        TRY(shutdown(fd, SHUT_WR));
        TRY(shutdown(fd, SHUT_RD));
        TRY(shutdown(fd, 17));
        TRY(shutdown(fd, -1));
        meet(side, 1);
        return;
    }
    TRY(shutdown(fd, 3));
    note_rest(fd);
    meet(side, 1);
}

static void *shut_down_soon(void *given) {
    sleep_ms(20);
    shutdown(*(int *)given, SHUT_RD);
    return NULL;
}

static void *shut_down_writing_soon(void *given) {
    sleep_ms(20);
    shutdown(*(int *)given, SHUT_WR);
    return NULL;
}

CASE(shutdown_of_writing_leaves_a_reader_waiting, WARM | RACE | V6) {
    if (side == SERVER) {
        pthread_t thread;
        pthread_create(&thread, NULL, shut_down_writing_soon, &fd);
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        pthread_join(thread, NULL);
    } else {
        TRY(recv(fd, in, 10, 0));
        sleep_ms(20);
        TRY(send(fd, "answer", 6, 0));
    }
    meet(side, 1);
}

CASE(shutdown_wakes_a_reader_of_the_same_process, WARM | RACE) {
    if (side == SERVER) {
        pthread_t thread;
        pthread_create(&thread, NULL, shut_down_soon, &fd);
        TRY(recv(fd, in, 10, 0));
        pthread_join(thread, NULL);
        TRY(send(fd, "still sent", 10, 0));
    } else {
        TRY(recv(fd, in, 10, MSG_WAITALL));
        note_bytes("received", in, 10);
    }
    meet(side, 1);
}

CASE(data_then_close, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        fill(out, 90000, 1);
        TRY(send(fd, out, 90000, 0));
        TRY(close(fd));
        TRY(send(fd, out, 10, MSG_NOSIGNAL));
        TRY(recv(fd, in, 10, 0));
        return;
    }
    note_rest(fd);
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, MSG_DONTWAIT));
}

CASE(data_then_exit, WARM | V6) {
    if (side == CLIENT) {
        fill(out, 90000, 2);
        TRY(send(fd, out, 90000, 0));
        exit(3);
    }
    sleep_ms(20);
    note_rest(fd);
    TRY(recv(fd, in, 10, 0));
}

CASE(data_then_killed, WARM | V6 | RACE | MIXED) {
    if (side == CLIENT) {
        fill(out, 90000, 3);
        TRY(send(fd, out, 90000, 0));
        kill(getpid(), SIGKILL);
    }
    sleep_ms(20);
    note_rest(fd);
    note_end_or_reset(fd);
}

CASE(killed_while_the_peer_waits, WARM | V6 | RACE | MIXED) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(20);
        kill(getpid(), SIGKILL);
    }
    reach(side, 1);
    int64_t begin = now_ms();
    note_end_or_reset(fd);
    note("within a second: %d", now_ms() - begin < 1000);
}

CASE(killed_while_the_peer_polls, WARM | RACE) {
    if (side == CLIENT) {
        await_peer(side, 1);
        sleep_ms(20);
        kill(getpid(), SIGKILL);
    }
    reach(side, 1);
    struct pollfd asked = {fd, POLLIN | POLLRDHUP, 0};
    TRY(poll(&asked, 1, PATIENCE_MS));
    note("%s", events_text(asked.revents & (POLLIN | POLLRDHUP)));
    note_end_or_reset(fd);
}

CASE(killed_while_the_peer_sends, WARM | RACE) {
    if (side == CLIENT) {
        await_peer(side, 1);
        recv(fd, in, 1000, 0);
        kill(getpid(), SIGKILL);
    }
    reach(side, 1);
    ssize_t sent = 0;
    for (int i = 0; i < 100000 && sent >= 0; i++)
        sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
    // A reset or the end, depending on the bytes in flight.
    note("ended: %d", sent < 0 && (errno == EPIPE || errno == ECONNRESET));
}

CASE(killed_with_data_unread, WARM | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "to the server", 13, 0));
        await_peer(side, 1);
        kill(getpid(), SIGKILL);
    }
    TRY(send(fd, "to the client", 13, 0));
    await_bytes(fd, 13);
    reach(side, 1);
    await_events(fd, POLLIN | POLLRDHUP);
    TRY(recv(fd, in, 13, MSG_WAITALL));
    note_bytes("received", in, 13);
    note_end_or_reset(fd);
}

CASE(closed_with_data_unread, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        await_bytes(fd, 4);
        TRY(close(fd));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    await_peer(side, 1);
    reach(side, 1);
    await_events(fd, POLLERR | POLLHUP);
    note_poll("reset", fd);
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, 0));
    TRY(send(fd, "data", 4, MSG_NOSIGNAL));
    note_poll("and read", fd);
    meet(side, 2);
}

CASE(closed_with_data_both_ways, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "last words", 10, 0));
        await_bytes(fd, 4);
        await_peer(side, 1);
        TRY(close(fd));
        meet(side, 2);
        meet(side, 3);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    await_bytes(fd, 10);
    meet(side, 2);
    await_events(fd, POLLERR | POLLHUP);
    note_poll("reset", fd);
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, 0));
    TRY(recv(fd, in, 100, 0));
    meet(side, 3);
}

CASE(the_error_of_a_reset_is_an_option_once, WARM | V6) {
    if (side == CLIENT) {
        await_bytes(fd, 4);
        TRY(close(fd));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    await_peer(side, 1);
    reach(side, 1);
    await_events(fd, POLLERR | POLLHUP);
    for (int i = 0; i < 2; i++) {
        int error = -1;
        socklen_t length = sizeof error;
        TRY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
        note("error: %s", error ? strerrorname_np(error) : "none");
    }
    TRY(recv(fd, in, 10, 0));
    meet(side, 2);
}

CASE(linger_of_zero_resets, WARM | V6 | TCP) {
    if (side == CLIENT) {
        struct linger at_once = {1, 0};
        TRY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once));
        TRY(close(fd));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    reach(side, 1);
    await_events(fd, POLLERR | POLLHUP);
    TRY(recv(fd, in, 10, 0));
    TRY(recv(fd, in, 10, 0));
    TRY(send(fd, "data", 4, MSG_NOSIGNAL));
    meet(side, 2);
}

CASE(a_waiting_reader_gets_the_reset, WARM) {
    if (side == CLIENT) {
        await_bytes(fd, 4);
        await_peer(side, 1);
        sleep_ms(20);
        TRY(close(fd));
        meet(side, 2);
        return;
    }
    TRY(send(fd, "data", 4, 0));
    reach(side, 1);
    TRY(recv(fd, in, 10, 0));
    meet(side, 2);
}

CASE(linger_of_seconds_waits_for_the_peer, WARM) {
    if (side == CLIENT) {
        struct linger wait = {1, 5};
        TRY(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait));
        TRY(send(fd, "data", 4, 0));
        TRY(close(fd));
        return;
    }
    note_rest(fd);
}

CASE(writes_after_the_peer_has_closed, WARM | V6 | MIXED) {
    if (side == CLIENT) {
        TRY(close(fd));
        meet(side, 1);
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    reach(side, 1);
    await_events(fd, POLLRDHUP);
    TRY(send(fd, "first", 5, MSG_NOSIGNAL));
    await_refusal(fd);
    note_poll("refused", fd);
    TRY(send(fd, "second", 6, MSG_NOSIGNAL));
    TRY(send(fd, "third", 5, MSG_NOSIGNAL));
    TRY(recv(fd, in, 10, 0));
    note_poll("at the end", fd);
    meet(side, 2);
}

CASE(a_broken_pipe_kills, WARM | V6) {
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_WR));
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
        TRY(write(fd, "x", 1));
        note("not reached");
        return;
    }
    note_rest(fd);
}

static volatile sig_atomic_t pipes_broken;
static void count_broken_pipe(int number) {
    (void)number;
    pipes_broken++;
}

CASE(a_broken_pipe_signals_each_call, WARM) {
    signal(SIGPIPE, count_broken_pipe);
    struct iovec part = {out, 3};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_WR));
        TRY(write(fd, "x", 1));
        TRY(send(fd, "x", 1, 0));
        TRY(writev(fd, &part, 1));
        TRY(sendmsg(fd, &message, 0));
        note("signals: %d", pipes_broken);
        TRY(send(fd, "x", 1, MSG_NOSIGNAL));
        TRY(sendmsg(fd, &message, MSG_NOSIGNAL));
        note("signals: %d", pipes_broken);
        signal(SIGPIPE, SIG_IGN);
        TRY(write(fd, "x", 1));
        return;
    }
    note_rest(fd);
}

CASE(a_peer_that_closes_wakes_a_blocked_sender, WARM | RACE) {
    if (side == CLIENT) {
        fill_up(fd);
        reach(side, 1);
        ssize_t sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
        if (sent >= 0)
            sent = send(fd, out, sizeof out, MSG_NOSIGNAL);
        note("ended: %d", sent < 0 && (errno == EPIPE || errno == ECONNRESET));
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    sleep_ms(20);
    TRY(close(fd));
    meet(side, 2);
}

CASE(addresses_after_the_peer_has_closed, WARM | V6) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    if (side == CLIENT) {
        TRY(close(fd));
        meet(side, 1);
        return;
    }
    meet(side, 1);
    await_events(fd, POLLRDHUP);
    TRY(getpeername(fd, (struct sockaddr *)&name, &length));
    TRY(getsockname(fd, (struct sockaddr *)&name, &length));
}

CASE(addresses_after_both_have_ended, WARM | V6) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    if (side == CLIENT) {
        TRY(shutdown(fd, SHUT_WR));
        TRY(getpeername(fd, (struct sockaddr *)&name, &length));
        meet(side, 1);
    } else {
        meet(side, 1);
        TRY(shutdown(fd, SHUT_WR));
    }
    await_events(fd, POLLRDHUP);
    // The last acknowledgement is in flight.
    sleep_ms(5);
    TRY(getpeername(fd, (struct sockaddr *)&name, &length));
    TRY(getsockname(fd, (struct sockaddr *)&name, &length));
    TRY(close(fd));
}

static char much[1000000];

CASE(a_mebibyte_then_exit_before_anybody_reads, WARM | V6 | MIXED | TCP) {
    fill(much, sizeof much, 5);
    if (side == CLIENT) {
        TRY(send(fd, much, sizeof much, 0));
        reach(side, 1);
        exit(4);
    }
    await_peer(side, 1);
    sleep_ms(30);
    uint64_t sum = checksum(CHECKSUM_BEGIN, much, sizeof much);
    memset(much, 0, sizeof much);
    TRY(recv(fd, much, sizeof much, MSG_WAITALL));
    note("as sent: %d", checksum(CHECKSUM_BEGIN, much, sizeof much) == sum);
    TRY(recv(fd, in, 1, 0));
}

CASE(a_mebibyte_then_killed_before_anybody_reads, WARM | RACE | TCP) {
    fill(much, sizeof much, 6);
    if (side == CLIENT) {
        TRY(send(fd, much, sizeof much, 0));
        reach(side, 1);
        kill(getpid(), SIGKILL);
    }
    await_peer(side, 1);
    sleep_ms(30);
    uint64_t sum = checksum(CHECKSUM_BEGIN, much, sizeof much);
    memset(much, 0, sizeof much);
    TRY(receive_all(fd, much, sizeof much));
    note("as sent: %d", checksum(CHECKSUM_BEGIN, much, sizeof much) == sum);
    note_end_or_reset(fd);
}

CASE(a_peer_that_closes_wakes_who_polls_for_room, WARM | RACE | V6) {
    if (side == CLIENT) {
        fill_up(fd);
        reach(side, 1);
        struct pollfd asked = {fd, POLLOUT, 0};
        TRY(poll(&asked, 1, PATIENCE_MS));
        note("not only a time-out: %d", asked.revents != 0);
        meet(side, 2);
        return;
    }
    await_peer(side, 1);
    sleep_ms(20);
    TRY(close(fd));
    meet(side, 2);
}
