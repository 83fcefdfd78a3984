# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A process that was forked before it had a socket, whose children are killed before they run: its
connection is still accelerated."""
import ctypes
import os
import signal
import sys
import time

# Limit against hangs, in seconds.
PATIENCE = 60

if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

# This creates an epoll instance, at which the library notices the process.
import socket

listener = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    connection = listener.accept()[0]
    listener.close()
    while data := connection.recv(64):
        connection.sendall(data)
    os._exit(0)
connection = socket.create_connection(listener.getsockname())
listener.close()

# On the processor of their parent, they are killed before they run.
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(20):
    child = os.fork()
    if child == 0:
        signal.pause()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

is_accelerated = ctypes.CDLL(None).freeport_is_accelerated
late = time.monotonic() + PATIENCE
while not is_accelerated(connection.fileno()):
    assert time.monotonic() < late, "it stays in the kernel"
    connection.sendall(b"x")
    assert connection.recv(64) == b"x"
print("accelerated")
