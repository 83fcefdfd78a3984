// SPDX-License-Identifier: Apache-2.0 OR MIT
// A program of steps is a text. Each line is a call that one of several actors makes: processes, or
// threads of them. A controller lets them act one after the other and records the result of each
// call, so that two runs of the same text can be compared line by line.
//
// Descriptors have names (`s3`) besides their numbers; each process has its own table of them.
// `actor.c` defines the parts of a line; the generator is responsible for lines that make sense:
// here any text has a result, so that lines can be removed from a program.
#ifndef INTERPRETER_STEPS_H
#define INTERPRETER_STEPS_H

#include "../programs/basics.h"

#include <sched.h>
#include <stdatomic.h>

enum { ACTORS = 8, NAMES = 64, ARGUMENTS = 20, RESULT_BYTES = 1500, LINE_BYTES = 240 };

// Numbers of descriptors that are not the program's own.
enum { OBJECT_DESCRIPTOR = 900, MAIL_DESCRIPTOR = 800, MARKER_DESCRIPTOR = 850 };

// Shared state of the controller and an actor.
struct actor {
    // Number of lines it was given, has started, and has finished. The first and the last are
    // waited for as futexes.
    atomic_int given, begun, ended;
    // 0: there is no such actor, or no longer.
    atomic_int process, thread;
    int line_number, is_accelerated;
    char line[LINE_BYTES];
    char result[RESULT_BYTES];
    // Names of its process, during an exec.
    int names[NAMES];
};

struct shared {
    int controller;
    // Number of connections accepted over kept streams.
    atomic_int reused;
    cpu_set_t cores;
    // Whether all actors run on one core.
    atomic_int together;
    // Addresses of bound sockets, by name.
    struct sockaddr_storage addresses[NAMES];
    socklen_t address_lengths[NAMES];
    // Number of bytes that filled a connection, by name.
    size_t amounts[NAMES];
    struct actor actors[ACTORS];
};

extern struct shared *shared;

// A call in progress.
struct call {
    long arguments[ARGUMENTS];
    int count;
    // Seed of the bytes to send.
    unsigned seed;
    // Actor that makes the call.
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

// Adds text to the result.
void say(struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Adds a return value, with the name of the error.
void say_result(struct call *call, long result);
// As `say_result`, for a call that returns a descriptor, which gets that name.
void say_descriptor(struct call *call, long name, int fd);
// Returns an argument, or 0.
long argument(const struct call *call, int which);
// Returns the descriptor that an argument names, or -1.
int descriptor(const struct call *call, int which);
// Buffer of this thread for sent and received bytes.
enum { ROOM = 1 << 20 };
char *room(void);

// Controller and actors.
void map_shared(int fd);
void wait_while(atomic_int *word, int value, int milliseconds);
void wake(atomic_int *word);
// Waits until everything the actor has sent has arrived: see `markers.c`.
void settle(int actor);
// Runs this thread as that actor until its process ends.
void be_actor(int number) __attribute__((noreturn));
// Starts this executable as an actor after an exec, with its earlier names.
void join_as_actor(char **arguments) __attribute__((noreturn));
// Looks up flags and options by name; the number is 0 for an unknown name.
int number_of_word(const char *word, size_t length, long *number);

#endif
