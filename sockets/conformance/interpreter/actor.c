// SPDX-License-Identifier: Apache-2.0 OR MIT
// An actor: a thread that executes lines, and the processes that actors fork, spawn or exec.
#include "steps.h"

#include <spawn.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

extern char **environ;

// Descriptors of this process by name; 0 means that the name is unused.
static int names[NAMES];
static _Thread_local int broken_pipes;

static void note_broken_pipe(int number) {
    (void)number;
    broken_pipes++;
}

static void do_nothing(int number) { (void)number; }

void say(struct call *call, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t left = RESULT_BYTES - call->used;
    int length = vsnprintf(call->result + call->used, left, format, arguments);
    va_end(arguments);
    call->used += (size_t)length < left ? (size_t)length : left - 1;
}

void say_result(struct call *call, long result) {
    if (result < 0)
        say(call, "%s", strerrorname_np(errno) ? strerrorname_np(errno) : "?");
    else
        say(call, "%ld", result);
    if (broken_pipes)
        say(call, " SIGPIPE");
    broken_pipes = 0;
}

long argument(const struct call *call, int which) {
    return which < call->count ? call->arguments[which] : 0;
}

static long name_of(long name) { return name > 0 && name < NAMES ? name : 0; }

int descriptor(const struct call *call, int which) {
    int known = names[name_of(argument(call, which))];
    return known ? known : -1;
}

void say_descriptor(struct call *call, long name, int fd) {
    if (fd > 0 && name_of(name))
        names[name_of(name)] = fd;
    say_result(call, fd);
}

char *room(void) {
    static _Thread_local char *memory;
    if (!memory)
        memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory;
}

// Parses a number; a name (`s3`, `a1`), whose value is its number; or words joined by `|`.
static long value_of(const char *text) {
    long value = 0;
    if ((text[0] == 's' || text[0] == 'a') && text[1] >= '0' && text[1] <= '9')
        return atol(text + 1);
    if ((text[0] >= '0' && text[0] <= '9') || text[0] == '-')
        return atol(text);
    while (*text) {
        size_t length = strcspn(text, "|");
        long number = 0;
        if (number_of_word(text, length, &number))
            value |= number;
        text += length + (text[length] == '|');
    }
    return value;
}

static void parse(struct call *call, char *arguments) {
    char *rest = NULL;
    for (char *word = strtok_r(arguments, " ", &rest); word && call->count < ARGUMENTS;
         word = strtok_r(NULL, " ", &rest))
        call->arguments[call->count++] = value_of(word);
}

static void execute(int number) {
    struct actor *me = &shared->actors[number];
    const struct operation *tables[] = {socket_operations, data_operations, waiting_operations,
                                        process_operations};
    char line[LINE_BYTES];
    memcpy(line, me->line, sizeof line);
    char *arguments = line + strcspn(line, " ");
    if (*arguments)
        *arguments++ = 0;
    struct call call = {.seed = me->line_number, .actor = number, .result = me->result};
    parse(&call, arguments);
    for (int table = 0; table < 4; table++) {
        for (const struct operation *each = tables[table]; each->name; each++) {
            if (strcmp(each->name, line) != 0)
                continue;
            errno = 0;
            each->run(&call);
            return;
        }
    }
    say(&call, "no such operation: %s", line);
}

static void end_line(struct actor *me) {
    atomic_store(&me->ended, atomic_load(&me->given));
    wake(&me->ended);
}

void be_actor(int number) {
    struct actor *me = &shared->actors[number];
    signal(SIGPIPE, note_broken_pipe);
    struct sigaction action = {.sa_handler = do_nothing};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, NULL);
    settle(number);
    me->thread = syscall(SYS_gettid);
    atomic_store(&me->process, getpid());
    wake(&me->process);
    for (;;) {
        int ended = atomic_load(&me->ended);
        wait_while(&me->given, ended, 1000);
        if (atomic_load(&me->given) == ended)
            continue;
        atomic_store(&me->begun, atomic_load(&me->given));
        execute(number);
        settle(number);
        end_line(me);
    }
}

void join_as_actor(char **arguments) {
    int number = atoi(arguments[3]);
    int object = open(arguments[2], O_RDWR);
    map_shared(object);
    close(object);
    struct actor *me = &shared->actors[number];
    memcpy(names, me->names, sizeof names);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (me->process) {
        // It was this actor before its exec.
        strcpy(me->result, "executed");
        settle(number);
        end_line(me);
    }
    be_actor(number);
}

// Reserves a place for an actor; returns NULL if there is none.
static struct actor *prepare(struct call *call) {
    int number = argument(call, 0);
    if (number <= 0 || number >= ACTORS || shared->actors[number].process) {
        say(call, "no place");
        return NULL;
    }
    struct actor *it = &shared->actors[number];
    memcpy(it->names, names, sizeof names);
    return it;
}

static void await_begin(struct call *call, struct actor *it) {
    wait_while(&it->process, 0, PATIENCE_MS);
    say(call, it->process ? "begun" : "did not begin");
}

static void do_fork(struct call *call) {
    struct actor *it = prepare(call);
    if (!it)
        return;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        be_actor(argument(call, 0));
    }
    await_begin(call, it);
}

static void *be_thread(void *number) {
    be_actor((int)(intptr_t)number);
    return NULL;
}

static void do_thread(struct call *call) {
    pthread_t thread;
    struct actor *it = prepare(call);
    if (!it)
        return;
    if (pthread_create(&thread, NULL, be_thread, (void *)(intptr_t)argument(call, 0)) == 0)
        await_begin(call, it);
}

// Arguments with which this executable becomes an actor.
static char **as_actor(int number) {
    static char object[40], actor[12];
    static char *arguments[] = {"actor", "--actor", object, actor, NULL};
    snprintf(object, sizeof object, "/proc/%d/fd/%d", shared->controller, OBJECT_DESCRIPTOR);
    snprintf(actor, sizeof actor, "%d", number);
    return arguments;
}

// Executes this executable anew: with the library if it is loaded, or without it if `1` is given.
static void do_exec(struct call *call) {
    memcpy(shared->actors[call->actor].names, names, sizeof names);
    if (argument(call, 0))
        unsetenv("LD_PRELOAD");
    execve("/proc/self/exe", as_actor(call->actor), environ);
    say_result(call, -1);
}

static void do_spawn(struct call *call) {
    struct actor *it = prepare(call);
    if (!it)
        return;
    pid_t child;
    int error =
        posix_spawn(&child, "/proc/self/exe", NULL, NULL, as_actor(argument(call, 0)), environ);
    if (error)
        say(call, "%s", strerrorname_np(error));
    else
        await_begin(call, it);
}

static void do_exit(struct call *call) {
    (void)call;
    _exit(0);
}

static void do_pass(struct call *call) {
    int fd = descriptor(call, 1), to = argument(call, 0) % ACTORS;
    say_result(call, pass(MAIL_DESCRIPTOR + 2 * to, &fd, 1));
}

static void do_take(struct call *call) {
    int own = MAIL_DESCRIPTOR + 2 * call->actor + 1, fd = -1;
    if (poll(&(struct pollfd){own, POLLIN, 0}, 1, 20) != 1)
        say(call, "nothing");
    else if (take(own, &fd, 1) == 1)
        say_descriptor(call, argument(call, 0), fd);
    else
        say(call, "no descriptor");
}

static void do_sleep(struct call *call) { sleep_ms(argument(call, 0)); }

// One byte of a dialogue, in which connections are upgraded.
static void do_ping(struct call *call) {
    say_result(call, send(descriptor(call, 0), "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static void do_pong(struct call *call) {
    char byte;
    int fd = descriptor(call, 0);
    ssize_t count = -1;
    // With a low-water mark, one byte does not wake a reader: so this does not wait forever.
    for (int64_t deadline = now_ms() + 500; count < 0 && now_ms() < deadline;) {
        count = recv(fd, &byte, 1, MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN)
            break;
        if (count < 0)
            poll(&(struct pollfd){fd, POLLIN, 0}, 1, 5);
    }
    say_result(call, count);
    shared->actors[call->actor].is_accelerated =
        freeport_is_accelerated && freeport_is_accelerated(fd) == 1;
}

const struct operation process_operations[] = {
    {"fork", do_fork},   {"thread", do_thread}, {"exec", do_exec}, {"spawn", do_spawn},
    {"exit", do_exit},   {"pass", do_pass},     {"take", do_take}, {"sleep", do_sleep},
    {"ping", do_ping},   {"pong", do_pong},     {NULL, NULL},
};
