# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Two processes with a connection that stays in the kernel for a given reason, or returns there;
prints the end to ask about, and keeps it open."""
import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time

MUCH = 100
# Limit against hangs, in seconds.
PATIENCE = 60
OURS = ctypes.CDLL(None, use_errno=True)
PAST_LIBRARY = ctypes.CDLL("libc.so.6", use_errno=True)
SYS_IO_URING_SETUP = 425
PR_SET_SECCOMP, FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
CLONE_NEWNET = 0x40000000
SEND_ALLOWED = struct.pack("HBBI", 6, 0, 0, 0x7FFF0000)


def say(connection):
    print(f"ask {os.getpid()}:{connection.fileno()}", flush=True)


def stay():
    while True:
        signal.pause()


def cannot(why):
    print(f"cannot: {why}", flush=True)
    sys.exit(0)


def echo(connection):
    while data := connection.recv(4096):
        connection.sendall(data)


def pour(connection):
    for _ in range(MUCH):
        connection.sendall(b"x")
        time.sleep(0.001)
    stay()


def talk(connection, rounds=MUCH, data=b"x"):
    for _ in range(rounds):
        connection.sendall(data)
        assert connection.recv(len(data), socket.MSG_WAITALL) == data


def is_past_kernel(connection):
    return OURS.freeport_is_accelerated(connection.fileno()) != 0


def talk_past_kernel(connection):
    """Waits for the decision of the monitor."""
    late = time.monotonic() + PATIENCE
    while not is_past_kernel(connection):
        talk(connection, 1)
        assert time.monotonic() < late, "it stays in the kernel"
    talk(connection)


def tcp(peer=echo, port=0):
    """A connection to another process, which runs an action on its end."""
    listener = socket.create_server(("127.0.0.1", port))
    if os.fork() == 0:
        connection = listener.accept()[0]
        listener.close()
        peer(connection)
        os._exit(0)
    connection = socket.create_connection(listener.getsockname())
    listener.close()
    return connection


def unix(peer=echo):
    here, there = socket.socketpair()
    if os.fork() == 0:
        here.close()
        peer(there)
        os._exit(0)
    there.close()
    return here


def said(connection):
    say(connection)
    stay()


def young():
    connection = tcp()
    talk(connection, 2)
    said(connection)


def used():
    """Enough operations for other connections to be accelerated."""
    connection = tcp()
    talk(connection)
    said(connection)


def accelerated():
    connection = tcp()
    talk_past_kernel(connection)
    said(connection)


def leaving():
    """Each end does eight operations: both ends are claimed, and do no further operation."""
    connection = tcp()
    talk(connection, 4)
    said(connection)


def urgent():
    connection = tcp()
    talk_past_kernel(connection)
    connection.send(b"!", socket.MSG_OOB)
    said(connection)


def urgent_before_it_leaves():
    connection = tcp()
    connection.send(b"!", socket.MSG_OOB)
    talk(connection)
    said(connection)


def shared():
    connection = tcp()
    if os.fork() == 0:
        stay()
    talk(connection)
    said(connection)


def standard_stream():
    connection = tcp()
    talk_past_kernel(connection)
    os.dup2(connection.fileno(), 0)
    said(connection)


def stream_of_the_library():
    connection = tcp()
    OURS.fdopen(connection.fileno(), b"r+")
    talk(connection)
    said(connection)


def past_the_library():
    connection = tcp()
    assert PAST_LIBRARY.send(connection.fileno(), b"x", 1, 0) == 1
    assert connection.recv(1) == b"x"
    talk(connection)
    said(connection)


def with_descriptors():
    connection = unix()
    talk_past_kernel(connection)
    socket.send_fds(connection, [b"x"], [1])
    said(connection)


def with_credentials():
    connection = unix()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    talk(connection)
    said(connection)


def in_a_set_that_is_passed():
    connection = tcp()
    events = select.epoll()
    events.register(connection, select.EPOLLIN)
    talk_past_kernel(connection)
    here, _there = socket.socketpair()
    socket.send_fds(here, [b"x"], [events.fileno()])
    said(connection)


def give_up_calls():
    program = ctypes.create_string_buffer(SEND_ALLOWED)
    about = struct.pack("HxxxxxxP", 1, ctypes.addressof(program))
    zero = ctypes.c_ulong(0)
    assert OURS.prctl(PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) == 0
    if OURS.prctl(PR_SET_SECCOMP, ctypes.c_ulong(FILTER), about, zero, zero) != 0:
        cannot("filters of system calls")


def confined():
    connection = tcp()
    talk_past_kernel(connection)
    give_up_calls()
    said(connection)


def confined_before():
    give_up_calls()
    connection = tcp()
    talk(connection)
    said(connection)


def make_ring():
    about = ctypes.create_string_buffer(120)
    if OURS.syscall(SYS_IO_URING_SETUP, 4, about) < 0:
        cannot("io_uring")


def with_ring():
    connection = tcp()
    make_ring()
    talk(connection)
    said(connection)


def with_ring_later():
    connection = tcp()
    talk_past_kernel(connection)
    make_ring()
    said(connection)


def half_shut():
    connection = tcp(pour)
    connection.shutdown(socket.SHUT_WR)
    for _ in range(MUCH):
        assert connection.recv(1) == b"x"
    said(connection)


def spliced():
    connection = tcp()
    reading, writing = os.pipe()
    for _ in range(MUCH):
        connection.sendall(b"x")
        assert os.splice(connection.fileno(), writing, 1) == 1
        assert os.read(reading, 1) == b"x"
    said(connection)


def paced():
    connection = tcp()
    talk_past_kernel(connection)
    so_max_pacing_rate = 47
    connection.setsockopt(socket.SOL_SOCKET, so_max_pacing_rate, 1 << 30)
    said(connection)


def low_water():
    connection = tcp()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 2)
    talk(connection, data=b"xx")
    said(connection)


def handed_on():
    connection = tcp()
    talk_past_kernel(connection)
    here, _there = socket.socketpair()
    socket.send_fds(here, [b"x"], [connection.fileno()])
    said(connection)


def leave_something(connection):
    while not is_past_kernel(connection):
        connection.sendall(connection.recv(1))
    connection.sendall(b"unread")
    stay()


def peer_away():
    """As a user without access to its peer, which only sleeps."""
    if os.getuid() != 0:
        cannot("another user")
    connection = tcp(leave_something)
    os.setuid(65534)
    said_back = b"x"
    while said_back == b"x":
        connection.sendall(b"x")
        said_back = connection.recv(1)
    here, _there = socket.socketpair()
    socket.send_fds(here, [b"x"], [connection.fileno()])
    said(connection)


def uncounted():
    connection = unix()
    talk(connection, 2)
    connection.set_inheritable(True)
    os.execv(sys.executable, [sys.executable, __file__, "go on", str(connection.fileno())])


def go_on(number):
    connection = socket.socket(fileno=int(number))
    talk(connection)
    said(connection)


def same_process():
    listener = socket.create_server(("127.0.0.1", 0))
    here = socket.create_connection(listener.getsockname())
    there = listener.accept()[0]
    for _ in range(MUCH):
        here.sendall(b"x")
        there.sendall(there.recv(1))
        here.recv(1)
    said(here)


def elsewhere():
    """By an address of this machine other than that of the peer."""
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        probe.connect(("192.0.2.1", 9))
    except OSError:
        cannot("no way to other machines")
    listener = socket.create_server((probe.getsockname()[0], 0))
    if os.fork() == 0:
        echo(listener.accept()[0])
        os._exit(0)
    connection = socket.create_connection(listener.getsockname(), source_address=("127.0.0.1", 0))
    talk(connection)
    said(connection)


def other_namespace():
    if OURS.unshare(CLONE_NEWNET) != 0:
        cannot("namespaces of the network")
    connection = unix()
    talk(connection)
    said(connection)


def plain_peer():
    listener = socket.create_server(("127.0.0.1", 0))
    if os.fork() == 0:
        listener.set_inheritable(True)
        plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        arguments = [sys.executable, __file__, "accept", str(listener.fileno())]
        os.execve(sys.executable, arguments, plain)
    connection = socket.create_connection(listener.getsockname())
    talk(connection)
    said(connection)


def accept(number):
    echo(socket.socket(fileno=int(number)).accept()[0])
    stay()


def of_port(port):
    """Keeps talking, since the connection returns only at an operation."""
    connection = tcp(port=int(port))
    talk(connection)
    say(connection)
    while True:
        talk(connection, 1)
        time.sleep(0.01)


def many_peers(room):
    """One process and one more than there is room for. Each has what it gets before the next one
    asks: those that wait have bounds of their own."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(room) + 1)]
    for listener in listeners:
        if os.fork() == 0:
            echo(listener.accept()[0])
            os._exit(0)
    *connections, last = [socket.create_connection(it.getsockname()) for it in listeners]
    for connection in connections:
        talk_past_kernel(connection)
    talk(last)
    said(last)


globals()[sys.argv[1].replace(" ", "_")](*sys.argv[2:])
