// SPDX-License-Identifier: Apache-2.0 OR MIT
// Programs that restrict their system calls: the kernel kills a process that makes a forbidden
// call, so the library must not make any on its behalf.

#include "case.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static char in[100000], out[100000];

#define KILLED(name)                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                         \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

// Calls that the cases do not make after installing the filter.
static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    KILLED(getsockopt),
    KILLED(setsockopt),
    KILLED(getsockname),
    KILLED(getpeername),
    KILLED(socket),
    KILLED(connect),
    KILLED(sendmsg),
    KILLED(recvmsg),
    KILLED(ioctl),
    KILLED(fcntl),
    KILLED(dup),
    KILLED(membarrier),
    KILLED(memfd_create),
    KILLED(pidfd_open),
    KILLED(pidfd_getfd),
    KILLED(sched_yield),
    KILLED(gettid),
    KILLED(kcmp),
    KILLED(mmap),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};
static struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};

// Enough questions and answers for a connection to be accelerated, where that is possible.
static void talk(int fd, enum side side) {
    for (int i = 0; i < 200; i++) {
        size_t length = 1 + i * 37 % 3000;
        memset(out, 'a' + i % 26, length);
        if (side == CLIENT && write(fd, out, length) != (ssize_t)length)
            note("round %d: not all was sent", i);
        for (size_t at = 0; at < length;) {
            await_events(fd, POLLIN);
            ssize_t got = read(fd, in + at, length - at);
            if (got <= 0) {
                note("round %d: %zd at %zu", i, got, at);
                return;
            }
            at += got;
        }
        if (memcmp(in, out, length) != 0)
            note("round %d: something else came", i);
        if (side == SERVER && write(fd, in, length) != (ssize_t)length)
            note("round %d: not all was sent", i);
    }
    note("all rounds were as they had to be");
}

static void give_up_by_prctl(void) {
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void give_up_by_syscall(void) {
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program));
}

CASE(connected_before_giving_up_calls, COLD | MIXED) {
    if (side == CLIENT)
        give_up_by_prctl();
    talk(fd, side);
    TRY(close(fd));
}

CASE(past_the_kernel_before_giving_up_calls, WARM | V6) {
    if (side == SERVER)
        give_up_by_syscall();
    talk(fd, side);
    TRY(close(fd));
}

CASE(both_sides_give_up_calls, WARM) {
    give_up_by_prctl();
    talk(fd, side);
    TRY(shutdown(fd, SHUT_WR));
    TRY(read(fd, in, 1));
}

CASE(a_set_goes_on_behind_giving_up_calls, WARM) {
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 42};
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    if (side == CLIENT) {
        TRY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL));
        give_up_by_prctl();
        note_events("nothing is there", set, 0);
        meet(side, 1);
        note_events("something is there", set, PATIENCE_MS);
        TRY(read(fd, in, 5));
        note_bytes("received", in, 5);
    } else {
        meet(side, 1);
        TRY(write(fd, "hello", 5));
    }
    talk(fd, side);
}

CASE(a_child_gives_up_calls_and_the_parent_goes_on, WARM) {
    if (side == CLIENT) {
        pid_t child = fork();
        if (child == 0) {
            give_up_by_prctl();
            talk(fd, side);
            _exit(0);
        }
        int status = 0;
        waitpid(child, &status, 0);
        note("the child has ended: %#x", status);
    } else {
        talk(fd, side);
    }
    talk(fd, side);
}
