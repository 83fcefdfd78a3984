// SPDX-License-Identifier: Apache-2.0 OR MIT
// Repeated connections to the same listener: between processes that share a segment they are made
// without the kernel, and must behave identically.
#ifndef CONFORMANCE_AGAIN_H
#define CONFORMANCE_AGAIN_H

#include "case.h"

// The server makes its own listener, and sends its address to the client over `fd`. Then both make
// connections until the next ones are made without the kernel, if ever. Returns the listener to the
// server, and -1 to the client.
int begin_again(int fd, enum side side);
// As `begin_again`, for an existing listener.
void warm_up_again(int fd, enum side side, int listener);

// Returns the address of the listener.
const struct sockaddr *there_again(socklen_t *length);
// Returns an unconnected socket for it, with these flags; `connect_again` returns a connected one.
int socket_again(int flags);
int connect_again(void);
// Both sides: the client connects, then the server accepts. Returns the end.
int again(enum side side, int listener);
// Skips connections that a child of this side has made.
void skip_again(int connections);
// Both sides meet at the same point. Replaces `meet`, which uses numbers.
void meet_again(enum side side);

// Resets the count of connections made without the kernel.
void forget_again(void);

// Checks whether one of the last connections was made without the kernel, and reports that to the
// harness.
void prove_again(enum side side);

// The client sends these words; the server notes and answers them.
void exchange(int fd, enum side side, const char *words);
// The client closes first, then the server, which sees the end of the stream.
void close_again(int fd, enum side side);

#endif
