// SPDX-License-Identifier: Apache-2.0 OR MIT
// The controller: starts two actors, passes them the lines of a program one after the other, and
// records their results. Lines are of these kinds:
//
//   a0 OPERATION ...     a0 executes it; `blocks` if that takes long
//   a0&3 OPERATION ...   a0 starts it; the next line follows after 3 milliseconds; with 5 or more,
//                        once a0 sleeps
//   a0 finish            waits until a0 has finished its operation, and records the result
//   warm a0 s1 a1 s2 40  a dialogue of 40 bytes each way, in which a connection is upgraded
//   signal a0 plain      interrupts a0 (`restart`: with SA_RESTART) once it sleeps
//   kill a0              kills its process
//   cores together       all actors share a core
#include "steps.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

struct shared *shared;

// Time in milliseconds after which a call counts as blocked.
static int patience = 1500;
// Number of dialogues, and of those after which both ends were upgraded.
static int dialogues, upgraded;
// Current line of the program.
static int line_number;
// Actors whose last line has not finished.
static int stuck[ACTORS];

void map_shared(int fd) {
    int protection = PROT_READ | PROT_WRITE;
    shared = mmap(NULL, sizeof *shared, protection, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        _exit(97);
}

void wait_while(atomic_int *word, int value, int milliseconds) {
    int64_t deadline = now_ms() + milliseconds;
    while (atomic_load(word) == value) {
        int64_t left = deadline - now_ms();
        if (left <= 0)
            return;
        struct timespec time = {left / 1000, left % 1000 * 1000000};
        syscall(SYS_futex, word, 0 /* FUTEX_WAIT */, value, &time, NULL, 0);
    }
}

void wake(atomic_int *word) { syscall(SYS_futex, word, 1 /* FUTEX_WAKE */, 64, NULL, NULL, 0); }

static int is_done(int actor) {
    struct actor *it = &shared->actors[actor];
    return atomic_load(&it->ended) == atomic_load(&it->given);
}

static void give(int actor, const char *line) {
    struct actor *it = &shared->actors[actor];
    snprintf(it->line, sizeof it->line, "%s", line);
    it->result[0] = 0;
    it->line_number = line_number;
    atomic_fetch_add(&it->given, 1);
    wake(&it->given);
}

// Waits until a thread sleeps, as in a blocking call.
static void await_sleep(const struct actor *it, int milliseconds) {
    char path[80], text[200];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", it->process, it->thread);
    for (int64_t deadline = now_ms() + milliseconds; now_ms() < deadline; sleep_ms(1)) {
        if (atomic_load(&it->begun) != atomic_load(&it->given))
            continue;
        FILE *file = fopen(path, "re");
        size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
        text[length] = 0;
        if (file)
            fclose(file);
        const char *state = strrchr(text, ')');
        if (!state || state[2] == 'S')
            return;
    }
}

// Returns whether an actor finishes its line within this time. If it was blocked before, the last
// line may have woken it: then it is running, and gets time to finish.
static int await(int actor, int milliseconds) {
    struct actor *it = &shared->actors[actor];
    if (!is_done(actor) && stuck[actor])
        await_sleep(it, 200);
    if (!is_done(actor))
        wait_while(&it->ended, atomic_load(&it->given) - 1, stuck[actor] ? 20 : milliseconds);
    stuck[actor] = !is_done(actor);
    return !stuck[actor];
}

// Removes the actors of a process that has exited or executed another program, except `but`.
static void forget_process(int process, int but) {
    for (int i = 0; i < ACTORS; i++) {
        struct actor *it = &shared->actors[i];
        if (i == but || it->process != process)
            continue;
        it->process = 0;
        atomic_store(&it->ended, atomic_load(&it->given));
        stuck[i] = 0;
    }
}

static const char *await_end(int actor, int does_kill) {
    int process = shared->actors[actor].process;
    int handle = syscall(SYS_pidfd_open, process, 0);
    if (does_kill)
        kill(process, SIGKILL);
    else
        give(actor, "exit");
    int ended = poll(&(struct pollfd){handle, POLLIN, 0}, 1, patience) == 1;
    close(handle);
    forget_process(process, -1);
    // Its last bytes are in flight, and other holders of its sockets close them soon.
    settle(actor);
    sleep_ms(20);
    return ended ? "ended" : "did not end";
}

static void warm_up(const char *arguments, char *result) {
    int actors[2], names[2], rounds;
    sscanf(arguments, "a%d s%d a%d s%d %d", actors, names, actors + 1, names + 1, &rounds);
    dialogues++;
    int both = 0;
    strcpy(result, "done");
    for (int i = 0; i < 2 * rounds; i++) {
        for (int step = 0; step < 2; step++) {
            int which = (i + step) % 2;
            int actor = actors[which] % ACTORS;
            char line[40];
            snprintf(line, sizeof line, "%s s%d", step ? "pong" : "ping", names[which]);
            if (!shared->actors[actor].process || !await(actor, 0)) {
                snprintf(result, RESULT_BYTES, "byte %d: nobody is there", i);
                return;
            }
            give(actor, line);
            if (!await(actor, patience) || strcmp(shared->actors[actor].result, "1") != 0) {
                snprintf(result, RESULT_BYTES, "byte %d, %s: %.40s", i, line,
                         stuck[actor] ? "blocks" : shared->actors[actor].result);
                return;
            }
        }
        both = shared->actors[actors[0]].is_accelerated && shared->actors[actors[1]].is_accelerated;
        if (!both && freeport_is_accelerated && i >= 10)
            sleep_ms(1);
    }
    upgraded += both;
}

static void send_signal(const char *arguments, char *result) {
    int actor = 0;
    char how[10] = "";
    sscanf(arguments, "a%d %9s", &actor, how);
    const struct actor *it = &shared->actors[actor % ACTORS];
    if (!it->process)
        return;
    await_sleep(it, 200);
    int number = strcmp(how, "restart") == 0 ? SIGUSR2 : SIGUSR1;
    syscall(SYS_tgkill, it->process, it->thread, number);
    sleep_ms(2);
    strcpy(result, "sent");
}

static void run_of_actor(const char *line, char *result) {
    int actor = line[1] - '0', grace = 0;
    const char *rest = strchr(line, ' ');
    if (actor < 0 || actor >= ACTORS || !rest || !shared->actors[actor].process) {
        strcpy(result, "nobody is there");
        return;
    }
    struct actor *it = &shared->actors[actor];
    rest++;
    if (!await(actor, patience)) {
        strcpy(result, "blocks");
        return;
    }
    if (strcmp(rest, "finish") == 0) {
        strcpy(result, it->result);
        return;
    }
    if (strcmp(rest, "exit") == 0) {
        strcpy(result, await_end(actor, 0));
        return;
    }
    give(actor, rest);
    if (sscanf(line + 2, "&%d", &grace) == 1) {
        if (grace >= 5)
            await_sleep(it, 200);
        else
            sleep_ms(grace);
        strcpy(result, "begun");
        return;
    }
    strcpy(result, await(actor, patience) ? it->result : "blocks");
    if (strncmp(rest, "exec", 4) == 0)
        forget_process(it->process, actor);
}

static void run(char *line) {
    static char result[RESULT_BYTES];
    strcpy(result, "nothing");
    int number = 0;
    if (strncmp(line, "warm ", 5) == 0)
        warm_up(line + 5, result);
    else if (strncmp(line, "signal ", 7) == 0)
        send_signal(line + 7, result);
    else if (sscanf(line, "kill a%d", &number) == 1 && shared->actors[number % ACTORS].process)
        strcpy(result, await_end(number % ACTORS, 1));
    else if (strncmp(line, "cores ", 6) == 0)
        shared->together = strcmp(line + 6, "together") == 0;
    else if (line[0] == 'a')
        run_of_actor(line, result);
    printf("%s = %s\n", line, result);
}

static void run_all(char *program) {
    char *rest = NULL;
    for (char *line = strtok_r(program, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line_number++;
        if (line[0] != '#')
            run(line);
    }
}

// The initial actors, each a process of its own.
static void begin_actor(int number) {
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(OBJECT_DESCRIPTOR);
        be_actor(number);
    }
    wait_while(&shared->actors[number].process, 0, PATIENCE_MS);
}

int main(int count, char **arguments) {
    if (count == 4 && strcmp(arguments[1], "--actor") == 0)
        join_as_actor(arguments);
    static char program[64 << 10];
    int file = count == 2 ? open(arguments[1], O_RDONLY) : -1;
    if (file < 0 || read(file, program, sizeof program - 1) < 0) {
        fprintf(stderr, "give a file of steps\n");
        return 96;
    }
    close(file);
    const char *given = getenv("INTERPRETER_PATIENCE_MS");
    patience = given ? atoi(given) : patience;
    int object = memfd_create("steps", 0);
    if (object < 0 || ftruncate(object, sizeof *shared) || dup2(object, OBJECT_DESCRIPTOR) < 0)
        return 97;
    close(object);
    map_shared(OBJECT_DESCRIPTOR);
    shared->controller = getpid();
    sched_getaffinity(0, sizeof shared->cores, &shared->cores);
    for (int i = 0; i < ACTORS; i++) {
        int mail[2];
        if (socketpair(AF_UNIX, SOCK_DGRAM, 0, mail) < 0)
            return 97;
        for (int end = 0; end < 2; end++) {
            dup2(mail[end], MAIL_DESCRIPTOR + 2 * i + end);
            close(mail[end]);
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    begin_actor(0);
    begin_actor(1);
    run_all(program);
    for (int i = 0; i < ACTORS; i++) {
        if (shared->actors[i].process)
            kill(shared->actors[i].process, SIGKILL);
    }
    fprintf(stderr, "upgraded %d of %d reused %d\n", upgraded, dialogues, shared->reused);
    return 0;
}
