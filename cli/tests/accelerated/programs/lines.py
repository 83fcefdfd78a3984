# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Servers for shells: one sends numbered lines, the first of them slowly until the connection is
accelerated, if that is expected; the other one is an echo server."""
import socket
import sys
import threading
import time

import numbered

LINES = b"".join(b"line %06d\n" % number for number in range(100_000))
PAUSE = 0.001


def tell(connection, leaves):
    late = time.monotonic() + numbered.PATIENCE
    for count in range(1_000_000):
        if count >= 50 and (not leaves or numbered.is_accelerated(connection)):
            break
        if time.monotonic() > late:
            raise TimeoutError("it does not leave the kernel")
        connection.sendall(b"before\n")
        # The reader receives each line separately.
        time.sleep(PAUSE)
    connection.sendall(b"now\n" + LINES)
    # Unread data of a closed connection is delivered to each process that inherited it.
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def serve(connection, role, leaves):
    with connection:
        if role == "tell":
            tell(connection, leaves)
        else:
            numbered.give_back(connection)


role, leaving = sys.argv[1:]
with numbered.listen() as listener:
    while True:
        connection, _ = listener.accept()
        arguments = [connection, role, leaving == "leaves"]
        threading.Thread(target=serve, args=arguments, daemon=True).start()
