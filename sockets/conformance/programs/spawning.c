// SPDX-License-Identifier: Apache-2.0 OR MIT
// Processes that begin other programs, which have the connection beside them or in their place.

#include "case.h"

#include <dlfcn.h>
#include <spawn.h>

static char in[1 << 21];
extern char **environ;

#define EARLY "not read yet, "
#define LATE "read by the program"
#define WORDS "from the program"

static void talk_to_program(int fd, enum side side) {
    TRY(send(fd, EARLY, strlen(EARLY), 0));
    meet(side, 1);
    await_peer(side, 2);
    TRY(send(fd, LATE, strlen(LATE), 0));
    size_t length = strlen(EARLY) + strlen(WORDS);
    TRY(recv(fd, in, length, MSG_WAITALL));
    note_bytes("received", in, length);
}

static void prepare(int fd, enum side side) {
    TRY(send(fd, EARLY, strlen(EARLY), 0));
    await_bytes(fd, strlen(EARLY));
    meet(side, 1);
}

PROGRAM(answer) {
    reach(side, 2);
    size_t length = strlen(EARLY) + strlen(LATE);
    TRY(recv(fd, in, length, MSG_WAITALL));
    note_bytes("the program received", in, length);
    TRY(send(fd, WORDS, strlen(WORDS), 0));
}

// What who began a program says behind it, when that has ended.
static void go_on_after_program(int fd, enum side side) {
    if (side == SERVER) {
        TRY(send(fd, "and its parent", 14, 0));
        TRY(recv(fd, in, 6, MSG_WAITALL));
    } else {
        TRY(recv(fd, in, 14, MSG_WAITALL));
        TRY(send(fd, "thanks", 6, 0));
    }
    note_bytes("then", in, side == SERVER ? 6 : 14);
    meet(side, 3);
}

enum way { SPAWN, SPAWNP, PIDFD, PIDFDP };

static pid_t spawn(enum way way, posix_spawn_file_actions_t *actions, char **arguments) {
    typedef int spawner(int *, const char *, const posix_spawn_file_actions_t *,
                        const posix_spawnattr_t *, char *const *, char *const *);
    // Older C libraries do not have these.
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
    if (side == CLIENT) {
        talk_to_program(fd, side);
    } else {
        prepare(fd, side);
        note_end("program", spawn(way, NULL, as_program("answer", side, fd)));
    }
    go_on_after_program(fd, side);
}

CASE(by_posix_spawn, COLD) { spawn_one(SPAWN, fd, side); }
CASE(by_posix_spawnp, COLD) { spawn_one(SPAWNP, fd, side); }
CASE(by_pidfd_spawn, COLD) { spawn_one(PIDFD, fd, side); }
CASE(by_pidfd_spawnp, COLD) { spawn_one(PIDFDP, fd, side); }

CASE(under_another_number_although_closed_on_exec, COLD) {
    if (side == CLIENT) {
        talk_to_program(fd, side);
    } else {
        prepare(fd, side);
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        posix_spawn_file_actions_t actions;
        TRY(posix_spawn_file_actions_init(&actions));
        TRY(posix_spawn_file_actions_adddup2(&actions, fd, 77));
        note_end("program", spawn(SPAWN, &actions, as_program("answer", side, 77)));
        TRY(posix_spawn_file_actions_destroy(&actions));
    }
    go_on_after_program(fd, side);
}

CASE(a_shell_writes_to_the_connection, COLD) {
    if (side == SERVER) {
        char command[40];
        snprintf(command, sizeof command, "echo from the shell >&%d; exit 4", fd);
        note_status("system", system(command));
    } else {
        TRY(recv(fd, in, 15, MSG_WAITALL));
        note_bytes("received", in, 15);
    }
    go_on_after_program(fd, side);
}

CASE(a_pipe_to_a_shell_that_reads_the_connection, COLD) {
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
    go_on_after_program(fd, side);
}
