# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`serve PORT` answers each of its connections with what it gets; `ask PORT BYTES PAUSE` sends so
much and waits for the answer, for ever, with a pause of so many seconds in between."""
import contextlib
import socket
import sys
import threading
import time


def answer(connection):
    # A client that is killed may leave something unread.
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
