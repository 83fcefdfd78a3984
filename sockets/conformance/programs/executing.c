// SPDX-License-Identifier: Apache-2.0 OR MIT
// Processes that become other programs, which go on with the connection.

#include "case.h"

#include <linux/limits.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

static char in[1 << 21];
extern char **environ;

// What both sides say while nobody reads, and what they say behind that.
#define EARLY "not read yet, "
#define LATE "read by the program"

// The side whose peer becomes another program: bytes both ways are unread meanwhile.
static void talk_to_program(int fd, enum side side) {
    TRY(send(fd, EARLY, strlen(EARLY), 0));
    meet(side, 1);
    await_peer(side, 2);
    TRY(send(fd, LATE, strlen(LATE), 0));
    size_t length = strlen(EARLY) + strlen("from the program");
    TRY(recv(fd, in, length, MSG_WAITALL));
    note_bytes("received", in, length);
    TRY(recv(fd, in, 1, 0));
}

// The other side, before it becomes a program.
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
    TRY(send(fd, "from the program", 16, 0));
    TRY(close(fd));
}

// Has the connection as the standard input and output.
PROGRAM(answer_as_a_filter) {
    reach(side, 2);
    size_t length = strlen(EARLY) + strlen(LATE);
    for (size_t done = 0; done < length;) {
        ssize_t got = read(0, in + done, length - done);
        require(got > 0, "read");
        done += got;
    }
    note_bytes("the program read", in, length);
    fputs("from the program", stdout);
    fflush(stdout);
}

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

static void execute(enum way way, int fd, enum side side) {
    if (side == CLIENT) {
        talk_to_program(fd, side);
        return;
    }
    prepare(fd, side);
    become(way, "answer", side, fd);
}

CASE(by_execve, COLD) { execute(EXECVE, fd, side); }
CASE(by_execv, COLD) { execute(EXECV, fd, side); }
CASE(by_execvp, COLD) { execute(EXECVP, fd, side); }
CASE(by_execvpe, COLD) { execute(EXECVPE, fd, side); }
CASE(by_execl, COLD) { execute(EXECL, fd, side); }
CASE(by_execlp, COLD) { execute(EXECLP, fd, side); }
CASE(by_execle, COLD) { execute(EXECLE, fd, side); }
CASE(by_fexecve, COLD) { execute(FEXECVE, fd, side); }
CASE(by_execveat, COLD) { execute(EXECVEAT, fd, side); }
CASE(before_the_upgrade, V6 | MIXED) { execute(EXECVE, fd, side); }
