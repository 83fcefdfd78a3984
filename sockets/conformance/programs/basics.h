// SPDX-License-Identifier: Apache-2.0 OR MIT
// Functions shared by cases and the interpreter of random programs.
#ifndef CONFORMANCE_BASICS_H
#define CONFORMANCE_BASICS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Exported by the library: 1 if both directions of the connection are in rings.
int freeport_is_accelerated(int fd) __attribute__((weak));
// Exported by the library: number of connections of this process made without the kernel.
unsigned long freeport_reused_connections(void) __attribute__((weak));

// Names of the events in a mask of poll or epoll.
const char *events_text(unsigned events);

// Time limit for an event that must happen. Only a hang reaches it, even on a loaded machine.
enum { PATIENCE_MS = 120000 };

void sleep_ms(long milliseconds);
int64_t now_ms(void);

// Fills memory with bytes that depend on the seed and their position.
void fill(void *bytes, size_t length, uint64_t seed);
uint64_t checksum(uint64_t so_far, const void *bytes, size_t length);
#define CHECKSUM_BEGIN 14695981039346656037ULL

// Sends descriptors over a Unix socket, with one byte. Returns the result of `sendmsg`.
ssize_t pass(int over, const int *fds, int count);
// Receives at most `room` descriptors; returns their number, or -1.
int take(int over, int *fds, int room);

#endif
