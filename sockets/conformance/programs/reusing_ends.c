// SPDX-License-Identifier: Apache-2.0 OR MIT
// Ends of connections over reused streams: in which order, with which unread bytes, with which
// process killed, and after which other events.

#include "again.h"

#include <sys/epoll.h>

#define ROUNDS 3
#define EACH_AGAIN(listener, end)                                                                  \
    for (int round = 0, end; round < ROUNDS && (end = again(side, listener), 1); round++)

static char in[200000];

// State of the end for the side that has not closed.
static void note_what_is_left(int end) {
    await_events(end, POLLIN | POLLRDHUP);
    note_poll("closed there", end);
    TRY(recv(end, in, sizeof in, 0));
    TRY(recv(end, in, sizeof in, MSG_DONTWAIT));
}

CASE(either_closes_first, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < 6; round++) {
        int end = again(side, listener);
        exchange(end, side, "before the end");
        enum side first = round % 2 ? SERVER : CLIENT;
        if (side == first)
            TRY(close(end));
        meet_again(side);
        if (side != first) {
            note_what_is_left(end);
            TRY(close(end));
        }
        meet_again(side);
    }
    prove_again(side);
}

CASE(both_close_at_once, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < 20; round++) {
        int end = again(side, listener);
        exchange(end, side, "both");
        meet_again(side);
        TRY(close(end));
    }
    prove_again(side);
}

CASE(sends_to_a_closed_peer, TCP | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < 4; round++) {
        int end = again(side, listener), error = -1;
        socklen_t bytes = sizeof error;
        exchange(end, side, "before the end");
        enum side first = round % 2 ? SERVER : CLIENT;
        if (side == first)
            TRY(close(end));
        meet_again(side);
        if (side != first) {
            if (round < 2)
                TRY(recv(end, in, 1, 0));
            TRY(send(end, "nobody", 6, MSG_NOSIGNAL));
            await_events(end, POLLERR | POLLHUP);
            note_poll("after sending", end);
            TRY(getsockopt(end, SOL_SOCKET, SO_ERROR, &error, &bytes));
            note("error %s", error ? strerrorname_np(error) : "none");
            TRY(send(end, "nobody", 6, MSG_NOSIGNAL));
            TRY(recv(end, in, 1, 0));
            TRY(close(end));
        }
        meet_again(side);
        end = again(side, listener);
        exchange(end, side, "the next one knows nothing of that");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(half_closed_again, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        if (side == CLIENT) {
            TRY(send(end, "a question", 10, 0));
            TRY(shutdown(end, SHUT_WR));
            TRY(send(end, "x", 1, MSG_NOSIGNAL));
            TRY(recv(end, in, 6, MSG_WAITALL));
            note_bytes("received", in, 6);
            TRY(recv(end, in, 6, 0));
        } else {
            TRY(recv(end, in, 10, MSG_WAITALL));
            TRY(recv(end, in, 10, 0));
            note_poll("half", end);
            TRY(send(end, "answer", 6, 0));
        }
        TRY(close(end));
        meet_again(side);
    }
    prove_again(side);
}

CASE(both_halves_shut_again, TCP | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "before");
        TRY(shutdown(end, side == CLIENT ? SHUT_RDWR : SHUT_WR));
        meet_again(side);
        TRY(recv(end, in, 6, 0));
        TRY(close(end));
        meet_again(side);
    }
    prove_again(side);
}

CASE(closed_with_something_unread, TCP | REUSED) {
    int listener = begin_again(fd, side);
    for (int round = 0; round < 4; round++) {
        int end = again(side, listener);
        enum side first = round % 2 ? SERVER : CLIENT;
        if (side != first) {
            TRY(send(end, "never read", 10, 0));
            meet_again(side);
            await_events(end, POLLHUP | POLLERR);
            note_poll("reset", end);
            TRY(recv(end, in, 1, 0));
            TRY(recv(end, in, 1, 0));
        } else {
            await_bytes(end, 10);
            TRY(close(end));
            meet_again(side);
        }
        if (side != first)
            TRY(close(end));
        end = again(side, listener);
        exchange(end, side, "the next one is not reset");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(reset_by_linger_again, TCP | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        struct linger none = {1, 0};
        exchange(end, side, "before");
        if (side == CLIENT) {
            TRY(setsockopt(end, SOL_SOCKET, SO_LINGER, &none, sizeof none));
            TRY(close(end));
            meet_again(side);
        } else {
            meet_again(side);
            await_events(end, POLLHUP | POLLERR);
            TRY(recv(end, in, 1, 0));
            TRY(recv(end, in, 1, 0));
            TRY(close(end));
        }
        end = again(side, listener);
        exchange(end, side, "the next one lingers not");
        close_again(end, side);
    }
    prove_again(side);
}

CASE(copies_of_both_ends, TCP | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        int copy = TRY_OK(dup(end));
        TRY(close(end));
        exchange(copy, side, "by the copy");
        close_again(copy, side);
    }
    prove_again(side);
}

CASE(one_is_still_open_while_others_come_and_go, TCP | REUSED) {
    int listener = begin_again(fd, side);
    int stays = again(side, listener), half = -1;
    EACH_AGAIN(listener, end) {
        exchange(stays, side, "there all the time");
        exchange(end, side, "here for once");
        // The client's end is closed immediately, the server's when the next one is accepted.
        if (side == CLIENT)
            TRY(close(end));
        if (side == SERVER && half >= 0) {
            TRY(recv(half, in, 1, 0));
            TRY(close(half));
        }
        half = end;
    }
    exchange(stays, side, "and at the end");
    close_again(stays, side);
    prove_again(side);
}

CASE(a_listener_that_is_closed_refuses, TCP | V6 | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "while it listens");
        close_again(end, side);
    }
    prove_again(side);
    meet_again(side);
    if (side == SERVER)
        TRY(close(listener));
    meet_again(side);
    socklen_t length;
    const struct sockaddr *there = there_again(&length);
    if (side == CLIENT) {
        for (int i = 0; i < 3; i++) {
            int end = socket_again(0);
            TRY(connect(end, there, length));
            TRY(close(end));
        }
    }
    meet_again(side);
    // Another socket listens there.
    if (side == SERVER) {
        int on = 1;
        listener = socket_again(0);
        TRY(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
        TRY(bind(listener, there, length));
        TRY(listen(listener, 16));
    }
    meet_again(side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "by the new one");
        close_again(end, side);
    }
}

CASE(a_listener_is_closed_before_it_accepts, TCP | REUSED) {
    int listener = begin_again(fd, side);
    int end = again(side, listener);
    exchange(end, side, "accepted");
    close_again(end, side);
    meet_again(side);
    if (side == CLIENT)
        end = connect_again();
    prove_again(side);
    meet_again(side);
    if (side == SERVER)
        TRY(close(listener));
    meet_again(side);
    if (side == CLIENT) {
        await_events(end, POLLHUP | POLLERR);
        note_poll("nobody accepts", end);
        TRY(recv(end, in, 1, 0));
        TRY(send(end, "x", 1, MSG_NOSIGNAL));
    }
}

CASE(shut_down_while_it_listens, TCP | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "before");
        close_again(end, side);
    }
    prove_again(side);
    meet_again(side);
    if (side == SERVER) {
        TRY(shutdown(listener, SHUT_RDWR));
        TRY(accept(listener, NULL, NULL));
        note_poll("shut", listener);
    }
    meet_again(side);
    if (side == CLIENT) {
        socklen_t length;
        const struct sockaddr *there = there_again(&length);
        int end = socket_again(0);
        TRY(connect(end, there, length));
    }
}

CASE(a_child_for_each_connection, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "before there are children");
        close_again(end, side);
    }
    prove_again(side);
    EACH_AGAIN(listener, end) {
        if (side == SERVER) {
            pid_t child = fork();
            if (child == 0) {
                close(listener);
                exchange(end, side, "with the child");
                close_again(end, side);
                _exit(0);
            }
            // Not noted: the child writes to the transcript at the same time.
            require(close(end) == 0, "close");
            note_end("child", child);
        } else {
            exchange(end, side, "with the child");
            close_again(end, side);
        }
        meet_again(side);
    }
}

CASE(parent_and_child_connect, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "before there is a child");
        close_again(end, side);
    }
    prove_again(side);
    pid_t child = side == CLIENT ? fork() : 0;
    // First the child alone, then its parent.
    if (side == SERVER || child == 0) {
        EACH_AGAIN(listener, end) {
            exchange(end, side, "from the child");
            close_again(end, side);
        }
        if (side == CLIENT)
            _exit(0);
    } else {
        note_end("child", child);
        skip_again(ROUNDS);
    }
    EACH_AGAIN(listener, end) {
        exchange(end, side, "from the parent");
        close_again(end, side);
    }
}

CASE(a_child_has_an_open_one, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    int end = again(side, listener);
    prove_again(side);
    if (side == CLIENT) {
        exchange(end, side, "with the parent");
        exchange(end, side, "with the child");
        TRY(recv(end, in, 1, 0));
        TRY(close(end));
    } else {
        exchange(end, side, "with the parent");
        pid_t child = fork();
        if (child == 0) {
            exchange(end, side, "with the child");
            _exit(0);
        }
        note_end("child", child);
        TRY(close(end));
    }
    end = again(side, listener);
    exchange(end, side, "the next one");
    close_again(end, side);
}

CASE(handed_to_a_child, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        begin_handing(end, side);
        if (round == 0)
            prove_again(side);
        if (side == SERVER) {
            pass_to_child(end, side, be_heir, CLOSES);
        } else {
            talk_to_heir(end, side);
            TRY(recv(end, in, 1, 0));
            TRY(close(end));
        }
        meet_again(side);
    }
}

CASE(urgent_data_over_one, TCP | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "before");
        if (side == CLIENT) {
            TRY(send(end, "!", 1, MSG_OOB));
            exchange(end, side, "behind");
        } else {
            await_events(end, POLLPRI);
            TRY(recv(end, in, 1, MSG_OOB));
            exchange(end, side, "behind");
        }
        close_again(end, side);
        if (round == 0)
            prove_again(side);
    }
}

PROGRAM(connects) {
    static const struct sockaddr_in nowhere;
    struct sockaddr_in there = nowhere;
    socklen_t length = sizeof there;
    // The open connection survives the exec, and has the address of the later ones.
    note("family %d", (getpeername(fd, (struct sockaddr *)&there, &length), there.sin_family));
    exchange(fd, side, "by what it has become");
    TRY(close(fd));
    for (int i = 0; i < ROUNDS; i++) {
        int end = socket(AF_INET, SOCK_STREAM, 0);
        require(connect(end, (struct sockaddr *)&there, length) == 0, "connect");
        exchange(end, side, "once more");
        TRY(close(end));
    }
}

CASE(the_client_becomes_another_program, TCP | RACE | REUSED) {
    int listener = begin_again(fd, side);
    EACH_AGAIN(listener, end) {
        exchange(end, side, "before");
        close_again(end, side);
    }
    int end = again(side, listener);
    prove_again(side);
    if (side == CLIENT) {
        execv("/proc/self/exe", as_program("connects", side, end));
        _exit(98);
    }
    exchange(end, side, "by what it has become");
    TRY(recv(end, in, 1, 0));
    TRY(close(end));
    for (int i = 0; i < ROUNDS; i++) {
        end = TRY_OK(accept(listener, NULL, NULL));
        exchange(end, side, "once more");
        close_again(end, side);
    }
}

// A point after all others that the sides reach: a child of one side was killed.
#define DEAD (1 << 20)

CASE(the_client_is_killed, TCP | RACE | REUSED) {
    if (side == SERVER) {
        int listener = begin_again(fd, side);
        // One is open, one was never accepted, and some are at rest.
        int open = again(side, listener);
        prove_again(side);
        await_peer(side, DEAD);
        TRY(recv(open, in, sizeof in, 0));
        note_bytes("received", in, 9);
        TRY(recv(open, in, sizeof in, 0));
        int late = TRY_OK(accept(listener, NULL, NULL));
        TRY(recv(late, in, sizeof in, 0));
        note_bytes("received", in, 13);
        TRY(recv(late, in, sizeof in, 0));
        TRY(close(open));
        TRY(close(late));
        // Nothing is left of the client.
        set_blocking(listener, 0);
        TRY(accept(listener, NULL, NULL));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        begin_again(fd, side);
        int open = again(side, -1);
        prove_again(side);
        TRY(send(open, "last word", 9, 0));
        int late = connect_again();
        TRY(send(late, "never to meet", 13, 0));
        kill(getpid(), SIGKILL);
    }
    note_end("client", child);
    reach(side, DEAD);
}

CASE(the_client_ends_before_it_is_accepted, TCP | RACE | REUSED) {
    if (side == SERVER) {
        int listener = begin_again(fd, side);
        await_peer(side, DEAD);
        for (int i = 0; i < ROUNDS; i++) {
            int late = TRY_OK(accept(listener, NULL, NULL));
            note_bytes("received", in, receive_all(late, in, 13));
            TRY(recv(late, in, sizeof in, 0));
            TRY(close(late));
        }
        set_blocking(listener, 0);
        TRY(accept(listener, NULL, NULL));
        prove_again(side);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        begin_again(fd, side);
        for (int i = 0; i < ROUNDS; i++) {
            int late = connect_again();
            TRY(send(late, "what is left!", 13, 0));
            TRY(close(late));
        }
        prove_again(side);
        exit(0);
    }
    note_end("client", child);
    reach(side, DEAD);
}

CASE(the_server_is_killed, TCP | RACE | REUSED) {
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0) {
            int listener = begin_again(fd, side);
            int open = again(side, listener);
            prove_again(side);
            exchange(open, side, "while it lives");
            meet_again(side);
            kill(getpid(), SIGKILL);
        }
        note_end("server", child);
        // Its listener is closed.
        reach(side, DEAD);
        return;
    }
    begin_again(fd, side);
    int open = again(side, -1);
    prove_again(side);
    exchange(open, side, "while it lives");
    meet_again(side);
    TRY(recv(open, in, 1, 0));
    await_peer(side, DEAD);
    for (int i = 0; i < ROUNDS; i++) {
        socklen_t length;
        const struct sockaddr *there = there_again(&length);
        int end = socket_again(0);
        TRY(connect(end, there, length));
        TRY(close(end));
    }
}
