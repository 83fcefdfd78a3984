// SPDX-License-Identifier: Apache-2.0 OR MIT
// A case is a conversation of two processes over one TCP or Unix connection. Each side records its
// calls and their results in a transcript. The harness runs every case plain and accelerated: the
// transcripts must be equal, so they contain nothing that changes from run to run.
//
// A program has several cases. `program --list` lists them with their flags, `program NAME` runs
// one: it forks the server and the client, and prints both transcripts when both have ended.
#ifndef CONFORMANCE_CASE_H
#define CONFORMANCE_CASE_H

#include "basics.h"

enum side { SERVER, CLIENT };

enum {
    COLD = 0,        // The case gets the connection as it is.
    WARM = 1,        // The connection is upgraded first, if anything upgrades it.
    ACROSS = 2,      // It begins cold, and the case reports by `prove` that it was upgraded.
    V6 = 4,          // Also run over IPv6.
    RACE = 8,        // Runs differ, transcripts do not: worth repeating.
    MIXED = 16,      // Also run with only one of the two sides accelerated.
    BARE = 32,       // No connection: the server gets the listening socket, the client -1.
    TCP = 64,        // TCP only: not run over Unix sockets.
    UNIX = 128,      // Unix sockets only: not run over TCP.
    REUSED = 256,    // Connections are repeated, and `prove_again` reports that one was made
                     // without the kernel. The library tries that from the second one on.
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
// Adds the return value of a call, with the name of the error.
void note_result(const char *call, long result);
// Adds the number of bytes and their checksum, and the bytes themselves if they are few letters.
void note_bytes(const char *what, const void *bytes, size_t length);

// Makes a call, and adds it to the transcript as written in the source. Returns its result.
#define TRY(call)                                                                                  \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        long outcome_ = (long)(call);                                                              \
        note_result(#call, outcome_);                                                              \
        outcome_;                                                                                  \
    })
// As `TRY`, where only success or failure is of interest, such as with descriptors.
#define TRY_OK(call)                                                                               \
    __extension__({                                                                                \
        errno = 0;                                                                                 \
        long outcome_ = (long)(call);                                                              \
        note_result(#call, outcome_ < 0 ? -1 : 0);                                                 \
        outcome_;                                                                                  \
    })

// Adds the present events of a descriptor, polled for all events.
void note_poll(const char *what, int fd);
// Adds the events that epoll reports within this time, sorted by their data, since their order is
// unspecified. Returns their number.
int note_events(const char *what, int epoll, int milliseconds);
// Attaches a process to the transcript of the side that started it.
void join_case(enum side side, const char *object);
// Path of the transcripts for such a process.
const char *case_object(void);
// Ends the side with a line in the transcript if `condition` is false.
void require(int condition, const char *what);

// Upgrades a connection by a dialogue that is not in the transcript. Both sides have to call it. If
// nothing upgrades it, it ends after some rounds.
void warm_up(int fd, enum side side);
// Reports to the harness if the connection is upgraded now.
int prove(int fd, enum side side);
// Returns whether both sides have reported the upgrade, or never will. For cases that do other
// things in the meantime.
int is_as_upgraded_as_it_will_be(int fd, enum side side);
// Reports to the harness that a connection was made without the kernel.
void has_reused(enum side side);
// Continues a dialogue until `prove` succeeds or a deadline, for connections that begin cold.
void prove_soon(int fd, enum side side);

// `reach` announces that this side has reached a point; `await_peer` waits until the other side
// has. Points are ascending numbers. No descriptor is involved.
void reach(enum side side, int point);
void await_peer(enum side side, int point);
// Both in one call: after it, both sides have reached the point.
void meet(enum side side, int point);

// Waits until poll reports all of `events`, or for `PATIENCE_MS`.
void await_events(int fd, short events);
// Waits until this many bytes can be read, or for `PATIENCE_MS`.
void await_bytes(int fd, int bytes);

// Address of the case's listening socket.
const struct sockaddr *address(socklen_t *length);
int family(void);
// Whether both ends were made by `socketpair`.
int is_pair(void);
// Makes a new connection to the listening socket.
int connect_there(void);
// Makes a listener on a new port or name, of the case's family; stores its address if requested.
int listen_here(struct sockaddr_storage *where, socklen_t *length);

// Sends or receives everything, in as many calls as needed; returns the number of bytes.
size_t send_all(int fd, const void *bytes, size_t length);
size_t receive_all(int fd, void *bytes, size_t length);
// Writes without blocking until nothing fits; returns the number of bytes.
size_t fill_up(int fd);
// Reads without blocking until nothing is there; returns the number of bytes.
size_t drain(int fd);
void set_blocking(int fd, int blocking);

// Adds the exit status of a process.
void note_status(const char *what, int status);
// Waits for a child, and adds its exit status.
void note_end(const char *what, pid_t child);

// Defines a program that a case starts or executes: this executable with other arguments. Its body
// sees `side` and `fd`, and writes to the transcript of that side.
#define PROGRAM(name)                                                                              \
    static void program_##name(enum side side, int fd);                                            \
    static struct test_case that_##name = {#name, 0, program_##name, NULL};                        \
    __attribute__((constructor)) static void add_##name(void) { add_program(&that_##name); }       \
    static void program_##name(enum side side, int fd)

void add_program(struct test_case *added);
// Path of this executable.
char *own_path(void);
// Path of the statically linked variant, if there is one, else of this executable.
char *static_path(void);
// Arguments for that program, which has the connection under this number.
char **as_program(const char *name, enum side side, int fd);
// Runs the program that such arguments name, and exits.
void run_program(char **arguments);

// Upgrades a connection again that has returned to the kernel, by a dialogue like `warm_up`; adds a
// line if that fails.
void upgrade_again(int fd, enum side side);
// Add a line if the connection is upgraded although it must not be, or the reverse.
void check_returned(int fd);
void check_upgraded(int fd);

// Handing a connection over, step by step. First both sides send bytes that stay unread.
void begin_handing(int fd, enum side side);
// The receiver reads those bytes and more, and answers. The program `heir` does this.
void be_heir(int fd, enum side side);
// The other side talks to the present holder.
void talk_to_heir(int fd, enum side side);
// The process that handed the connection over, and still holds it, continues with the other side.
void go_on_behind_heir(int fd, enum side side);

// Send and receive a descriptor, which must succeed. Nothing is noted: the receiver may already be
// writing to the transcript.
void give(int over, int fd);
int taken(int over);
// Makes a pair of Unix sockets for that.
void new_pair(int pair[2]);
// Forks a child that closes its inherited connection, receives it over `over`, and runs `run`.
pid_t start_heir(int over, int fd, enum side side, void (*run)(int fd, enum side side));
// All of that, until the child has ended. The sender closes the connection immediately, or keeps
// it.
enum after { CLOSES, KEEPS };
void pass_to_child(int fd, enum side side, void (*run)(int fd, enum side side),
                   enum after after);
// Records of four bytes, sent back and forth, under one descriptor number and the other.
void ping_all(int fd, int count);
void answer_by(const int numbers[2], int count);

#endif
