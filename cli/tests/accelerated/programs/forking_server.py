# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An echo server that waits for all clients with one epoll instance, and forks in several ways at
the request of a client."""
import os
import select
import signal
import socket
import sys


def fork(then):
    """Forks a child that runs an action and exits."""
    child = os.fork()
    if child == 0:
        then()
        os._exit(0)
    return child


def ends(_):
    """The child exits at once."""
    child = fork(lambda: None)
    return b"ended %d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def closes(_):
    """The child closes all descriptors, and keeps running."""
    def close_all():
        streams[listener.fileno()] = listener
        chosen.close()
        for stream in streams.values():
            stream.close()
        signal.pause()
    children.append(fork(close_all))
    return b"closed by a child"


def leaves(stream):
    """The child takes the connection over, without removing it from the epoll instance."""
    def go_on():
        stream.sendall(b"a child has it")
        while asked := stream.recv(64):
            stream.sendall(asked)
    fork(go_on)
    del streams[stream.fileno()]
    stream.close()


def begins_anew(_):
    """Creates another epoll instance."""
    global chosen
    chosen.close()
    chosen = select.epoll()
    for number in [listener.fileno(), *streams]:
        chosen.register(number, select.EPOLLIN)
    return b"another set"


WAYS = {b"ends": ends, b"closes": closes, b"leaves": leaves, b"begins anew": begins_anew}


def answer(stream):
    try:
        asked = stream.recv(64, socket.MSG_DONTWAIT)
    except BlockingIOError:
        # An event of a connection that a child holds and that had this descriptor before.
        return
    if not asked:
        chosen.unregister(stream)
        del streams[stream.fileno()]
        stream.close()
    elif given := WAYS[asked](stream) if asked in WAYS else asked:
        stream.sendall(given)


def stop(*_):
    for child in children:
        os.kill(child, signal.SIGKILL)
    os._exit(0)


children = []
streams = {}
signal.signal(signal.SIGTERM, stop)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
chosen = select.epoll()
chosen.register(listener, select.EPOLLIN)
while True:
    for number, _ in chosen.poll():
        if number == listener.fileno():
            new, _ = listener.accept()
            streams[new.fileno()] = new
            chosen.register(new, select.EPOLLIN)
        elif number in streams:
            answer(streams[number])
