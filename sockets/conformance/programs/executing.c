// SPDX-License-Identifier: Apache-2.0 OR MIT
// Processes that execute other programs, which continue to use the connection.

#include "case.h"

#include <linux/limits.h>
#include <sys/epoll.h>

static char in[1 << 21];
extern char **environ;

enum way { EXECVE, EXECV, EXECVP, EXECVPE, EXECL, EXECLP, EXECLE, FEXECVE, EXECVEAT };

static void become(enum way way, const char *program, enum side side, int fd) {
    char **a = as_program(program, side, fd), *path = own_path();
    char folder[PATH_MAX], *name = strrchr(path, '/') + 1;
    snprintf(folder, sizeof folder, "/nowhere:%.*s", (int)(name - 1 - path), path);
    setenv("PATH", folder, 1);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    switch (way) {
    case EXECVE:
        execve(path, a, environ);
        break;
    case EXECV:
        execv(path, a);
        break;
    case EXECVP:
        execvp(name, a);
        break;
    case EXECVPE:
        execvpe(name, a, environ);
        break;
    case EXECL:
        execl(path, a[0], a[1], a[2], a[3], a[4], a[5], NULL);
        break;
    case EXECLP:
        execlp(name, a[0], a[1], a[2], a[3], a[4], a[5], "one", "two", "three", "four", NULL);
        break;
    case EXECLE:
        execle(path, a[0], a[1], a[2], a[3], a[4], a[5], "one more", NULL, environ);
        break;
    case FEXECVE:
        fexecve(file, a, environ);
        break;
    case EXECVEAT:
        execveat(file, "", a, environ, AT_EMPTY_PATH);
        break;
    }
    require(0, "the program begins");
}

// The server executes the heir.
static void execute(enum way way, int fd, enum side side) {
    begin_handing(fd, side);
    if (side == SERVER)
        become(way, "heir", side, fd);
    talk_to_heir(fd, side);
    TRY(recv(fd, in, 1, 0));
}

CASE(by_execve, WARM | V6 | MIXED) { execute(EXECVE, fd, side); }
CASE(by_execv, WARM) { execute(EXECV, fd, side); }
CASE(by_execvp, WARM) { execute(EXECVP, fd, side); }
CASE(by_execvpe, WARM) { execute(EXECVPE, fd, side); }
CASE(by_execl, WARM) { execute(EXECL, fd, side); }
CASE(by_execlp, WARM) { execute(EXECLP, fd, side); }
CASE(by_execle, WARM) { execute(EXECLE, fd, side); }
CASE(by_fexecve, WARM) { execute(FEXECVE, fd, side); }
CASE(by_execveat, WARM) { execute(EXECVEAT, fd, side); }
CASE(before_the_upgrade, V6 | MIXED) { execute(EXECVE, fd, side); }

#define TEN "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"
#define HUNDRED TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN, TEN

CASE(a_long_list_of_arguments, WARM) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "[ $#$2${300} = 300bj ] && exit 7", "sh", HUNDRED, HUNDRED,
              HUNDRED, NULL);
        _exit(1);
    }
    note_end("shell", child);
    check_upgraded(fd);
    meet(side, 1);
}

CASE(both_sides_become_programs, WARM) {
    begin_handing(fd, side);
    become(EXECVE, side == SERVER ? "heir" : "peer_of_heir", side, fd);
}

PROGRAM(peer_of_heir) { talk_to_heir(fd, side); }

CASE(one_after_the_other, WARM | RACE) {
    begin_handing(fd, side);
    if (side == SERVER)
        become(EXECV, "one_of_several", side, fd);
    talk_to_heir(fd, side);
}

PROGRAM(one_of_several) {
    const char *left = getenv("LEFT");
    int number = left ? atoi(left) : 3;
    char text[12];
    snprintf(text, sizeof text, "%d", number - 1);
    setenv("LEFT", text, 1);
    become(EXECVP, number > 1 ? "one_of_several" : "heir", side, fd);
}

PROGRAM(filter) {
    // Has the connection as its standard input and output.
    reach(side, 2);
    size_t length = strlen("not read yet, read by the heir");
    for (size_t done = 0; done < length;) {
        ssize_t got = read(0, in + done, length - done);
        require(got > 0, "read");
        done += got;
    }
    note_bytes("the filter read", in, length);
    fputs("from the", stdout);
    fflush(stdout);
    TRY(write(1, " heir", 5));
}

CASE(standard_input_and_output, WARM | V6 | MIXED) {
    begin_handing(fd, side);
    if (side == SERVER) {
        require(dup2(fd, 0) == 0 && dup2(fd, 1) == 1, "dup2");
        close(fd);
        become(EXECVE, "filter", side, -1);
    }
    talk_to_heir(fd, side);
    TRY(recv(fd, in, 1, 0));
}

CASE(standard_input_and_output_besides, WARM) {
    // The new program has three descriptors of the same connection.
    begin_handing(fd, side);
    if (side == SERVER) {
        require(dup2(fd, 0) == 0 && dup2(fd, 1) == 1, "dup2");
        become(EXECVE, "filter_and_more", side, fd);
    }
    talk_to_heir(fd, side);
    for (int i = 0; i < 30; i++) {
        require(send(fd, "x", 1, 0) == 1, "send");
        require(recv(fd, in, 1, 0) == 1, "receive");
    }
    note("done");
}

PROGRAM(filter_and_more) {
    program_filter(side, fd);
    // Under both numbers in turn, so that neither is taken for the only one.
    for (int i = 0; i < 30; i++) {
        require(recv(i % 2 ? fd : 0, in, 1, 0) == 1, "receive");
        require(send(i % 3 ? fd : 1, in, 1, 0) == 1, "send");
    }
}

CASE(another_number, WARM) {
    begin_handing(fd, side);
    if (side == SERVER) {
        require(dup2(fd, 200) == 200, "dup2");
        close(fd);
        become(EXECVE, "heir", side, 200);
    }
    talk_to_heir(fd, side);
}

static void execute_elsewhere(char *path, int fd, enum side side) {
    begin_handing(fd, side);
    if (side == SERVER) {
        char *nothing[] = {NULL};
        execve(path, as_program("heir", side, fd), nothing);
        require(0, "the program begins");
    }
    talk_to_heir(fd, side);
    TRY(recv(fd, in, 1, 0));
}

CASE(without_the_library, WARM | V6) { execute_elsewhere(own_path(), fd, side); }

CASE(linked_statically, WARM) { execute_elsewhere(static_path(), fd, side); }

CASE(a_child_becomes_a_program, WARM | V6 | MIXED) {
    begin_handing(fd, side);
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0)
            become(EXECVE, "heir", side, fd);
        note_end("child", child);
    } else {
        talk_to_heir(fd, side);
    }
    go_on_behind_heir(fd, side);
}

CASE(a_child_becomes_a_program_and_its_parent_closes, WARM) {
    begin_handing(fd, side);
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0)
            become(EXECVE, "heir", side, fd);
        close(fd);
        note_end("child", child);
        return;
    }
    talk_to_heir(fd, side);
    TRY(recv(fd, in, 1, 0));
}

CASE(a_child_has_sent_before_it_becomes_a_program, WARM) {
    begin_handing(fd, side);
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0) {
            TRY(recv(fd, in, 4, MSG_PEEK));
            become(EXECVE, "heir", side, fd);
        }
        note_end("child", child);
    } else {
        talk_to_heir(fd, side);
    }
    go_on_behind_heir(fd, side);
}

CASE(closed_on_exec, WARM) {
    // The program does not have it, and its parent continues, upgraded as before.
    if (side == SERVER) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        pid_t child = fork();
        if (child == 0)
            become(EXECVE, "without_a_connection", side, fd);
        note_end("child", child);
    }
    check_upgraded(fd);
    begin_handing(fd, side);
    TRY(recv(fd, in, 14, MSG_WAITALL));
    check_upgraded(fd);
    meet(side, 2);
}

CASE(upgraded_after_tools_were_run, ACROSS | RACE) {
    // Children that have executed programs, or have exited, no longer hold the connection.
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0 && i == 0)
            become(EXECVE, "without_a_connection", side, fd);
        if (child == 0 && i == 1)
            _exit(3);
        if (child == 0)
            exit(4);
        note_end("child", child);
    }
    prove_soon(fd, side);
}

CASE(upgraded_after_a_program_could_not_begin, ACROSS | RACE) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (side == SERVER) {
        TRY(execl("/nowhere/program", "program", NULL));
        pid_t child = fork();
        if (child == 0) {
            TRY(execlp("no-such-program", "program", NULL));
            _exit(5);
        }
        note_end("child", child);
    }
    prove_soon(fd, side);
}

PROGRAM(without_a_connection) { TRY(fcntl(fd, F_GETFD)); }

CASE(programs_that_cannot_begin, WARM | V6) {
    begin_handing(fd, side);
    if (side == SERVER) {
        char *arguments[] = {"program", NULL};
        setenv("PATH", "/nowhere:/nowhere/else", 1);
        TRY(execve("/nowhere/program", arguments, environ));
        TRY(execv("/", arguments));
        TRY(execvp("no-such-program", arguments));
        TRY(execvpe("no-such-program", arguments, environ));
        TRY(execl("/nowhere/program", "program", NULL));
        TRY(execlp("no-such-program", "program", NULL));
        TRY(execle("/nowhere/program", "program", NULL, environ));
        TRY(fexecve(-1, arguments, environ));
        TRY(execveat(AT_FDCWD, "/nowhere/program", arguments, environ, 0));
        be_heir(fd, side);
    } else {
        talk_to_heir(fd, side);
    }
    go_on_behind_heir(fd, side);
}

CASE(a_child_that_cannot_become_a_program, WARM) {
    begin_handing(fd, side);
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0) {
            TRY(execl("/nowhere/program", "program", NULL));
            be_heir(fd, side);
            _exit(0);
        }
        note_end("child", child);
    } else {
        talk_to_heir(fd, side);
    }
    go_on_behind_heir(fd, side);
}

CASE(upgraded_again, WARM | V6 | RACE | TCP) {
    begin_handing(fd, side);
    if (side == SERVER)
        become(EXECVE, "heir_that_stays", side, fd);
    talk_to_heir(fd, side);
    upgrade_again(fd, side);
    go_on_behind_heir(fd, side);
}

PROGRAM(heir_that_stays) {
    be_heir(fd, side);
    upgrade_again(fd, side);
    go_on_behind_heir(fd, side);
}

CASE(a_set_goes_along, WARM) {
    // With its registration, which refers to the number that the connection had.
    begin_handing(fd, side);
    if (side == SERVER) {
        int epoll = epoll_create1(0);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u64 = 0x1234567890};
        require(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0, "epoll_ctl");
        note_events("before", epoll, 0);
        char text[12];
        snprintf(text, sizeof text, "%d", epoll);
        setenv("SET", text, 1);
        become(EXECVE, "waiter", side, fd);
    }
    talk_to_heir(fd, side);
    await_peer(side, 3);
}

PROGRAM(waiter) {
    int epoll = atoi(getenv("SET"));
    note_events("in the program", epoll, 1000);
    be_heir(fd, side);
    note_events("with nothing to read", epoll, 0);
    reach(side, 3);
}

static void *receive_for_ever(void *given) {
    while (recv(*(int *)given, in, 1, 0) == 1)
        note("the thread received something");
    return NULL;
}

CASE(while_another_thread_receives, WARM) {
    if (side == SERVER) {
        pthread_t thread;
        require(pthread_create(&thread, NULL, receive_for_ever, &fd) == 0, "pthread_create");
        sleep_ms(30);
        become(EXECVE, "reader", side, fd);
    }
    await_peer(side, 1);
    TRY(send(fd, "for the program", 15, 0));
    TRY(recv(fd, in, 1, 0));
}

PROGRAM(reader) {
    reach(side, 1);
    TRY(recv(fd, in, 15, MSG_WAITALL));
    note_bytes("the program received", in, 15);
}
