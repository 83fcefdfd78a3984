// SPDX-License-Identifier: Apache-2.0 OR MIT
// A case is a conversation of two processes over one connection, of TCP or of Unix sockets. What
// each of them does and what it gets is its transcript. The harness runs every case plain and
// accelerated: the transcripts have to be the same, so nothing is in them that changes from run to
// run.
//
// A program has several cases. `program --list` names them, with their flags, `program NAME` runs
// one: it forks the server and the client, and prints both transcripts when both have ended.
#ifndef CONFORMANCE_CASE_H
#define CONFORMANCE_CASE_H

#include "basics.h"

enum side { SERVER, CLIENT };

enum {
    COLD = 0,        // The connection is handed to the case as it is.
    WARM = 1,        // The connection is upgraded first, if anything upgrades it.
    ACROSS = 2,      // It begins cold, and the case itself says by `prove` that it was upgraded.
    V6 = 4,          // Also run over IPv6.
    RACE = 8,        // Runs differ, transcripts do not: worth repeating.
    MIXED = 16,      // Also run with only one of both sides accelerated.
    BARE = 32,       // No connection: the server is given the listening socket, the client -1.
    TCP = 64,        // About TCP: not run over Unix sockets.
    UNIX = 128,      // About Unix sockets: not run over TCP.
    REUSED = 256,    // Connections are made again, and `prove_again` says that one was without the
                     // kernel. The library is told to try from the second one on.
};

struct test_case {
    const char *name;
    unsigned flags;
    void (*run)(enum side side, int fd);
    struct test_case *next;
};

void add_case(struct test_case *added);

// Defines a case; its body sees `side` and `fd`.
#define CASE(name, flags)                                                                          \
    static void name(enum side side, int fd);                                                      \
    static struct test_case case_of_##name = {#name, (flags), name, NULL};                         \
    __attribute__((constructor)) static void add_##name(void) { add_case(&case_of_##name); }       \
    static void name(enum side side, int fd)

// Adds a line to the transcript.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Adds what a call returned, with the name of the error.
void note_result(const char *call, long result);
// Adds how many bytes there are and their checksum, and what they say if they are few letters.
void note_bytes(const char *what, const void *bytes, size_t length);

// Makes a call, and adds it to the transcript as it is written in the source. Gives the result.
#define TRY(call)                                                                                  \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        long outcome_ = (long)(call);                                                              \
        note_result(#call, outcome_);                                                              \
        outcome_;                                                                                  \
    })
// The same where only success or failure is of interest, such as with descriptors.
#define TRY_OK(call)                                                                               \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        long outcome_ = (long)(call);                                                              \
        note_result(#call, outcome_ < 0 ? -1 : 0);                                                 \
        outcome_;                                                                                  \
    })

// Adds what poll says of a descriptor now, asked for everything.
void note_poll(const char *what, int fd);
// Adds what epoll says within so many milliseconds, sorted by the data of events: their order is
// nobody's promise. Gives their number.
int note_events(const char *what, int epoll, int milliseconds);
// Adds to the transcript of that side, in a process that was begun by it.
void join_case(enum side side, const char *object);
// Where such a process finds the transcripts.
const char *case_object(void);
// Ends the side with a line in the transcript if `condition` is false.
void require(int condition, const char *what);

// Brings a connection to where it is upgraded, by a dialogue that is not in the transcript. Both
// sides have to call it. Without anything that upgrades, it ends after some rounds.
void warm_up(int fd, enum side side);
// Tells the harness if the connection is upgraded now.
int prove(int fd, enum side side);
// Whether both sides have proved it, or will never be able to. For cases that go on meanwhile.
int is_as_upgraded_as_it_will_be(int fd, enum side side);
// Tells the harness that a connection was made without the kernel.
void has_reused(enum side side);
// Goes on with a dialogue until `prove` or a deadline, for connections that begin cold.
void prove_soon(int fd, enum side side);

// Says that this side has come to a point, and waits until the other one has. Points are numbers
// that rise. No descriptor is involved.
void reach(enum side side, int point);
void await_peer(enum side side, int point);
// Both at once: after it, both sides have come here.
void meet(enum side side, int point);

// Waits until poll gives all of `events`, or `PATIENCE_MS`.
void await_events(int fd, short events);
// Waits until so many bytes can be read, or `PATIENCE_MS`.
void await_bytes(int fd, int bytes);

// Where the listening socket of a case is.
const struct sockaddr *address(socklen_t *length);
int family(void);
// Whether both ends were made by `socketpair`.
int is_pair(void);
// A new connection to it.
int connect_there(void);
// A socket that listens on a port of its own, of the family of the case; where, if asked.
int listen_here(struct sockaddr_storage *where, socklen_t *length);

// Sends or receives all of it, as a stream does it; gives how much it was.
size_t send_all(int fd, const void *bytes, size_t length);
size_t receive_all(int fd, void *bytes, size_t length);
// Writes until nothing fits, without waiting; gives how much it was.
size_t fill_up(int fd);
// Reads until nothing is there, without waiting, and gives how much it was.
size_t drain(int fd);
void set_blocking(int fd, int blocking);

// Adds how a process ended.
void note_status(const char *what, int status);
// Waits for a child, and adds how it ended.
void note_end(const char *what, pid_t child);

// Defines a program that a case begins or becomes: this executable with other arguments. Its body
// sees `side` and `fd`, and notes in the transcript of that side.
#define PROGRAM(name)                                                                              \
    static void program_##name(enum side side, int fd);                                            \
    static struct test_case that_##name = {#name, 0, program_##name, NULL};                        \
    __attribute__((constructor)) static void add_##name(void) { add_program(&that_##name); }       \
    static void program_##name(enum side side, int fd)

void add_program(struct test_case *added);
// The path of this executable.
char *own_path(void);
// The same linked statically, where that can be had, else this executable.
char *static_path(void);
// The arguments with which it is that program, which has the connection under that number.
char **as_program(const char *name, enum side side, int fd);
// Runs the program that such arguments name, and ends.
void run_program(char **arguments);

// Brings a connection that has come back to where it is upgraded once more, by a dialogue as of
// `warm_up`; adds a line if it is not.
void upgrade_again(int fd, enum side side);
// Adds a line if the connection is upgraded although it cannot be, or the other way round.
void check_returned(int fd);
void check_upgraded(int fd);

// A connection that is handed on, step by step. First both sides send what nobody reads yet.
void begin_handing(int fd, enum side side);
// Who gets it reads that and more, and answers. The program `heir` does so.
void be_heir(int fd, enum side side);
// The other side talks to whoever has it now.
void talk_to_heir(int fd, enum side side);
// Who has handed it on, and has it still, goes on with the other side.
void go_on_behind_heir(int fd, enum side side);

// Sends and receives one, which has to succeed. Nothing is noted: whoever gets it may be at it
// already.
void give(int over, int fd);
int taken(int over);
// Two Unix sockets for that.
void new_pair(int pair[2]);
// Forks a child that takes a connection, having closed its own, and runs with it.
pid_t start_heir(int over, int fd, enum side side, void (*run)(int fd, enum side side));
// All of that, until the child has ended. Who has passed it closes it at once, or keeps it.
enum after { CLOSES, KEEPS };
void pass_to_child(int fd, enum side side, void (*run)(int fd, enum side side),
                   enum after after);
// Records of four bytes that come and go, by one number and by the other one.
void ping_all(int fd, int count);
void answer_by(const int numbers[2], int count);

#endif
