# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An echo server of one connection that passes the connection to another process, which continues;
there is a function for each way to do that."""
import multiprocessing
import multiprocessing.connection
import multiprocessing.reduction
import os
import signal
import socket
import subprocess
import sys

import numbered

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "numbered.py")


def going_on(descriptor):
    return [sys.executable, PROGRAM, "go on", str(descriptor)]


def is_replaced(connection):
    """By exec in the same process."""
    connection.set_inheritable(True)
    os.execv(sys.executable, going_on(connection.fileno()))


def is_replaced_behind_a_copy(connection):
    """The same by a duplicate, which is the only descriptor when the program starts."""
    copy = os.dup(connection.fileno())
    connection.close()
    os.set_inheritable(copy, True)
    os.execve(sys.executable, going_on(copy), os.environ)


def begins_a_heir(connection):
    """Another process inherits it under its number; this one closes it."""
    with subprocess.Popen(going_on(connection.fileno()), pass_fds=[connection.fileno()]) as heir:
        connection.close()
    assert heir.returncode == 0


def begins_a_heir_and_keeps_it(connection):
    """Another process holds it for a time without using it; then this one continues."""
    connection.set_inheritable(True)
    for _ in range(3):
        numbered.give_back(connection, countdown(20))
        assert os.system("exec true") == 0
        assert os.popen("echo told").read() == "told\n"
    numbered.give_back(connection)


def begins_others(connection):
    """Other processes do not inherit it: it stays where it is."""
    for _ in range(3):
        numbered.give_back(connection, countdown(20))
        is_past = numbered.is_accelerated(connection)
        assert os.system("exec true") == 0
        assert os.popen("echo told").read() == "told\n"
        assert subprocess.run(["cat"], input=b"told", capture_output=True).stdout == b"told"
        numbered.give_back(connection, countdown(1))
        assert numbered.is_accelerated(connection) == is_past
    numbered.give_back(connection)


def countdown(count):
    """A condition that becomes true after a number of checks."""
    left = iter(range(count))
    return lambda: next(left, None) is None


def as_standard_streams(*command):
    """As standard input and output of a program started by `subprocess`."""
    def hand_on(connection):
        with subprocess.Popen(command, stdin=connection, stdout=connection) as heir:
            connection.close()
        assert heir.returncode == 0
    return hand_on


def by_file_actions(connection):
    """As standard input and output of a program started by `posix_spawn`."""
    dup2 = [(os.POSIX_SPAWN_DUP2, connection.fileno(), number) for number in [0, 1]]
    actions = [*dup2, (os.POSIX_SPAWN_CLOSE, connection.fileno())]
    heir = os.posix_spawnp("cat", ["cat"], os.environ, file_actions=actions)
    connection.close()
    assert os.waitpid(heir, 0) == (heir, 0)


def as_inetd(*command):
    """Like inetd: fork, all three standard streams, exec."""
    def hand_on(connection):
        heir = os.fork()
        if heir == 0:
            for number in [0, 1, 2]:
                os.dup2(connection.fileno(), number)
            numbered.announce("handed on", "")
            os.execvp(command[0], command)
        connection.close()
        assert os.waitpid(heir, 0) == (heir, 0)
    return hand_on


def by_fork(connection):
    """To a new child; this process closes it."""
    heir = os.fork()
    if heir == 0:
        numbered.give_back(connection)
        os._exit(0)
    connection.close()
    assert os.waitpid(heir, 0) == (heir, 0)


def take_from(channel):
    message, [descriptor], _, _ = socket.recv_fds(channel, len(b"for you"), 1)
    assert message == b"for you"
    numbered.announce("handed on", "")
    return socket.socket(fileno=descriptor)


def receive(channel):
    """A process that receives connections over a Unix socket."""
    with take_from(channel) as connection:
        numbered.give_back(connection)


def receive_and_die(count):
    """The same for a process that exits after a number of parts."""
    def receive(channel):
        with take_from(channel) as connection:
            numbered.give_back(connection, countdown(count))
            os._exit(0)
    return receive


def send(channel, connection):
    socket.send_fds(channel, [b"for you"], [connection.fileno()])
    connection.close()


def has_to_succeed(child):
    assert os.waitpid(child, 0) == (child, 0)


def kills_itself(_):
    os.kill(os.getpid(), signal.SIGKILL)


def worker_begun_before(receive=receive, behind=has_to_succeed):
    """To a child that was forked before the connection existed."""
    ours, theirs = socket.socketpair()
    heir = os.fork()
    if heir == 0:
        ours.close()
        receive(theirs)
        os._exit(0)
    theirs.close()

    def hand_on(connection):
        send(ours, connection)
        behind(heir)
    return hand_on


def to_a_stranger():
    """To a process that connects to this one by the path of a Unix socket."""
    door = socket.socket(socket.AF_UNIX)
    door.bind("door")
    door.listen()
    stranger = subprocess.Popen([sys.executable, __file__, "be a stranger"])

    def hand_on(connection):
        channel, _ = door.accept()
        send(channel, connection)
        assert stranger.wait() == 0
    return hand_on


def be_stranger():
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect("door")
        receive(channel)


def back_and_forth():
    """To a child and back, several times."""
    ours, theirs = socket.socketpair()
    heir = os.fork()
    if heir == 0:
        ours.close()
        play_catch(1, theirs, None)
        os._exit(0)
    theirs.close()

    def hand_on(connection):
        play_catch(0, ours, connection)
        assert os.waitpid(heir, 0) == (heir, 0)
    return hand_on


def play_catch(own, channel, connection):
    for throw in range(6):
        if throw % 2 == own:
            numbered.give_back(connection, countdown(20))
            send(channel, connection)
        else:
            connection = take_from(channel)
    if own == 0:
        numbered.give_back(connection)


def handle_by_multiprocessing():
    """By the functions of `multiprocessing`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    heir = context.Process(target=receive_handle, args=[theirs])
    heir.start()
    theirs.close()

    def hand_on(connection):
        multiprocessing.reduction.send_handle(ours, connection.fileno(), heir.pid)
        connection.close()
        heir.join()
        assert heir.exitcode == 0
    return hand_on


def receive_handle(channel):
    descriptor = multiprocessing.reduction.recv_handle(channel)
    with socket.socket(fileno=descriptor) as connection:
        numbered.give_back(connection)


def pickled_by_multiprocessing():
    """As a pickled object, which a thread of this process sends on request."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    heir = context.Process(target=receive_pickled, args=[theirs])
    heir.start()
    theirs.close()

    def hand_on(connection):
        ours.send(["for you", connection])
        assert ours.recv() == "mine"
        connection.close()
        heir.join()
        assert heir.exitcode == 0
    return hand_on


def receive_pickled(channel):
    _, connection = channel.recv()
    channel.send("mine")
    with connection:
        numbered.give_back(connection)


# Functions that pass a connection on.
WAYS = {
    "exec": is_replaced,
    "exec of a copy": is_replaced_behind_a_copy,
    "pass_fds": begins_a_heir,
    "system with it": begins_a_heir_and_keeps_it,
    "system without it": begins_others,
    "stdin": as_standard_streams("cat"),
    "stdin of python": as_standard_streams(*going_on(0)),
    "posix_spawn": by_file_actions,
    "inetd": as_inetd("cat"),
    "inetd without the library": as_inetd("env", "-i", "cat"),
    "inetd of a static program": as_inetd("./give_back"),
    "fork": by_fork,
}
# The same, with a process that is started before.
PREPARED_WAYS = {
    "worker": worker_begun_before,
    "worker of somebody who dies": lambda: worker_begun_before(behind=kills_itself),
    "worker that dies": lambda: worker_begun_before(receive_and_die(0)),
    "worker that dies soon": lambda: worker_begun_before(receive_and_die(10)),
    "stranger": to_a_stranger,
    "back and forth": back_and_forth,
    "send_handle": handle_by_multiprocessing,
    "pickled": pickled_by_multiprocessing,
}


def serve(way, leaves, more, waits=None):
    hand_on = PREPARED_WAYS[way]() if way in PREPARED_WAYS else WAYS[way]
    with numbered.listen() as listener:
        connection, _ = listener.accept()
    numbered.give_back_until_left(connection, leaves, int(more))
    if waits:
        numbered.announce("handing", "")
        numbered.wait_until(lambda: os.path.exists("go"))
    hand_on(connection)


if __name__ == "__main__":
    if sys.argv[1] == "be a stranger":
        be_stranger()
    else:
        serve(*sys.argv[1:])
