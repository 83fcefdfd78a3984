// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections that are passed to other processes in messages over Unix sockets.

#include "case.h"

static char in[1 << 21];

static void new_pair(int pair[2]) {
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
}

CASE(before_the_upgrade, V6 | MIXED) {
    if (side == CLIENT) {
        TRY(send(fd, "question", 8, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(recv(fd, in, 6, 0));
        return;
    }
    int pair[2];
    new_pair(pair);
    pid_t child = fork();
    if (child == 0) {
        close(fd);
        int got = -1;
        TRY(take(pair[1], &got, 1));
        TRY(recv(got, in, 8, MSG_WAITALL));
        note_bytes("the child received", in, 8);
        TRY(send(got, "answer", 6, 0));
        _exit(0);
    }
    TRY(pass(pair[0], &fd, 1));
    TRY(close(fd));
    note_end("child", child);
}

CASE(by_several_messages_at_once, COLD) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 4, MSG_WAITALL));
        note_bytes("received", in, 4);
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
}
