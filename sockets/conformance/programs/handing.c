// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections handed over in every state, and what the other side does in the meantime.

#include "case.h"

#include <sys/epoll.h>
#include <sys/select.h>

static char in[1000];

static void answer(int fd, enum side side) {
    reach(side, 2);
    TRY(recv(fd, in, 8, MSG_WAITALL));
    TRY(send(fd, "answer", 6, 0));
}

CASE(the_peer_sleeps_in_recv, WARM | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 6, 0));
    } else {
        sleep_ms(30);
        pass_to_child(fd, side, answer, CLOSES);
    }
}

CASE(the_peer_polls, WARM | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        struct pollfd asked = {fd, POLLIN | POLLRDHUP, 0};
        TRY(poll(&asked, 1, PATIENCE_MS));
        note("%s", events_text(asked.revents & POLLIN));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        sleep_ms(30);
        pass_to_child(fd, side, answer, CLOSES);
    }
}

CASE(the_peer_selects, WARM | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        fd_set set;
        FD_ZERO(&set);
        FD_SET(fd, &set);
        TRY(select(fd + 1, &set, NULL, NULL, &(struct timeval){5, 0}));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        sleep_ms(30);
        pass_to_child(fd, side, answer, CLOSES);
    }
}

static void answer_and_stay(int fd, enum side side) {
    answer(fd, side);
    await_peer(side, 3);
}

static void wait_in_set(int fd, enum side side, unsigned flags) {
    if (side == SERVER) {
        sleep_ms(30);
        pass_to_child(fd, side, answer_and_stay, CLOSES);
        return;
    }
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | flags, .data.u64 = 0x7777777777};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    TRY(send(fd, "question", 8, 0));
    require(note_events("the answer", epoll, PATIENCE_MS) == 1, "an event");
    TRY(recv(fd, in, 6, MSG_WAITALL));
    reach(side, 3);
    if (flags & EPOLLONESHOT)
        TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
    require(note_events("the end", epoll, PATIENCE_MS) == 1, "an event");
    TRY(recv(fd, in, 6, 0));
}

CASE(the_peer_waits_in_a_set, WARM | RACE | V6) { wait_in_set(fd, side, EPOLLRDHUP); }
CASE(the_peer_waits_for_an_edge, WARM | RACE) { wait_in_set(fd, side, EPOLLET | EPOLLRDHUP); }
CASE(the_peer_waits_once, WARM | RACE) { wait_in_set(fd, side, EPOLLONESHOT); }

CASE(the_peer_does_not_look, WARM | RACE) {
    // For a while it makes no calls; the heir gets the bytes it sent before.
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        reach(side, 1);
        sleep_ms(200);
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
    } else {
        await_peer(side, 1);
        pass_to_child(fd, side, answer, CLOSES);
    }
}

static void answer_at_once(int fd, enum side side) {
    (void)side;
    TRY(send(fd, "answer", 6, 0));
}

// Messages in alternating directions, with pauses in which all effects of a message have happened
// before the next one.
static void talk_slowly(int end, enum side side, int messages) {
    for (int i = 0; i < messages; i++) {
        int sends = (i % 2 == 0) == (side == CLIENT);
        size_t moved = sends ? send_all(end, in, 40) : receive_all(end, in, 40);
        require(moved == 40, "a message");
        sleep_ms(2);
    }
}

// Handing over at about the switch, one side at a time. The peer makes no calls until then.
static void halfway_to_who_does_not_look(int fd, enum side side, enum side giver) {
    for (int messages = 9; messages < 25; messages++) {
        int end = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        require(end >= 0, "accept");
        talk_slowly(end, side, messages);
        if (side != giver) {
            await_peer(side, messages);
            TRY(recv(end, in, 6, MSG_WAITALL));
            note_bytes("received", in, 6);
            TRY(recv(end, in, 6, 0));
            close(end);
        } else {
            pass_to_child(end, side, answer_at_once, CLOSES);
            reach(side, messages);
        }
    }
}

CASE(halfway_to_a_client_that_does_not_look, BARE) {
    halfway_to_who_does_not_look(fd, side, SERVER);
}

CASE(halfway_to_a_server_that_does_not_look, BARE) {
    halfway_to_who_does_not_look(fd, side, CLIENT);
}

// A non-blocking receive can return EAGAIN until the peer has responded.
static void answer_once_it_is_there(int fd, enum side side) {
    await_bytes(fd, 8);
    answer(fd, side);
}

CASE(the_peer_looks_without_blocking, WARM | RACE) {
    set_blocking(fd, 0);
    if (side == CLIENT) {
        require(send(fd, "question", 8, 0) == 8, "send");
        ssize_t got;
        while ((got = recv(fd, in, 6, 0)) < 0 && errno == EAGAIN)
            sleep_ms(1);
        note("received: %zd", got);
        meet(side, 3);
    } else {
        await_bytes(fd, 8);
        pass_to_child(fd, side, answer_once_it_is_there, CLOSES);
        meet(side, 3);
    }
}

static void whether_it_blocks(int fd, enum side side) {
    TRY(fcntl(fd, F_GETFL));
    TRY(recv(fd, in, 1, 0));
    set_blocking(fd, 1);
    answer(fd, side);
}

CASE(without_blocking, WARM) {
    if (side == CLIENT) {
        await_peer(side, 2);
        TRY(send(fd, "question", 8, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        set_blocking(fd, 0);
        pass_to_child(fd, side, whether_it_blocks, CLOSES);
    }
}

static void options_of(int fd, enum side side) {
    int value = -1;
    socklen_t length = sizeof value;
    TRY(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length));
    note("TCP_NODELAY: %d", value);
    TRY(getsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, &length));
    note("SO_RCVLOWAT: %d", value);
    TRY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length));
    note("SO_ERROR: %d", value);
    struct timeval time;
    length = sizeof time;
    TRY(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, &length));
    note("SO_RCVTIMEO: %ld", (long)time.tv_sec);
    answer(fd, side);
}

static void with_options(int fd, enum side side, int no_delay, int low_water) {
    if (side == CLIENT) {
        await_peer(side, 2);
        TRY(send(fd, "question", 8, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        return;
    }
    struct timeval time = {7, 0};
    TRY(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay));
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof low_water));
    TRY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
    pass_to_child(fd, side, options_of, CLOSES);
}

CASE(options_go_along, WARM | TCP) { with_options(fd, side, 1, 5); }
CASE(options_as_they_are_at_first, WARM | TCP) { with_options(fd, side, 0, 1); }

static void read_what_was_asked(int fd, enum side side) {
    TRY(recv(fd, in, 8, MSG_WAITALL));
    note_bytes("received", in, 8);
    TRY(recv(fd, in, 8, 0));
    reach(side, 2);
}

CASE(the_peer_has_shut_down, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        TRY(shutdown(fd, SHUT_WR));
        reach(side, 1);
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 6, 0));
    } else {
        await_peer(side, 1);
        pass_to_child(fd, side, answer, CLOSES);
    }
}

CASE(the_peer_has_shut_down_and_does_not_look, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        TRY(shutdown(fd, SHUT_WR));
        reach(side, 1);
        await_peer(side, 3);
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 6, 0));
    } else {
        await_peer(side, 1);
        pass_to_child(fd, side, answer, CLOSES);
        reach(side, 3);
    }
}

CASE(both_have_shut_down, WARM) {
    // Neither side can send any more; unread bytes are handed over.
    TRY(send(fd, "question", 8, 0));
    TRY(shutdown(fd, SHUT_WR));
    meet(side, 1);
    if (side == CLIENT)
        await_peer(side, 2);
    if (side == CLIENT)
        read_what_was_asked(fd, side);
    else
        pass_to_child(fd, side, read_what_was_asked, CLOSES);
}

static void read_to_the_end(int fd, enum side side) {
    TRY(recv(fd, in, 8, MSG_WAITALL));
    TRY(recv(fd, in, 8, 0));
    TRY(send(fd, "x", 1, MSG_NOSIGNAL));
    reach(side, 2);
}

CASE(after_shutting_down, WARM | V6) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 5, MSG_WAITALL));
        TRY(recv(fd, in, 6, 0));
        TRY(send(fd, "question", 8, 0));
        TRY(shutdown(fd, SHUT_WR));
        await_peer(side, 2);
    } else {
        TRY(send(fd, "words", 5, 0));
        TRY(shutdown(fd, SHUT_WR));
        pass_to_child(fd, side, read_to_the_end, CLOSES);
    }
}

CASE(after_shutting_down_the_other_half, WARM) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        meet(side, 1);
        return;
    }
    TRY(shutdown(fd, SHUT_RD));
    int pair[2];
    new_pair(pair);
    give(pair[0], fd);
    close(fd);
    int got = taken(pair[1]);
    TRY(recv(got, in, 1, 0));
    TRY(send(got, "answer", 6, 0));
    meet(side, 1);
}

static void read_what_is_left(int fd, enum side side) {
    TRY(recv(fd, in, 10, MSG_WAITALL));
    note_bytes("received", in, 10);
    TRY(recv(fd, in, 10, 0));
}

CASE(the_peer_has_closed, WARM | V6) {
    if (side == CLIENT) {
        TRY(send(fd, "last words", 10, 0));
        TRY(close(fd));
        reach(side, 1);
    } else {
        await_peer(side, 1);
        pass_to_child(fd, side, read_what_is_left, CLOSES);
    }
}

CASE(the_peer_has_closed_and_all_is_read, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "last words", 10, 0));
        TRY(close(fd));
        return;
    }
    TRY(recv(fd, in, 10, MSG_WAITALL));
    TRY(recv(fd, in, 10, 0));
    int pair[2];
    new_pair(pair);
    give(pair[0], fd);
    int got = taken(pair[1]);
    TRY(recv(got, in, 10, 0));
}

static void urgent(int fd, enum side side) {
    reach(side, 2);
    await_events(fd, POLLPRI);
    TRY(recv(fd, in, 1, MSG_OOB));
    note_bytes("urgent", in, 1);
    TRY(recv(fd, in, 6, MSG_WAITALL));
    note_bytes("others", in, 6);
    TRY(send(fd, "!", 1, MSG_OOB));
    meet(side, 3);
}

CASE(urgent_data_for_the_heir, WARM | V6 | TCP) {
    if (side == SERVER) {
        pass_to_child(fd, side, urgent, CLOSES);
        return;
    }
    await_peer(side, 2);
    TRY(send(fd, "before", 6, 0));
    TRY(send(fd, "!", 1, MSG_OOB));
    await_events(fd, POLLPRI);
    TRY(recv(fd, in, 1, MSG_OOB));
    note_bytes("urgent", in, 1);
    meet(side, 3);
}

CASE(looked_at_before, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        TRY(recv(fd, in, 6, 0));
    } else {
        await_bytes(fd, 8);
        TRY(recv(fd, in, 4, MSG_PEEK));
        note_bytes("seen", in, 4);
        pass_to_child(fd, side, answer, CLOSES);
    }
}

CASE(in_the_middle_of_a_message, WARM) {
    if (side == CLIENT) {
        TRY(send(fd, "a long question", 15, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        TRY(recv(fd, in, 7, MSG_WAITALL));
        pass_to_child(fd, side, answer, CLOSES);
    }
}

CASE(with_bytes_from_before_the_upgrade, RACE) {
    // These are in the kernel, and the ring begins after them: so the connection is never fully
    // upgraded.
    if (side == CLIENT) {
        TRY(send(fd, "from before the upgrade", 23, 0));
        for (int i = 0; i < 30; i++) {
            require(recv(fd, in, 1, 0) == 1, "receive");
            require(send(fd, "x", 1, 0) == 1, "send");
            sleep_ms(1);
        }
        await_peer(side, 2);
        TRY(send(fd, "end", 3, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        meet(side, 3);
        return;
    }
    for (int i = 0; i < 30; i++)
        require(send(fd, "y", 1, 0) == 1, "send");
    await_bytes(fd, 53);
    int pair[2];
    new_pair(pair);
    give(pair[0], fd);
    close(fd);
    int got = taken(pair[1]);
    reach(side, 2);
    TRY(recv(got, in, 56, MSG_WAITALL));
    note_bytes("received", in, 56);
    TRY(send(got, "answer", 6, 0));
    meet(side, 3);
}

CASE(standard_input_of_this_process, WARM) {
    // Moved to the standard input, which the C library reads without the preloaded library.
    begin_handing(fd, side);
    if (side == SERVER) {
        char line[60];
        TRY(dup2(fd, 0));
        reach(side, 2);
        require(fgets(line, sizeof line, stdin) != NULL, "fgets");
        note_bytes("read", line, strcspn(line, "\n"));
        TRY(send(fd, "x", 1, 0));
    } else {
        await_peer(side, 2);
        TRY(send(fd, "a line\n", 7, 0));
        TRY(recv(fd, in, 15, MSG_WAITALL));
    }
    meet(side, 3);
}

CASE(a_stream_of_the_c_library, WARM | V6) {
    begin_handing(fd, side);
    if (side == SERVER) {
        char line[60];
        FILE *stream = fdopen(fd, "r+");
        require(stream != NULL, "fdopen");
        reach(side, 2);
        require(fgets(line, sizeof line, stream) != NULL, "fgets");
        note_bytes("read", line, strcspn(line, "\n"));
        TRY(fprintf(stream, "%d answers", 42));
        TRY(fclose(stream));
    } else {
        await_peer(side, 2);
        TRY(send(fd, "a line\n", 7, 0));
        TRY(recv(fd, in, 24, MSG_WAITALL));
        note_bytes("received", in, 24);
        TRY(recv(fd, in, 1, 0));
    }
}
