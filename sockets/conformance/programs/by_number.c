// SPDX-License-Identifier: Apache-2.0 OR MIT
// Programs that make system calls by number, through the C library's `syscall`.

#include "case.h"

#include <sys/syscall.h>

static char in[1000];
extern char **environ;

CASE(data_by_number, WARM | V6 | MIXED) {
    char first[5], second[5];
    struct iovec parts[2] = {{first, 4}, {second, 4}}, out[2] = {{"four", 4}, {"more", 4}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (side == CLIENT) {
        TRY(syscall(SYS_write, fd, "written", 7));
        TRY(syscall(SYS_writev, fd, out, 2));
        TRY(syscall(SYS_sendto, fd, "sent", 4, MSG_NOSIGNAL, NULL, 0));
        message.msg_iov = out;
        TRY(syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL));
        await_peer(side, 1);
        TRY(syscall(SYS_recvfrom, fd, in, 10, MSG_DONTWAIT, NULL, NULL));
        TRY(syscall(SYS_shutdown, fd, SHUT_WR));
        meet(side, 2);
        return;
    }
    await_bytes(fd, 27);
    TRY(syscall(SYS_read, fd, in, 7));
    note_bytes("read", in, 7);
    TRY(syscall(SYS_readv, fd, parts, 2));
    note_bytes("first", first, 4);
    note_bytes("second", second, 4);
    TRY(syscall(SYS_recvfrom, fd, in, 4, 0, NULL, NULL));
    note_bytes("received", in, 4);
    TRY(syscall(SYS_recvmsg, fd, &message, 0));
    note_bytes("first", first, 4);
    TRY(syscall(SYS_recvfrom, fd, in, 4, MSG_DONTWAIT, NULL, NULL));
    reach(side, 1);
    TRY(syscall(SYS_read, fd, in, 7));
    check_upgraded(fd);
    meet(side, 2);
}

CASE(descriptors_by_number, WARM) {
    int copy = syscall(SYS_dup, fd);
    note("a copy: %d", copy >= 0);
    TRY(syscall(SYS_dup3, fd, 77, O_CLOEXEC));
    TRY(syscall(SYS_close, fd));
    TRY(syscall(SYS_close_range, copy, copy, 0));
    check_upgraded(77);
    if (side == CLIENT) {
        TRY(send(77, "data", 4, 0));
        TRY(syscall(SYS_close, 77));
        TRY(syscall(SYS_close, 77));
    } else {
        TRY(recv(77, in, 4, MSG_WAITALL));
        note_bytes("received", in, 4);
        TRY(recv(77, in, 4, 0));
    }
    meet(side, 1);
}

CASE(becomes_a_program_by_number, WARM | V6) {
    begin_handing(fd, side);
    if (side == SERVER) {
        syscall(SYS_execve, own_path(), as_program("heir", side, fd), environ);
        require(0, "the program begins");
    }
    talk_to_heir(fd, side);
    TRY(recv(fd, in, 1, 0));
}

CASE(ends_by_number, WARM | RACE) {
    // The child of a fork: after it, the parent is the sole holder again.
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0)
            syscall(SYS_exit_group, 3);
        note_end("child", child);
        TRY(send(fd, "data", 4, 0));
        TRY(close(fd));
        return;
    }
    TRY(recv(fd, in, 4, MSG_WAITALL));
    TRY(recv(fd, in, 4, 0));
}
