# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Servers for shells: one tells numbered lines, the first of them bit by bit until the connection
has left the kernel, if it is to; another one gives back what it is sent."""
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
        # Whoever reads gets it by itself.
        time.sleep(PAUSE)
    connection.sendall(b"now\n" + LINES)
    # What is unread of who has closed is given to each heir anew.
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
