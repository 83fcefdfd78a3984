// SPDX-License-Identifier: Apache-2.0 OR MIT
// Runs the walks of a file, one per line, and prints their traces: two processes that take turns.
//
// `WALK_PAUSE_MS` is a pause after each step, before the state is traced: it shows whether a state
// is wrong, or only delayed. `WALK_SECONDS` limits the run.
#include "walk.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static struct shared {
    // Number of completed turns: even numbers are turns of A, odd numbers turns of B.
    atomic_int turn;
    // Number of ends that were accelerated at the start of their walks.
    atomic_int upgraded;
    size_t used;
    char trace[TRACE_BYTES];
} *shared;

static volatile sig_atomic_t broken_pipes;
static int pause_ms;

static void note_broken_pipe(int number) {
    (void)number;
    broken_pipes++;
}

void trace(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t left = TRACE_BYTES - shared->used;
    int length = vsnprintf(shared->trace + shared->used, left, format, arguments);
    va_end(arguments);
    shared->used += (size_t)length < left ? (size_t)length : left - 1;
}

void trace_result(long result) {
    if (result < 0)
        trace("%s", strerrorname_np(errno) ? strerrorname_np(errno) : "?");
    else
        trace("%ld", result);
    if (broken_pipes)
        trace(" SIGPIPE");
    broken_pipes = 0;
}

void begin_turn(int side) {
    int turn;
    while ((turn = atomic_load(&shared->turn)) % 2 != side)
        syscall(SYS_futex, &shared->turn, 0 /* FUTEX_WAIT */, turn, NULL, NULL, 0);
}

void end_turn(void) {
    atomic_fetch_add(&shared->turn, 1);
    syscall(SYS_futex, &shared->turn, 1 /* FUTEX_WAKE */, 1, NULL, NULL, 0);
}

static void run_walk(int side, const struct walk *walk, const char *line) {
    struct end end = {connect_end(side, walk->is_unix), -1, side + 1};
    if (freeport_is_accelerated && freeport_is_accelerated(end.fd) == 1)
        shared->upgraded++;
    begin_turn(side);
    if (side == 0)
        trace("walk %s\n", line);
    end_turn();
    for (int i = 0; i < walk->count; i++) {
        const struct step *step = walk->steps + i;
        begin_turn(side);
        if (step->side == side) {
            trace("%c.%s=%d: ", "AB"[side], step->name, step->number);
            take_step(&end, step);
        }
        end_turn();
        begin_turn(side);
        if (side == 0 && pause_ms)
            sleep_ms(pause_ms);
        trace_state(&end);
        trace("%s", side ? "\n" : "");
        end_turn();
    }
    begin_turn(side);
    if (end.fd >= 0) {
        // A reset leaves no state behind.
        struct linger none = {1, 0};
        setsockopt(end.fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
        close(end.fd);
    }
    if (end.set >= 0)
        close(end.set);
    end_turn();
}

static void run_side(int side, FILE *file) {
    char *line = NULL;
    size_t room = 0;
    struct walk walk;
    signal(SIGPIPE, note_broken_pipe);
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        char *copy = strdup(line);
        if (parse_walk(&walk, copy))
            run_walk(side, &walk, line);
        free(copy);
    }
    _exit(0);
}

static int number_of(const char *variable, int otherwise) {
    const char *text = getenv(variable);
    return text ? atoi(text) : otherwise;
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "give a file of walks\n");
        return 96;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 97;
    pause_ms = number_of("WALK_PAUSE_MS", 0);
    int64_t deadline = now_ms() + 1000 * number_of("WALK_SECONDS", 120);
    pid_t sides[2];
    prepare_connections();
    for (int side = 0; side < 2; side++) {
        sides[side] = fork();
        if (sides[side] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            FILE *file = fopen(arguments[1], "re");
            if (file)
                run_side(side, file);
            _exit(96);
        }
    }
    int failed = 0;
    for (int left = 2; left && !failed;) {
        int status;
        pid_t ended = waitpid(-1, &status, WNOHANG);
        left -= ended > 0;
        failed = (ended > 0 && status != 0) || now_ms() > deadline;
        if (ended <= 0)
            sleep_ms(2);
    }
    for (int side = 0; side < 2 && failed; side++)
        kill(sides[side], SIGKILL);
    fwrite(shared->trace, 1, shared->used, stdout);
    fprintf(stderr, "upgraded %d\n", atomic_load(&shared->upgraded));
    return failed ? 98 : 0;
}
