// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections passed to other processes in messages over Unix sockets.

#include "case.h"

#include <spawn.h>
#include <sys/epoll.h>

static char in[1000];

// The server passes the connection to a child that runs `run` with it, and keeps it if requested.
static void hand_to(void (*run)(int fd, enum side side), int fd, enum side side,
                    enum after after) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
    } else {
        pass_to_child(fd, side, run, after);
    }
    if (after == KEEPS)
        go_on_behind_heir(fd, side);
    else if (side == CLIENT)
        TRY(recv(fd, in, 1, 0));
}

CASE(before_the_upgrade, V6 | MIXED) { hand_to(be_heir, fd, side, KEEPS); }
CASE(with_bytes_unread_both_ways, WARM | V6 | MIXED) { hand_to(be_heir, fd, side, CLOSES); }
CASE(passed_and_kept, WARM | V6 | RACE) { hand_to(be_heir, fd, side, KEEPS); }

static void be_heir_of_heir(int fd, enum side side) {
    pass_to_child(fd, side, be_heir, CLOSES);
}

CASE(passed_on, WARM) { hand_to(be_heir_of_heir, fd, side, CLOSES); }

CASE(passed_back, WARM | V6) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
        go_on_behind_heir(fd, side);
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        int got = taken(pair[1]);
        be_heir(got, side);
        give(pair[1], got);
        _exit(0);
    }
    give(pair[0], fd);
    close(fd);
    int back = taken(pair[0]);
    note_end("heir", child);
    go_on_behind_heir(back, side);
}

CASE(passed_around, WARM | RACE) {
    // Two processes hold it in turn, for a few messages each.
    if (side == CLIENT) {
        for (int i = 0; i < 60; i++) {
            require(send(fd, &(char){i}, 1, 0) == 1, "send");
            require(recv(fd, in, 1, 0) == 1 && *in == i, "receive");
        }
        note("done");
        TRY(recv(fd, in, 1, 0));
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    int own = child ? pair[0] : pair[1];
    if (!child)
        close(fd), fd = taken(own);
    for (int turn = child ? 0 : 1; turn < 12; turn += 2) {
        for (int i = 0; i < 5; i++) {
            require(recv(fd, in, 1, 0) == 1, "receive");
            require(send(fd, in, 1, 0) == 1, "send");
        }
        if (turn < 11)
            require(pass(own, &fd, 1) == 1, "pass");
        close(fd);
        if (turn < 10)
            fd = taken(own);
    }
    if (!child)
        _exit(0);
    note_end("child", child);
}

CASE(passed_twice, WARM) {
    // Two processes hold it at the same time.
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
        TRY(send(fd, "for the second", 14, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 1, 0));
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t first = start_heir(pair[1], fd, side, be_heir);
    give(pair[0], fd);
    note_end("first", first);
    give(pair[0], fd);
    close(fd);
    pid_t second = fork();
    if (second == 0) {
        int got = taken(pair[1]);
        TRY(recv(got, in, 14, MSG_WAITALL));
        note_bytes("the second received", in, 14);
        TRY(send(got, "second", 6, 0));
        _exit(0);
    }
    note_end("second", second);
}

CASE(passed_to_oneself, WARM) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
    } else {
        int pair[2];
        new_pair(pair);
        give(pair[0], fd);
        int got = taken(pair[1]);
        TRY(close(fd));
        be_heir(got, side);
        fd = got;
    }
    go_on_behind_heir(fd, side);
}

CASE(passed_to_oneself_and_used_by_both_numbers, WARM | RACE) {
    if (side == CLIENT) {
        ping_all(fd, 50);
        meet(side, 1);
        return;
    }
    int pair[2], both[2] = {fd, -1};
    new_pair(pair);
    give(pair[0], fd);
    both[1] = taken(pair[1]);
    answer_by(both, 50);
    meet(side, 1);
}

static void take_again_and_be_heir(int fd, enum side side) {
    be_heir(fd, side);
    upgrade_again(fd, side);
    go_on_behind_heir(fd, side);
}

CASE(upgraded_again, WARM | V6 | RACE | TCP) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
        upgrade_again(fd, side);
        go_on_behind_heir(fd, side);
        return;
    }
    pass_to_child(fd, side, take_again_and_be_heir, CLOSES);
}

CASE(both_ends_at_the_same_time, WARM | RACE) {
    begin_handing(fd, side);
    pass_to_child(fd, side, side == SERVER ? be_heir : talk_to_heir, CLOSES);
}

// The heir as a separate program with one end of a pair, without the library.
PROGRAM(taker) { be_heir(taken(fd), side); }

static void pass_to_program(char *path, int fd, enum side side) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
        go_on_behind_heir(fd, side);
        return;
    }
    int pair[2];
    new_pair(pair);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    char *nothing[] = {NULL}, **arguments = as_program("taker", side, pair[1]);
    pid_t child;
    require(posix_spawn(&child, path, NULL, NULL, arguments, nothing) == 0, "posix_spawn");
    give(pair[0], fd);
    note_end("program", child);
    go_on_behind_heir(fd, side);
}

CASE(to_a_program_without_the_library, WARM | V6) { pass_to_program(own_path(), fd, side); }
CASE(to_a_program_linked_statically, WARM) { pass_to_program(static_path(), fd, side); }

CASE(several_in_one_message, BARE | RACE) {
    enum { COUNT = 5 };
    int ends[COUNT], got[COUNT], pair[2];
    for (int i = 0; i < COUNT; i++) {
        ends[i] = side == SERVER ? accept(fd, NULL, NULL) : connect_there();
        warm_up(ends[i], side);
        require(send(ends[i], "abcde" + i, 1, 0) == 1, "send");
    }
    if (side == CLIENT) {
        for (int i = 0; i < COUNT; i++) {
            TRY(recv(ends[i], in, 2, MSG_WAITALL));
            note_bytes("received", in, 2);
        }
        return;
    }
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < COUNT; i++)
            close(ends[i]);
        TRY(take(pair[1], got, COUNT));
        for (int i = 0; i < COUNT; i++) {
            TRY(recv(got[i], in, 1, 0));
            note_bytes("the child received", in, 1);
            TRY(send(got[i], in, 1, 0));
        }
        _exit(0);
    }
    require(pass(pair[0], ends, COUNT) == 1, "pass");
    for (int i = 0; i < COUNT; i++)
        close(ends[i]);
    note_end("child", child);
}

CASE(too_little_room_for_what_comes, WARM) {
    // The receiver gets two of three descriptors; the third is closed.
    if (side == CLIENT) {
        go_on_behind_heir(fd, side);
        return;
    }
    int pair[2], three[3] = {fd, 0, fd}, got[3];
    new_pair(pair);
    TRY(pass(pair[0], three, 3));
    TRY(take(pair[1], got, 2));
    TRY(fcntl(got[0], F_GETFL));
    note("the first is the same: %d", fcntl(got[0], F_GETFL) == fcntl(fd, F_GETFL));
    give(pair[0], fd);
    TRY(recv(pair[1], in, 10, 0));
    TRY(close(got[0]));
    go_on_behind_heir(fd, side);
}

CASE(several_messages_at_once, WARM) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 4, MSG_WAITALL));
        note_bytes("received", in, 4);
        meet(side, 1);
        return;
    }
    int pair[2], got[3] = {-1, -1, -1};
    new_pair(pair);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control[3];
    struct mmsghdr messages[3] = {0};
    struct iovec part = {"d", 1};
    for (int i = 0; i < 3; i++) {
        control[i].header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control[i].header), &fd, sizeof fd);
        struct msghdr *message = &messages[i].msg_hdr;
        message->msg_iov = &part, message->msg_iovlen = 1;
        message->msg_control = &control[i], message->msg_controllen = sizeof control[i];
    }
    TRY(sendmmsg(pair[0], messages, 3, 0));
    check_returned(fd);
    char bytes[3];
    struct iovec parts[3] = {{bytes, 1}, {bytes + 1, 1}, {bytes + 2, 1}};
    for (int i = 0; i < 3; i++)
        messages[i].msg_hdr.msg_iov = &parts[i];
    TRY(recvmmsg(pair[1], messages, 3, 0, NULL));
    close(fd);
    for (int i = 0; i < 3; i++) {
        memcpy(&got[i], CMSG_DATA(&control[i].header), sizeof(int));
        note("message %d: %zu bytes of control data", i, messages[i].msg_hdr.msg_controllen);
        TRY(send(got[i], "abcd" + i, i == 2 ? 2 : 1, 0));
    }
    meet(side, 1);
}

CASE(a_message_that_is_only_looked_at, WARM | RACE) {
    // Each MSG_PEEK returns another descriptor of the connection.
    if (side == CLIENT) {
        ping_all(fd, 60);
        meet(side, 1);
        return;
    }
    int pair[2], ends[2];
    new_pair(pair);
    give(pair[0], fd);
    close(fd);
    for (int i = 0; i < 2; i++) {
        union {
            struct cmsghdr header;
            char room[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec part = {in, 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
        message.msg_controllen = sizeof control;
        TRY(recvmsg(pair[1], &message, i == 0 ? MSG_PEEK : MSG_CMSG_CLOEXEC));
        memcpy(&ends[i], CMSG_DATA(&control.header), sizeof(int));
        TRY(fcntl(ends[i], F_GETFD));
    }
    answer_by(ends, 60);
    meet(side, 1);
}

CASE(a_listener, BARE | ACROSS | V6) {
    // The receiver accepts connections, which are upgraded.
    if (side == CLIENT) {
        int end = connect_there();
        upgrade_again(end, side);
        go_on_behind_heir(end, side);
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        int end = accept(taken(pair[1]), NULL, NULL);
        upgrade_again(end, side);
        go_on_behind_heir(end, side);
        _exit(0);
    }
    give(pair[0], fd);
    close(fd);
    note_end("child", child);
}

static void wait_in_a_set(int fd, enum side side) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u64 = 0x123456789};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    note_events("the heir's set", epoll, 1000);
    be_heir(fd, side);
    note_events("the heir's set then", epoll, 0);
}

CASE(to_one_that_waits_in_a_set, WARM | V6) { hand_to(wait_in_a_set, fd, side, CLOSES); }

CASE(registered_in_a_set_that_stays, WARM) {
    // The sender keeps the connection, and its set still works.
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0xabcdef01234};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    begin_handing(fd, side);
    note_events("before", epoll, 1000);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
    } else {
        pass_to_child(fd, side, be_heir, KEEPS);
    }
    meet(side, 3);
    note_events("nothing", epoll, 0);
    meet(side, 4);
    TRY(send(fd, "more", 4, 0));
    note_events("more", epoll, 1000);
    TRY(recv(fd, in, 4, MSG_WAITALL));
    note_events("nothing again", epoll, 0);
    event.events = EPOLLIN | EPOLLOUT;
    TRY(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event));
    note_events("room", epoll, 1000);
    TRY(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL));
    note_events("deleted", epoll, 0);
    meet(side, 5);
}

CASE(malformed_control_data, WARM) {
    // The kernel refuses it, and nothing is lost.
    if (side == SERVER) {
        int pair[2];
        new_pair(pair);
        union {
            struct cmsghdr header;
            char room[2 * CMSG_SPACE(sizeof(int))];
        } control = {0};
        size_t lengths[] = {0, 1, CMSG_LEN(0) - 1, CMSG_LEN(4) + 400, (size_t)-1, (size_t)-8};
        struct iovec part = {"d", 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control};
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            message.msg_controllen = CMSG_SPACE(sizeof(int));
            control.header = (struct cmsghdr){lengths[i], SOL_SOCKET, SCM_RIGHTS};
            memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
            TRY(sendmsg(pair[0], &message, MSG_DONTWAIT));
        }
        // The second header is malformed.
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        message.msg_controllen = 2 * CMSG_SPACE(sizeof(int));
        TRY(sendmsg(pair[0], &message, MSG_DONTWAIT));
        // Not open; and shorter than a header.
        TRY(pass(pair[0], &(int){-1}, 1));
        TRY(pass(pair[0], &(int){850}, 1));
        message.msg_controllen = 7;
        TRY(sendmsg(pair[0], &message, MSG_DONTWAIT));
        // A length without control data, and a header without descriptors.
        message.msg_control = NULL;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
        TRY(sendmsg(pair[0], &message, MSG_DONTWAIT));
        TRY(pass(pair[0], &fd, 0));
        note("messages that came: %zu", drain(pair[1]));
    }
    go_on_behind_heir(fd, side);
}

CASE(over_the_connection_itself, WARM | TCP) {
    // TCP carries no descriptors; the kernel ignores them.
    if (side == SERVER) {
        TRY(pass(fd, &fd, 1));
    } else {
        int got = -1;
        TRY(take(fd, &got, 1));
        note("descriptor: %d", got);
    }
    go_on_behind_heir(fd, side);
}

CASE(closed_before_anybody_takes_it, WARM) {
    // In transit no process holds it, and the connection stays open nevertheless.
    begin_handing(fd, side);
    if (side == CLIENT) {
        reach(side, 2);
        talk_to_heir(fd, side);
        return;
    }
    int pair[2];
    new_pair(pair);
    give(pair[0], fd);
    close(fd);
    sleep_ms(20);
    be_heir(taken(pair[1]), side);
}

CASE(nobody_takes_it, WARM) {
    // Descriptors in a message that is never received are closed with it.
    if (side == SERVER) {
        int pair[2];
        new_pair(pair);
        TRY(send(fd, "last", 4, 0));
        give(pair[0], fd);
        close(fd);
        TRY(close(pair[0]));
        TRY(close(pair[1]));
    } else {
        TRY(recv(fd, in, 4, MSG_WAITALL));
        TRY(recv(fd, in, 4, 0));
    }
    meet(side, 1);
}
