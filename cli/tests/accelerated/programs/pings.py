# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`serve PORT` is an echo server; `ask PORT BYTES PAUSE` repeatedly sends BYTES bytes and waits for
their echo, with a pause of PAUSE seconds in between."""
import contextlib
import socket
import sys
import threading
import time


def answer(connection):
    # A killed client may leave data unread.
    with connection, contextlib.suppress(ConnectionError):
        while data := connection.recv(65536):
            connection.sendall(data)


role, port = sys.argv[1], int(sys.argv[2])
if role == "serve":
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()
connection = socket.create_connection(("127.0.0.1", port))
print("fd", connection.fileno(), flush=True)
data, pause = b"x" * int(sys.argv[3]), float(sys.argv[4])
while True:
    connection.sendall(data)
    connection.recv(len(data), socket.MSG_WAITALL)
    time.sleep(pause)
