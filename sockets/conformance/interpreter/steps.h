// SPDX-License-Identifier: Apache-2.0 OR MIT
// A program of steps is a text. Each line is a call that one of several actors makes: processes,
// or threads of them. A controller lets them act one after the other and writes down what each
// call gave, so that two runs of the same text can be compared line by line.
//
// Descriptors have names (`s3`) besides their numbers; each process has its own table of them.
// What a line is made of, `actor.c` says; which lines make sense is the generator's concern: here
// any text has a result, so that lines can be taken out of a program.
#ifndef INTERPRETER_STEPS_H
#define INTERPRETER_STEPS_H

#include "../programs/basics.h"

#include <sched.h>
#include <stdatomic.h>

enum { ACTORS = 8, NAMES = 64, ARGUMENTS = 20, RESULT_BYTES = 1500, LINE_BYTES = 240 };

// Where descriptors lie that are not the program's own.
enum { OBJECT_DESCRIPTOR = 900, MAIL_DESCRIPTOR = 800, MARKER_DESCRIPTOR = 850 };

// What the controller and an actor tell each other.
struct actor {
    // Lines that it was given, that it has begun, and that it has ended. The first and the last
    // are waited for as futexes.
    atomic_int given, begun, ended;
    // 0: there is no such actor (any more).
    atomic_int process, thread;
    int line_number, is_accelerated;
    char line[LINE_BYTES];
    char result[RESULT_BYTES];
    // The names of its process, while that becomes another program.
    int names[NAMES];
};

struct shared {
    int controller;
    // Connections that were accepted over streams that were kept.
    atomic_int reused;
    cpu_set_t cores;
    // All actors on one core.
    atomic_int together;
    // Where sockets were bound, by the names of those.
    struct sockaddr_storage addresses[NAMES];
    socklen_t address_lengths[NAMES];
    // Bytes that were sent until nothing fitted.
    size_t amounts[NAMES];
    struct actor actors[ACTORS];
};

extern struct shared *shared;

// A call, as it is being made.
struct call {
    long arguments[ARGUMENTS];
    int count;
    // Seed of what is sent.
    unsigned seed;
    // The actor that makes it.
    int actor;
    char *result;
    size_t used;
};

struct operation {
    const char *name;
    void (*run)(struct call *call);
};

extern const struct operation socket_operations[], data_operations[], waiting_operations[],
    process_operations[];

// Adds to the result.
void say(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Adds what a call returned, with the name of the error.
void say_result(struct call *call, long result);
// The same for a call that gives a descriptor, which then has that name.
void say_descriptor(struct call *call, long name, int fd);
// An argument, or 0.
long argument(const struct call *call, int which);
// The descriptor that an argument names, or -1.
int descriptor(const struct call *call, int which);
// Memory for bytes to send and to receive, of this thread.
enum { ROOM = 1 << 20 };
char *room(void);

// Controller and actors.
void map_shared(int fd);
void wait_while(atomic_int *word, int value, int milliseconds);
void wake(atomic_int *word);
// Waits until what the actor has sent has arrived: see `markers.c`.
void settle(int actor);
// Lets this thread be that actor until its process ends.
void be_actor(int number) __attribute__((noreturn));
// Begins this executable anew as an actor: with the names that it had.
void join_as_actor(char **arguments) __attribute__((noreturn));
// Flags and options by their names; 0 if there is none.
int number_of_word(const char *word, size_t length, long *number);

#endif
