# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Servers with a process per connection: forked on demand, forked in advance, and a program that
inherited the listener."""
import os
import socket
import socketserver
import sys

import numbered


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        numbered.give_back(self.request)


class ForkingServer(socketserver.ForkingTCPServer):
    request_queue_size = 64


def fork_for_each():
    with ForkingServer(("127.0.0.1", 0), Handler) as server:
        numbered.announce("port", server.server_address[1])
        server.serve_forever()


def accept_for_ever(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            numbered.give_back(connection)


def fork_before():
    """Children that wait for connections concurrently."""
    listener = numbered.listen()
    children = [os.fork() for _ in range(3) if os.getpid() == MASTER]
    if os.getpid() != MASTER:
        accept_for_ever(listener)
    for child in children:
        os.waitpid(child, 0)


def inherit_listener():
    """A program that is started with a listener, as by systemd."""
    listener = numbered.listen()
    listener.set_inheritable(True)
    program = [sys.executable, __file__, "with listener", str(listener.fileno())]
    os.execv(sys.executable, program)


MASTER = os.getpid()
KINDS = {
    "fork for each": fork_for_each,
    "fork before": fork_before,
    "inherit": inherit_listener,
    "with listener": lambda: accept_for_ever(socket.socket(fileno=int(sys.argv[2]))),
}

if __name__ == "__main__":
    KINDS[sys.argv[1]]()
