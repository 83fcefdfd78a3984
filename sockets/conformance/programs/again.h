// SPDX-License-Identifier: Apache-2.0 OR MIT
// Connections to the same listener, again and again: between processes that share a segment they
// are made without the kernel, and are no different.
#ifndef CONFORMANCE_AGAIN_H
#define CONFORMANCE_AGAIN_H

#include "case.h"

// The server makes a listener of its own, and tells the client over `fd` where it is. Then both
// make connections until the next ones are made without the kernel, if they ever are. Gives the
// listener, and -1 to the client.
int begin_again(int fd, enum side side);
// The same for a listener that is there already.
void warm_up_again(int fd, enum side side, int listener);

// Where the listener is.
const struct sockaddr *there_again(socklen_t *length);
// A socket that could be connected there, with such flags; and one that is.
int socket_again(int flags);
int connect_again(void);
// Both sides: the client connects, and then the server accepts. Gives the end.
int again(enum side side, int listener);
// So many connections were made by a child of this side.
void skip_again(int connections);
// Both sides come to the same point. Used instead of `meet`, which has numbers.
void meet_again(enum side side);

// What was made without the kernel until now proves nothing any more.
void forget_again(void);

// Sees whether one of the last connections was made without the kernel, and tells the harness.
void prove_again(enum side side);

// The client sends these words, the server notes them and answers.
void exchange(int fd, enum side side, const char *words);
// The client closes first, then the server, which sees the end.
void close_again(int fd, enum side side);

#endif
