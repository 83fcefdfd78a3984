// SPDX-License-Identifier: Apache-2.0 OR MIT
// Processes that drop privileges: data they cannot reach by a descriptor must not be reachable by
// shared memory either, and their own connections continue.

#include "case.h"

#include <sys/syscall.h>

enum { NOBODY = 65534 };

static char in[1000];

static void note_foreign_memory(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    require(maps != NULL, "/proc/self/maps");
    char line[1000];
    int found = 0;
    while (fgets(line, sizeof line, maps) != NULL)
        found += strstr(line, "freeport-slab") != NULL;
    fclose(maps);
    note("memory shared with others: %d", found);
}

static void ask(int fd, int count) {
    for (int i = 0; i < count; i++) {
        require(send(fd, "ping", 4, 0) == 4, "send");
        require(recv(fd, in, 4, MSG_WAITALL) == 4, "receive");
    }
}

static void answer(int fd, int count) {
    for (int i = 0; i < count; i++)
        require(recv(fd, in, 4, MSG_WAITALL) == 4 && send(fd, in, 4, 0) == 4, "answer");
}

// The server's child uses the connection, then drops its privileges.
static void with_child(void (*live)(int), int fd, enum side side) {
    if (side == CLIENT) {
        ask(fd, 20);
        await_peer(side, 1);
        ask(fd, 20);
        TRY(close(fd));
        return;
    }
    answer(fd, 20);
    pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
        live(fd);
        _exit(0);
    }
    reach(side, 1);
    note_end("child", child);
    while (recv(fd, in, 4, MSG_WAITALL) == 4)
        require(send(fd, in, 4, 0) == 4, "send");
    note("done");
}

static void close_it(int fd) {
    TRY(close(fd));
    note_foreign_memory();
}

static void close_it_and_give_up_rights(int fd) {
    close_it(fd);
    TRY(setgid(NOBODY));
    TRY(setuid(NOBODY));
    note_foreign_memory();
}

static void give_up_rights_and_answer(int fd) {
    TRY(setresgid(NOBODY, NOBODY, NOBODY));
    TRY(setresuid(NOBODY, NOBODY, NOBODY));
    note_foreign_memory();
    answer(fd, 10);
}

static void give_up_rights_by_number(int fd) {
    TRY(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY));
    note_foreign_memory();
    answer(fd, 10);
}

CASE(a_child_that_closes_it, WARM | V6) { with_child(close_it, fd, side); }
CASE(a_child_that_closes_it_and_gives_up_rights, WARM | V6) {
    with_child(close_it_and_give_up_rights, fd, side);
}
CASE(a_child_that_gives_up_rights_and_has_it, WARM | V6) {
    with_child(give_up_rights_and_answer, fd, side);
}
CASE(a_child_that_gives_up_rights_by_number, WARM) {
    with_child(give_up_rights_by_number, fd, side);
}

// A process that was not forked keeps its connection.
CASE(a_server_that_gives_up_rights, WARM | V6) {
    if (side == CLIENT) {
        ask(fd, 40);
        check_upgraded(fd);
        await_peer(side, 1);
        ask(fd, 20);
        TRY(close(fd));
        return;
    }
    answer(fd, 40);
    TRY(setegid(NOBODY));
    TRY(seteuid(NOBODY));
    reach(side, 1);
    answer(fd, 20);
    check_upgraded(fd);
    TRY(recv(fd, in, 1, 0));
}
