// SPDX-License-Identifier: Apache-2.0 OR MIT
// Other programs that cases start, and descriptors that their processes pass to each other.

#include "case.h"

static struct test_case *programs;

void add_program(struct test_case *added) {
    added->next = programs;
    programs = added;
}

char *own_path(void) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    require(length > 0, "readlink");
    path[length] = 0;
    return path;
}

char *static_path(void) {
    static char path[4200];
    snprintf(path, sizeof path, "%s-static", own_path());
    return access(path, X_OK) == 0 ? path : own_path();
}

char **as_program(const char *name, enum side side, int fd) {
    static char texts[3][40], *arguments[8];
    snprintf(texts[0], sizeof *texts, "%s", name);
    snprintf(texts[1], sizeof *texts, "%d", side);
    snprintf(texts[2], sizeof *texts, "%d", fd);
    char *all[] = {"case", "--program", texts[0], texts[1], texts[2], (char *)case_object(), NULL};
    memcpy(arguments, all, sizeof all);
    return arguments;
}

void run_program(char **arguments) {
    enum side side = atoi(arguments[3]);
    join_case(side, arguments[5]);
    for (struct test_case *each = programs; each; each = each->next) {
        if (strcmp(each->name, arguments[2]) == 0) {
            each->run(side, atoi(arguments[4]));
            exit(0);
        }
    }
    require(0, "there is such a program");
}

void note_end(const char *what, pid_t child) {
    int status = 0;
    require(waitpid(child, &status, 0) == child, "waitpid");
    note_status(what, status);
}

#define EARLY "not read yet, "
#define LATE "read by the heir"
#define ANSWER "from the heir"

static void receive(const char *who, int fd, size_t length) {
    char bytes[100];
    TRY(recv(fd, bytes, length, MSG_WAITALL));
    note_bytes(who, bytes, length);
}

void begin_handing(int fd, enum side side) {
    TRY(send(fd, EARLY, strlen(EARLY), 0));
    await_bytes(fd, strlen(EARLY));
    meet(side, 1);
}

void be_heir(int fd, enum side side) {
    reach(side, 2);
    receive("the heir received", fd, strlen(EARLY LATE));
    TRY(send(fd, ANSWER, strlen(ANSWER), 0));
}

PROGRAM(heir) { be_heir(fd, side); }

void talk_to_heir(int fd, enum side side) {
    await_peer(side, 2);
    TRY(send(fd, LATE, strlen(LATE), 0));
    receive("received", fd, strlen(EARLY ANSWER));
    check_returned(fd);
}

void go_on_behind_heir(int fd, enum side side) {
    meet(side, 3);
    TRY(send(fd, "we go on", 8, 0));
    receive("then", fd, 8);
    meet(side, 4);
}

void new_pair(int pair[2]) {
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
}

void give(int over, int fd) { require(pass(over, &fd, 1) == 1, "pass"); }

int taken(int over) {
    int got = -1;
    require(take(over, &got, 1) == 1, "a descriptor comes");
    return got;
}

pid_t start_heir(int over, int fd, enum side side, void (*run)(int fd, enum side side)) {
    // The sender is the sole holder only after the child has closed its own copy.
    int closed[2];
    char byte;
    require(pipe(closed) == 0, "pipe");
    pid_t child = fork();
    if (child != 0) {
        close(closed[1]);
        require(read(closed[0], &byte, 1) == 0, "the child closes it");
        close(closed[0]);
        return child;
    }
    close(fd);
    close(closed[0]);
    close(closed[1]);
    run(taken(over), side);
    _exit(0);
}

void pass_to_child(int fd, enum side side, void (*run)(int fd, enum side side),
                   enum after after) {
    int pair[2];
    new_pair(pair);
    pid_t child = start_heir(pair[1], fd, side, run);
    give(pair[0], fd);
    check_returned(fd);
    if (after == CLOSES)
        close(fd);
    note_end("heir", child);
}

void ping_all(int fd, int count) {
    char bytes[4];
    for (int i = 0; i < count; i++) {
        require(send(fd, "ping", 4, 0) == 4, "send");
        require(recv(fd, bytes, 4, MSG_WAITALL) == 4, "receive");
    }
    note("done");
}

void answer_by(const int numbers[2], int count) {
    char bytes[4];
    for (int i = 0; i < count; i++) {
        require(recv(numbers[i % 2], bytes, 4, MSG_WAITALL) == 4, "receive");
        require(send(numbers[i / 2 % 2], bytes, 4, 0) == 4, "send");
    }
}
