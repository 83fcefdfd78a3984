// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections and several processes: forks before and after the upgrade, and other programs started
// in between.

#include "case.h"

#include <spawn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

static char in[100000];
extern char **environ;

CASE(a_child_reads_what_its_parent_left, WARM | V6 | RACE) {
    if (side == CLIENT) {
        TRY(send(fd, "for the parent, for the child", 29, 0));
        meet(side, 1);
        TRY(recv(fd, in, 5, MSG_WAITALL));
        note_bytes("received", in, 5);
        return;
    }
    await_bytes(fd, 29);
    TRY(recv(fd, in, 16, 0));
    note_bytes("the parent", in, 16);
    pid_t child = fork();
    if (child == 0) {
        TRY(recv(fd, in, 13, MSG_WAITALL));
        note_bytes("the child", in, 13);
        TRY(send(fd, "child", 5, 0));
        _exit(0);
    }
    note_end("child", child);
    meet(side, 1);
}

CASE(a_child_takes_over, WARM | V6 | RACE) {
    if (side == CLIENT) {
        for (int i = 0; i < 200; i++) {
            require(send(fd, "ping", 4, 0) == 4, "send");
            require(recv(fd, in, 4, MSG_WAITALL) == 4, "receive");
        }
        TRY(shutdown(fd, SHUT_WR));
        TRY(recv(fd, in, 4, 0));
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        ssize_t got;
        int count = 0;
        while ((got = recv(fd, in, 4, MSG_WAITALL)) == 4 && ++count)
            require(send(fd, in, 4, 0) == 4, "send");
        note("messages: %d, then %zd", count, got);
        _exit(0);
    }
    close(fd);
    note_end("child", child);
}

CASE(parent_and_child_take_turns, WARM | RACE) {
    if (side == CLIENT) {
        for (int i = 0; i < 40; i++) {
            require(send(fd, "m", 1, 0) == 1, "send");
            require(recv(fd, in, 1, 0) == 1, "receive");
        }
        note("done");
        meet(side, 1);
        return;
    }
    int to_child[2], to_parent[2];
    require(pipe(to_child) == 0 && pipe(to_parent) == 0, "pipe");
    pid_t child = fork();
    int *ours = child ? to_parent : to_child, *theirs = child ? to_child : to_parent;
    for (int i = 0; i < 20; i++) {
        char turn = 't';
        if (!child || i)
            require(read(ours[0], &turn, 1) == 1, "read");
        require(recv(fd, in, 1, 0) == 1, "receive");
        require(send(fd, child ? "p" : "c", 1, 0) == 1, "send");
        require(write(theirs[1], &turn, 1) == 1, "write");
    }
    if (!child)
        _exit(0);
    note_end("child", child);
    meet(side, 1);
}

CASE(the_end_comes_when_all_have_closed, WARM | RACE) {
    if (side == CLIENT) {
        TRY(recv(fd, in, 10, MSG_WAITALL));
        note_bytes("received", in, 5);
        await_peer(side, 1);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(30);
        TRY(send(fd, "child", 5, 0));
        _exit(0);
    }
    close(fd);
    note_end("child", child);
    reach(side, 1);
}

CASE(a_child_that_ends_takes_nothing_along, WARM | V6 | RACE) {
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        if (child == 0)
            exit(0);
        note_end("child", child);
        if (side == CLIENT) {
            TRY(send(fd, "data", 4, 0));
            TRY(recv(fd, in, 6, MSG_WAITALL));
        } else {
            TRY(recv(fd, in, 4, MSG_WAITALL));
            TRY(send(fd, "answer", 6, 0));
        }
    }
}

CASE(children_that_are_killed_before_they_do_anything_are_not_counted, ACROSS | RACE) {
    // On their parent's processor they get no time for anything.
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    require(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0)
            for (;;)
                pause();
        kill(child, SIGKILL);
        require(waitpid(child, NULL, 0) == child, "waitpid");
    }
    meet(side, 1);
    prove_soon(fd, side);
}

CASE(children_that_are_there_when_a_connection_leaves_the_kernel, ACROSS | RACE) {
    // Some of them start between the claim and the answer.
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        if (child == 0) {
            usleep(500);
            _exit(0);
        }
        for (int j = 0; j < 3; j++) {
            char byte;
            if (side == CLIENT) {
                require(send(fd, "x", 1, 0) == 1 && recv(fd, &byte, 1, 0) == 1, "ask");
            } else {
                require(recv(fd, &byte, 1, 0) == 1 && send(fd, "y", 1, 0) == 1, "answer");
            }
        }
        require(waitpid(child, NULL, 0) == child, "waitpid");
    }
    prove_soon(fd, side);
}

CASE(a_server_that_forks_for_each_connection, BARE | V6 | RACE | MIXED) {
    if (side == CLIENT) {
        for (int i = 0; i < 4; i++) {
            int end = connect_there();
            for (int j = 0; j < 60; j++) {
                char line[20];
                int length = snprintf(line, sizeof line, "request %d", j);
                require(send(end, line, length, 0) == length, "send");
                require(recv(end, in, length, MSG_WAITALL) == length, "receive");
                require(memcmp(in, line, length) == 0, "the answer");
            }
            TRY(close(end));
        }
        return;
    }
    for (int i = 0; i < 4; i++) {
        int end = accept(fd, NULL, NULL);
        pid_t child = fork();
        if (child == 0) {
            close(fd);
            ssize_t got;
            size_t total = 0;
            for (; (got = read(end, in, sizeof in)) > 0; total += got)
                require(write(end, in, got) == got, "write");
            note("bytes: %zu, then %zd", total, got);
            _exit(0);
        }
        close(end);
        note_end("child", child);
    }
}

CASE(children_that_wait_for_connections, BARE | RACE) {
    // Like prefork servers: each child accepts on the inherited socket.
    if (side == CLIENT) {
        for (int i = 0; i < 6; i++) {
            int end = connect_there();
            for (int j = 0; j < 40; j++) {
                require(send(end, "ping", 4, 0) == 4, "send");
                require(recv(end, in, 4, MSG_WAITALL) == 4, "receive");
            }
            close(end);
        }
        note("done");
        return;
    }
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int j = 0; j < 3; j++) {
                int end = accept(fd, NULL, NULL);
                ssize_t got;
                while ((got = recv(end, in, 100, 0)) > 0)
                    require(send(end, in, got, 0) == got, "send");
                close(end);
            }
            _exit(0);
        }
    }
    note_end("child", children[0]);
    note_end("child", children[1]);
}

CASE(system_and_popen_meanwhile, WARM | V6 | MIXED) {
    for (int i = 0; i < 3; i++) {
        if (side == SERVER) {
            TRY(system("exit 3"));
            char line[20] = "";
            FILE *pipe = popen("echo tool", "r");
            require(pipe && fgets(line, sizeof line, pipe), "popen");
            TRY(pclose(pipe));
            line[strcspn(line, "\n")] = 0;
            note("the tool says: %s", line);
            TRY(send(fd, line, 4, 0));
        } else {
            TRY(recv(fd, in, 4, MSG_WAITALL));
            note_bytes("received", in, 4);
        }
    }
}

static pid_t spawn(char *const *arguments, const posix_spawn_file_actions_t *actions) {
    pid_t child = -1;
    int result = posix_spawn(&child, "/bin/sh", actions, NULL, arguments, environ);
    note("posix_spawn: %d", result);
    return child;
}

CASE(a_spawned_program_meanwhile, WARM) {
    if (side == SERVER) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        char *arguments[] = {"sh", "-c", "exit 5", NULL};
        note_end("program", spawn(arguments, NULL));
        pid_t child = vfork();
        if (child == 0) {
            execl("/bin/sh", "sh", "-c", "exit 6", NULL);
            _exit(127);
        }
        note_end("program", child);
        child = vfork();
        if (child == 0) {
            close(fd);
            _exit(7);
        }
        note_end("child that closes", child);
        TRY(send(fd, "data", 4, 0));
    } else {
        TRY(recv(fd, in, 4, MSG_WAITALL));
    }
    meet(side, 1);
}

CASE(a_program_that_cannot_be_started, WARM) {
    if (side == SERVER) {
        pid_t child = fork();
        if (child == 0) {
            TRY(execl("/nowhere/program", "program", NULL));
            TRY(execlp("no-such-program", "program", NULL));
            TRY(send(fd, "data", 4, 0));
            _exit(0);
        }
        note_end("child", child);
        TRY(send(fd, "more", 4, 0));
    } else {
        TRY(recv(fd, in, 8, MSG_WAITALL));
        note_bytes("received", in, 8);
    }
    meet(side, 1);
}

CASE(a_connection_that_is_closed_on_exec, WARM) {
    // The peer sees the end when the process executes another program.
    if (side == CLIENT) {
        TRY(recv(fd, in, 10, 0));
        TRY(recv(fd, in, 10, 0));
        meet(side, 2);
        return;
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    int ends[2];
    require(pipe(ends) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        close(ends[1]);
        TRY(send(fd, "data", 4, 0));
        dup2(ends[0], 0);
        execl("/bin/sh", "sh", "-c", "read line; exit 9", NULL);
        _exit(127);
    }
    close(fd);
    close(ends[0]);
    await_peer(side, 2);
    reach(side, 2);
    TRY(write(ends[1], "go\n", 3));
    note_end("program", child);
}

CASE(a_group_of_processes_is_counted_by_the_kernel, WARM) {
    // The parent polls while a child that also holds the connection exits.
    if (side == CLIENT) {
        meet(side, 1);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(20);
        _exit(0);
    }
    struct pollfd asked = {fd, POLLIN | POLLRDHUP, 0};
    TRY(poll(&asked, 1, 60));
    note_end("child", child);
    meet(side, 1);
}

CASE(raw_system_calls, WARM) {
    // A program that bypasses the C library is not served from shared memory, but must keep
    // working: here only with calls that take no bytes.
    int copy = syscall(SYS_dup, fd);
    note("a copy: %d", copy >= 0);
    TRY(syscall(SYS_fcntl, copy, F_GETFL, 0));
    TRY(syscall(SYS_close, copy));
    if (side == SERVER)
        TRY(send(fd, "data", 4, 0));
    else
        TRY(recv(fd, in, 4, MSG_WAITALL));
    meet(side, 1);
}

CASE(daemons_go_on, WARM | RACE) {
    // A process that becomes a daemon keeps its connections.
    if (side == CLIENT) {
        TRY(recv(fd, in, 6, MSG_WAITALL));
        note_bytes("received", in, 6);
        TRY(send(fd, "thanks", 6, 0));
        TRY(recv(fd, in, 6, 0));
        reach(side, 4);
        return;
    }
    pid_t child = fork();
    if (child == 0) {
        TRY(daemon(1, 1));
        TRY(send(fd, "daemon", 6, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
        _exit(0);
    }
    close(fd);
    await_peer(side, 4);
}

CASE(a_set_that_a_child_inherits, WARM | RACE) {
    if (side == CLIENT) {
        for (int i = 0; i < 20; i++) {
            require(send(fd, "ping", 4, 0) == 4, "send");
            require(recv(fd, in, 4, MSG_WAITALL) == 4, "receive");
        }
        TRY(close(fd));
        return;
    }
    int epoll = epoll_create1(0), count = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 77};
    TRY(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
    pid_t child = fork();
    if (child == 0) {
        while (epoll_wait(epoll, &event, 1, 5000) == 1 && recv(fd, in, 4, 0) == 4) {
            require(event.data.u64 == 77 && send(fd, "pong", 4, 0) == 4, "send");
            count++;
        }
        note("messages: %d", count);
        _exit(0);
    }
    note_end("child", child);
}
