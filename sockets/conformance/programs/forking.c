// SPDX-License-Identifier: Apache-2.0 OR MIT
// Children made without `fork`, or scheduled late, and their use of an inherited connection.

#include "case.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static char in[1000];

enum way { UNDERSCORE_FORK, CLONE, BY_NUMBER, CLONE_BY_NUMBER, CLONE3_BY_NUMBER, INSTRUCTION };

typedef void part(int fd, enum side side);

struct child {
    part *run;
    int fd;
    enum side side;
};

static int run_child(void *given) {
    struct child *child = given;
    child->run(child->fd, child->side);
    _exit(0);
}

// A system call by an instruction of this program.
static long instruction(long number, long first, long second, long third) {
#if defined(__x86_64__)
    register long fourth __asm__("r10") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long called __asm__("x8") = number;
    register long one __asm__("x0") = first;
    register long two __asm__("x1") = second;
    register long three __asm__("x2") = third;
    __asm__ volatile("svc 0" : "+r"(one) : "r"(called), "r"(two), "r"(three) : "memory");
    return one;
#else
    return syscall(number, first, second, third, 0, 0);
#endif
}

static pid_t fork_by(enum way way) {
    uint64_t arguments[8] = {[4] = SIGCHLD};
    switch (way) {
    case UNDERSCORE_FORK:
        return _Fork();
    case BY_NUMBER:
#ifdef SYS_fork
        return syscall(SYS_fork);
#endif
    case CLONE_BY_NUMBER:
        return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    case CLONE3_BY_NUMBER:
        return syscall(SYS_clone3, arguments, sizeof arguments);
    default:
        return instruction(SYS_clone, SIGCHLD, 0, 0);
    }
}

static pid_t start(enum way way, int fd, enum side side, part *run) {
    static char stack[256 << 10] __attribute__((aligned(16)));
    struct child child = {run, fd, side};
    pid_t pid = way == CLONE ? clone(run_child, stack + sizeof stack, SIGCHLD, &child)
                             : fork_by(way);
    require(pid >= 0, "a child");
    if (pid == 0)
        run_child(&child);
    return pid;
}

static void serve(int fd, enum side side) {
    (void)side;
    TRY(recv(fd, in, 3, MSG_WAITALL));
    note_bytes("the rest", in, 3);
    TRY(recv(fd, in, 8, MSG_WAITALL));
    note_bytes("received", in, 8);
    TRY(send(fd, "answer", 6, 0));
}

// The child continues to read where its parent has stopped, and the parent continues after the
// child.
static void serve_in_child(enum way way, int fd, enum side side) {
    if (side == CLIENT) {
        TRY(send(fd, "before", 6, 0));
        await_peer(side, 1);
        TRY(send(fd, "question", 8, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        await_peer(side, 2);
        TRY(send(fd, "more", 4, 0));
        TRY(recv(fd, in, 5, MSG_WAITALL));
        note_bytes("received", in, 5);
        TRY(recv(fd, in, 1, 0));
        return;
    }
    await_bytes(fd, 6);
    TRY(recv(fd, in, 3, 0));
    pid_t child = start(way, fd, side, serve);
    reach(side, 1);
    note_end("child", child);
    reach(side, 2);
    TRY(recv(fd, in, 4, MSG_WAITALL));
    note_bytes("received", in, 4);
    TRY(send(fd, "again", 5, 0));
    TRY(close(fd));
}

CASE(by_underscore_fork, WARM | V6 | RACE) { serve_in_child(UNDERSCORE_FORK, fd, side); }
CASE(by_clone, WARM | V6 | RACE) { serve_in_child(CLONE, fd, side); }
CASE(by_number, WARM | RACE) { serve_in_child(BY_NUMBER, fd, side); }
CASE(by_the_number_of_clone, WARM | RACE) { serve_in_child(CLONE_BY_NUMBER, fd, side); }
CASE(by_the_number_of_clone3, WARM | RACE) { serve_in_child(CLONE3_BY_NUMBER, fd, side); }
CASE(by_an_instruction, WARM | V6 | RACE) { serve_in_child(INSTRUCTION, fd, side); }
CASE(by_an_instruction_before_the_upgrade, COLD | RACE) { serve_in_child(INSTRUCTION, fd, side); }

static void answer_all(int fd, enum side side) {
    int count = 0;
    while (recv(fd, in, 4, MSG_WAITALL) == 4 && ++count)
        require(send(fd, in, 4, 0) == 4, "send");
    note("messages of the child: %d", count);
    reach(side, 3);
}

static void ask(int fd, int count) {
    for (int i = 0; i < count; i++) {
        require(send(fd, "ping", 4, 0) == 4, "send");
        require(recv(fd, in, 4, MSG_WAITALL) == 4, "receive");
    }
}

// The parent polls from time to time while its child talks: both see the pending bytes.
static void talk_beside_parent(enum way way, int fd, enum side side) {
    if (side == CLIENT) {
        ask(fd, 200);
        TRY(shutdown(fd, SHUT_WR));
        await_peer(side, 3);
        return;
    }
    pid_t child = start(way, fd, side, answer_all);
    int status;
    while (waitpid(child, &status, WNOHANG) == 0) {
        struct pollfd asked = {fd, POLLIN, 0};
        poll(&asked, 1, 0);
        sleep_ms(1);
    }
    note_status("child", status);
}

CASE(clone_beside_the_parent, WARM | RACE) { talk_beside_parent(CLONE, fd, side); }
CASE(an_instruction_beside_the_parent, WARM | RACE) { talk_beside_parent(INSTRUCTION, fd, side); }

static void leave(int fd, enum side side) {
    (void)side;
    close(fd);
}

// Children that do not use the connection take no bytes from it.
static void without_connection(void (*have_children)(int), int fd, enum side side) {
    if (side == CLIENT) {
        ask(fd, 20);
        await_peer(side, 1);
        ask(fd, 20);
        TRY(close(fd));
        return;
    }
    for (int i = 0; i < 20; i++)
        require(recv(fd, in, 4, MSG_WAITALL) == 4 && send(fd, in, 4, 0) == 4, "answer");
    have_children(fd);
    reach(side, 1);
    while (recv(fd, in, 4, MSG_WAITALL) == 4)
        require(send(fd, in, 4, 0) == 4, "send");
    note("done");
}

static void have_clone(int fd) { note_end("child", start(CLONE, fd, SERVER, leave)); }
static void have_child_by_instruction(int fd) {
    note_end("child", start(INSTRUCTION, fd, SERVER, leave));
}

CASE(a_clone_that_leaves, WARM) { without_connection(have_clone, fd, side); }
CASE(an_instruction_that_leaves, WARM) {
    without_connection(have_child_by_instruction, fd, side);
}

extern int __clone(int (*run)(void *), void *stack, int flags, void *given, ...);
extern pid_t __vfork(void) __attribute__((returns_twice));

// A child in this process's memory that closes the connection.
static int close_there(void *given) {
    close(*(int *)given);
    _exit(7);
}

// It has its own descriptor table, so the connection stays open: it closes only its own copy.
static void with_guest_that_closes(pid_t (*make)(int *), int fd, enum side side) {
    if (side == SERVER) {
        note_end("guest", make(&fd));
        check_upgraded(fd);
        TRY(send(fd, "data", 4, 0));
    } else {
        TRY(recv(fd, in, 4, MSG_WAITALL));
    }
    meet(side, 1);
}

static pid_t clone_guest(int *fd) {
    static char stack[256 << 10] __attribute__((aligned(16)));
    return __clone(close_there, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, fd);
}

static pid_t vfork_guest(int *fd) {
    pid_t child = __vfork();
    if (child == 0)
        close_there(fd);
    return child;
}

CASE(a_guest_of_underscore_clone_closes, WARM) { with_guest_that_closes(clone_guest, fd, side); }
CASE(a_guest_of_underscore_vfork_closes, WARM) { with_guest_that_closes(vfork_guest, fd, side); }

// From now on, fork and similar calls fail with EAGAIN.
static void forbid_children(void) {
    unsigned numbers[] = {SYS_clone, SYS_clone3,
#ifdef SYS_fork
                          SYS_fork, SYS_vfork
#endif
    };
    struct sock_filter filter[16] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
    int at = 1, count = sizeof numbers / sizeof *numbers;
    for (int i = 0; i < count; i++)
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i],
                                                    count - i, 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN);
    struct sock_fprog program = {at, filter};
    require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
    // A raw instruction: the library would return all connections of a program that restricts its
    // system calls to the kernel.
    long result = instruction(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program);
    require(result == 0, "a filter");
}

CASE(children_that_cannot_be, WARM | V6) {
    // The connection has the same sole holder as before, and ends accordingly.
    if (side == SERVER) {
        struct child child = {leave, fd, side};
        forbid_children();
        TRY(fork());
        TRY(_Fork());
        TRY(clone(run_child, in + sizeof in, SIGCHLD, &child));
        TRY(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
        check_upgraded(fd);
        TRY(send(fd, "data", 4, 0));
        TRY(close(fd));
        reach(side, 1);
        return;
    }
    await_peer(side, 1);
    TRY(recv(fd, in, 4, MSG_WAITALL));
    TRY(recv(fd, in, 4, MSG_WAITALL));
    check_upgraded(fd);
}

// Delay of parent and child in a fork, before other code learns of the fork.
static int parent_is_late_ms, child_is_late_ms;

static void stop_parent(void) { sleep_ms(parent_is_late_ms); }
static void stop_child(void) { sleep_ms(child_is_late_ms); }
__attribute__((constructor)) static void stop_forks(void) {
    pthread_atfork(NULL, stop_parent, stop_child);
}

static pid_t fork_late(int parent_ms, int child_ms, int fd) {
    parent_is_late_ms = parent_ms;
    child_is_late_ms = child_ms;
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
        close(fd);
        _exit(0);
    }
    return child;
}

// The first child starts while its parent makes the second one, and has exited when that starts. An
// implementation that miscounts them takes the third one for the last holder.
static void have_late_children(int fd) {
    pid_t first = fork_late(0, 100, fd), second = fork_late(200, 300, fd);
    note_end("first", first);
    note_end("second", second);
    note_end("third", fork_late(0, 0, fd));
}

CASE(a_child_that_comes_while_another_is_made, WARM | V6 | RACE) {
    without_connection(have_late_children, fd, side);
}
