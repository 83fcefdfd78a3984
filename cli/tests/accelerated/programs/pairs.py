# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Forked children with one end of a socket pair each, which echo data and sometimes a
descriptor."""
import hashlib
import os
import socket

CHILDREN = 4


def receive(connection, size):
    got = bytearray()
    while len(got) < size:
        data = connection.recv(size - len(got))
        assert data, "it has ended"
        got += data
    return bytes(got)


def serve(connection):
    while head := connection.recv(8, socket.MSG_WAITALL):
        data = receive(connection, int.from_bytes(head, "big"))
        connection.sendall(hashlib.sha256(data).digest())
        connection.sendall(data)
    reading, writing = os.pipe()
    os.write(writing, b"done")
    socket.send_fds(connection, [b"last"], [reading])


def ask(connection, rounds):
    for number in range(rounds):
        data = os.urandom(1 + number * 7919 % 50_000)
        connection.sendall(len(data).to_bytes(8, "big"))
        connection.sendall(data)
        assert receive(connection, 32) == hashlib.sha256(data).digest(), "bytes have changed"
        assert receive(connection, len(data)) == data, "bytes have changed"
    connection.shutdown(socket.SHUT_WR)
    words, descriptors, _, _ = socket.recv_fds(connection, 4, 1)
    assert words == b"last" and os.read(descriptors[0], 10) == b"done"
    assert connection.recv(1) == b"", "the end comes"


for _ in range(CHILDREN):
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        serve(theirs)
        os._exit(0)
    theirs.close()
    ask(ours, 100)
    assert os.waitpid(child, 0)[1] == 0, "the child is well"
