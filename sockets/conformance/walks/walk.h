// SPDX-License-Identifier: Apache-2.0 OR MIT
// A walk is a line of text: the kind of connection, and steps. Each step is one call at one end of
// the connection, `A.send=5` or `B.wr`. The two ends are in two processes, which take the steps in
// the order of the line. The trace contains the result of each step, and the state of both ends
// after it: the events that poll reports, and the number of readable bytes. No step blocks.
//
// Each connection is new, and is upgraded before the walk starts.
#ifndef WALKS_WALK_H
#define WALKS_WALK_H

#include "../programs/basics.h"

#include <sched.h>
#include <stdatomic.h>

enum { NAME_BYTES = 24, STEPS_MAX = 64, TRACE_BYTES = 16 << 20 };

struct step {
    int side; // 0: A, the end that was accepted; 1: B, the end that connected.
    char name[NAME_BYTES];
    int number;
};

struct walk {
    int is_unix, count;
    struct step steps[STEPS_MAX];
};

// One end of the connection of a walk.
struct end {
    int fd;
    // A set that contains this end, or -1.
    int set;
    // Seed of the next bytes to send.
    unsigned seed;
};

// Parses a line. Returns false if it is no walk.
int parse_walk(struct walk *walk, char *line);

// Adds to the trace, which both processes share. Only the process whose turn it is may do so.
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Adds a return value, with the name of the error, and SIGPIPE if that was raised.
void trace_result(long result);

// Makes the call of a step, and adds its result to the trace.
void take_step(struct end *end, const struct step *step);
// Adds the state of an end to the trace.
void trace_state(struct end *end);

// `prepare_connections` makes the listeners before the fork, `connect_end` one connection per walk.
void prepare_connections(void);
int connect_end(int side, int is_unix);

// `begin_turn` waits for this side's turn, `end_turn` passes the turn to the other side.
void begin_turn(int side);
void end_turn(void);

#endif
