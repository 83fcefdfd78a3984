// SPDX-License-Identifier: Apache-2.0 OR MIT
// Processes that start other programs, which hold the connection too or instead.

#include "case.h"

#include <dlfcn.h>
#include <spawn.h>

static char in[1000];
extern char **environ;

enum way { SPAWN, SPAWNP, PIDFD, PIDFDP };

static pid_t spawn(enum way way, posix_spawn_file_actions_t *actions, char **arguments) {
    typedef int spawner(int *, const char *, const posix_spawn_file_actions_t *,
                        const posix_spawnattr_t *, char *const *, char *const *);
    // Older C libraries lack these functions.
    spawner *by_pidfd = dlsym(RTLD_DEFAULT, way == PIDFD ? "pidfd_spawn" : "pidfd_spawnp");
    pid_t child = -1;
    int pidfd, result;
    if (way >= PIDFD && by_pidfd) {
        result = by_pidfd(&pidfd, own_path(), actions, NULL, arguments, environ);
        siginfo_t found = {0};
        require(result == 0 && waitid(P_PIDFD, pidfd, &found, WEXITED | WNOWAIT) == 0, "waitid");
        child = found.si_pid;
    } else if (way == SPAWNP) {
        result = posix_spawnp(&child, own_path(), actions, NULL, arguments, environ);
    } else {
        result = posix_spawn(&child, own_path(), actions, NULL, arguments, environ);
    }
    require(result == 0, "posix_spawn");
    return child;
}

static void spawn_one(enum way way, int fd, enum side side) {
    begin_handing(fd, side);
    if (side == CLIENT)
        talk_to_heir(fd, side);
    else
        note_end("program", spawn(way, NULL, as_program("heir", side, fd)));
    go_on_behind_heir(fd, side);
}

CASE(by_posix_spawn, WARM | V6 | MIXED) { spawn_one(SPAWN, fd, side); }
CASE(by_posix_spawnp, WARM) { spawn_one(SPAWNP, fd, side); }
CASE(by_pidfd_spawn, WARM) { spawn_one(PIDFD, fd, side); }
CASE(by_pidfd_spawnp, WARM) { spawn_one(PIDFDP, fd, side); }
CASE(before_the_upgrade, V6 | MIXED) { spawn_one(SPAWN, fd, side); }

// Spawns the heir with the connection under another number.
static void spawn_elsewhere(int fd, enum side side, int from) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
    } else {
        posix_spawn_file_actions_t actions;
        TRY(posix_spawn_file_actions_init(&actions));
        TRY(posix_spawn_file_actions_adddup2(&actions, from, 77));
        // If `from` differs from `fd`, it becomes the connection only here.
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        require(from == fd || dup3(fd, from, O_CLOEXEC) == from, "dup3");
        note_end("program", spawn(SPAWN, &actions, as_program("heir", side, 77)));
        TRY(posix_spawn_file_actions_destroy(&actions));
        require(from == fd || close(from) == 0, "close");
    }
    go_on_behind_heir(fd, side);
}

CASE(under_another_number_although_closed_on_exec, WARM | V6) { spawn_elsewhere(fd, side, fd); }

CASE(under_a_number_that_was_listed_before, WARM) { spawn_elsewhere(fd, side, 55); }

CASE(what_the_program_does_not_have, WARM) {
    // The connection is closed on exec, and the actions concern other descriptors: it stays
    // upgraded.
    if (side == SERVER) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, 2, 99);
        posix_spawn_file_actions_addclose(&actions, 99);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        note_end("program", spawn(SPAWN, &actions, as_program("without_a_connection", side, fd)));
        posix_spawn_file_actions_destroy(&actions);
        note_status("system", system("exit 3"));
    }
    check_upgraded(fd);
    go_on_behind_heir(fd, side);
    check_upgraded(fd);
}

PROGRAM(without_a_connection) { TRY(fcntl(fd, F_GETFD)); }

CASE(programs_that_cannot_begin, WARM) {
    begin_handing(fd, side);
    if (side == SERVER) {
        char *arguments[] = {"program", NULL};
        pid_t child;
        TRY(posix_spawn(&child, "/nowhere/program", NULL, NULL, arguments, environ));
        TRY(posix_spawnp(&child, "no-such-program", NULL, NULL, arguments, environ));
        be_heir(fd, side);
    } else {
        talk_to_heir(fd, side);
    }
    go_on_behind_heir(fd, side);
}

static void spawn_without_library(char *path, int fd, enum side side) {
    begin_handing(fd, side);
    if (side == SERVER) {
        char *nothing[] = {NULL};
        pid_t child;
        char **arguments = as_program("heir", side, fd);
        require(posix_spawn(&child, path, NULL, NULL, arguments, nothing) == 0, "posix_spawn");
        note_end("program", child);
    } else {
        talk_to_heir(fd, side);
    }
    go_on_behind_heir(fd, side);
}

CASE(without_the_library, WARM) { spawn_without_library(own_path(), fd, side); }

CASE(linked_statically, WARM) { spawn_without_library(static_path(), fd, side); }

CASE(a_shell_writes_to_the_connection, WARM | V6) {
    if (side == SERVER) {
        char command[40];
        snprintf(command, sizeof command, "echo from the shell >&%d; exit 4", fd);
        note_status("system", system(command));
    } else {
        TRY(recv(fd, in, 15, MSG_WAITALL));
        note_bytes("received", in, 15);
    }
    go_on_behind_heir(fd, side);
}

CASE(is_there_a_shell, WARM) {
    note("a shell: %d", system(NULL) != 0);
    check_upgraded(fd);
    meet(side, 1);
}

CASE(a_pipe_from_a_shell_that_reads_the_connection, WARM | V6) {
    if (side == SERVER) {
        char command[60], line[40] = "";
        snprintf(command, sizeof command, "read line <&%d; echo read: $line", fd);
        FILE *pipe = popen(command, "r");
        require(pipe && fgets(line, sizeof line, pipe), "popen");
        note("%s", strtok(line, "\n"));
        TRY(pclose(pipe));
    } else {
        TRY(send(fd, "a line for the shell\n", 21, 0));
    }
    go_on_behind_heir(fd, side);
}

CASE(a_pipe_to_a_shell_that_writes_to_the_connection, WARM) {
    if (side == SERVER) {
        char command[60];
        snprintf(command, sizeof command, "read line; echo heard: $line >&%d", fd);
        FILE *pipe = popen(command, "w");
        require(pipe && fputs("a line\n", pipe) >= 0, "popen");
        TRY(pclose(pipe));
    } else {
        TRY(recv(fd, in, 14, MSG_WAITALL));
        note_bytes("received", in, 14);
    }
    go_on_behind_heir(fd, side);
}

// After the shell has exited, no other process holds it.
CASE(again_behind_a_shell, WARM | TCP | V6) {
    if (side == SERVER)
        note_status("system", system("true"));
    upgrade_again(fd, side);
}

CASE(again_behind_several_shells, WARM | TCP) {
    for (int i = 0; i < 3; i++) {
        if (side == SERVER) {
            FILE *pipe = popen("true", "r");
            require(pipe && pclose(pipe) == 0, "popen");
            note_status("system", system("exit 2"));
        }
        upgrade_again(fd, side);
        meet(side, i + 1);
    }
}

// As long as another process holds it, it stays in the kernel.
CASE(behind_a_shell_whose_child_goes_on, WARM | TCP) {
    FILE *last = NULL;
    if (side == SERVER) {
        last = popen("cat > /dev/null", "w");
        require(last != NULL, "popen");
    }
    for (int i = 0; i < 500; i++) {
        if (side == SERVER)
            require(send(fd, in, 10, 0) == 10 && recv(fd, in, 10, MSG_WAITALL) == 10, "ask");
        else
            require(recv(fd, in, 10, MSG_WAITALL) == 10 && send(fd, in, 10, 0) == 10, "answer");
    }
    if (side == SERVER) {
        check_returned(fd);
        TRY(pclose(last));
    }
    upgrade_again(fd, side);
}

CASE(tools_between_messages, WARM | RACE | MIXED) {
    for (int i = 0; i < 8; i++) {
        if (side == SERVER) {
            require(system("true") == 0, "system");
            require(send(fd, in, 1000, 0) == 1000, "send");
            require(recv(fd, in, 1000, MSG_WAITALL) == 1000, "receive");
        } else {
            require(recv(fd, in, 1000, MSG_WAITALL) == 1000, "receive");
            require(send(fd, in, 1000, 0) == 1000, "send");
        }
    }
    check_returned(fd);
    note("done");
    meet(side, 1);
}

// Operations of the child of a `vfork` on the connection before exec.
enum guest { INHERITS, COPIES, COPIES_AND_CLOSES, REPLACES, FAILS };

static void vfork_one(enum guest guest, int fd, enum side side) {
    begin_handing(fd, side);
    if (side == CLIENT) {
        talk_to_heir(fd, side);
        go_on_behind_heir(fd, side);
        return;
    }
    int null = open("/dev/null", O_RDWR), copy = guest == INHERITS ? fd : 66;
    char **arguments = as_program("heir", side, copy), *path = own_path();
    if (guest != INHERITS)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    pid_t child = vfork();
    if (child == 0) {
        if (guest != INHERITS)
            dup2(fd, copy);
        if (guest == COPIES_AND_CLOSES)
            close(fd);
        if (guest == REPLACES)
            dup2(null, fd);
        execv(guest == FAILS ? "/nowhere/program" : path, arguments);
        _exit(5);
    }
    note_end("child", child);
    if (guest == FAILS)
        be_heir(fd, side);
    go_on_behind_heir(fd, side);
}

CASE(a_guest_inherits, WARM | V6 | MIXED) { vfork_one(INHERITS, fd, side); }
CASE(a_guest_copies, WARM) { vfork_one(COPIES, fd, side); }
CASE(a_guest_copies_and_closes, WARM) { vfork_one(COPIES_AND_CLOSES, fd, side); }
CASE(a_guest_replaces, WARM) { vfork_one(REPLACES, fd, side); }
CASE(a_guest_fails, WARM) { vfork_one(FAILS, fd, side); }

CASE(a_guest_that_has_something_else_there, WARM) {
    // In the program, the number of the connection is a file: the connection is not affected.
    if (side == SERVER) {
        int null = open("/dev/null", O_RDWR);
        char **arguments = as_program("writer", side, fd), *path = own_path();
        pid_t child = vfork();
        if (child == 0) {
            dup2(null, fd);
            execv(path, arguments);
            _exit(5);
        }
        note_end("child", child);
    }
    check_upgraded(fd);
    go_on_behind_heir(fd, side);
}

PROGRAM(writer) { TRY(write(fd, "into nothing", 12)); }

CASE(a_guest_with_one_argument_after_the_other, WARM) {
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    pid_t child = vfork();
    if (child == 0) {
        execlp("sh", "sh", "-c", "exit $#", "sh", "1", "2", "3", "4", "5", "6", NULL);
        _exit(99);
    }
    note_end("shell", child);
    check_upgraded(fd);
    go_on_behind_heir(fd, side);
}

CASE(a_program_for_each_connection, BARE | V6 | MIXED) {
    // Like inetd: the program has the connection as standard input and output.
    for (int i = 0; i < 4; i++) {
        if (side == CLIENT) {
            int end = connect_there();
            warm_up(end, side);
            TRY(send(end, "a line\n", 7, 0));
            TRY(recv(end, in, 14, MSG_WAITALL));
            note_bytes("received", in, 14);
            TRY(recv(end, in, 1, 0));
            close(end);
            continue;
        }
        int end = accept(fd, NULL, NULL);
        warm_up(end, side);
        pid_t child = fork();
        if (child == 0) {
            dup2(end, 0);
            dup2(end, 1);
            close(end);
            execl("/bin/sh", "sh", "-c", "read line; echo heard: $line", NULL);
            _exit(99);
        }
        close(end);
        note_end("program", child);
    }
}

CASE(a_child_for_each_connection, BARE | ACROSS | RACE | V6) {
    // The child is the sole holder after its parent has closed the connection, which may be
    // upgraded then.
    for (int i = 0; i < 3; i++) {
        if (side == CLIENT) {
            int end = connect_there();
            upgrade_again(end, side);
            TRY(send(end, "question", 8, 0));
            TRY(recv(end, in, 6, MSG_WAITALL));
            close(end);
            continue;
        }
        int end = accept(fd, NULL, NULL);
        pid_t child = fork();
        if (child == 0) {
            upgrade_again(end, side);
            TRY(recv(end, in, 8, MSG_WAITALL));
            TRY(send(end, "answer", 6, 0));
            _exit(0);
        }
        close(end);
        note_end("child", child);
    }
}
