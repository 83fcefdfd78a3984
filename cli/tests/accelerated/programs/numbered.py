# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A stream of numbers in which a lost, duplicated or moved byte is detected. One end sends it and
verifies the echo of the other end."""
import array
import ctypes
import os
import selectors
import socket
import sys
import threading
import time

TOTAL = 10 << 20
# Period of the stream in bytes.
PERIOD = 12 << 20
NUMBERS = array.array("Q", range(PERIOD // 8)).tobytes()
STREAM = memoryview(NUMBERS + NUMBERS[:TOTAL])
ROUND = 64
# Limit against hangs.
PATIENCE = 180

try:
    is_past_kernel = ctypes.CDLL(None).freeport_is_accelerated
except AttributeError:
    # Without the library.
    is_past_kernel = lambda descriptor: 0


def is_accelerated(connection):
    return is_past_kernel(connection.fileno()) != 0


def wait_until(is_so):
    late = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > late:
            raise TimeoutError("it never came to this")
        time.sleep(0.002)


def announce(name, text):
    """Writes a file atomically."""
    new = f"{name}.{os.getpid()}"
    with open(new, "w") as file:
        file.write(str(text))
    os.rename(new, name)


def listen():
    """Listens on a port that the kernel chooses, and prints it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    announce("port", listener.getsockname()[1])
    return listener


def numbers(at, end):
    """Bytes of the stream, at most those of one piece of a conversation."""
    at, length = at % PERIOD, end - at
    return STREAM[at:at + length]


class Client:
    """Sends numbers, and verifies their echo."""

    def __init__(self, port):
        self.connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.connection.settimeout(None)
        self.at = 0

    def take(self, part):
        """Verifies the next received bytes."""
        if not part:
            raise EOFError(f"the end, behind {self.at} bytes")
        expected = numbers(self.at, self.at + len(part))
        if part != expected:
            wrong = next(at for at, (one, other) in enumerate(zip(part, expected)) if one != other)
            found = bytes(part[wrong:wrong + 32]).hex(" ", 8)
            raise ValueError(f"byte {self.at + wrong} of the stream is wrong, there is {found}")
        self.at += len(part)

    def expect(self, end):
        while self.at < end:
            self.take(self.connection.recv(end - self.at))

    def rounds(self, is_enough):
        """Sends a few numbers and waits for their echo, until a condition holds."""
        late = time.monotonic() + PATIENCE
        while not is_enough():
            end = self.at + ROUND
            self.connection.sendall(numbers(self.at, end))
            self.expect(end)
            if time.monotonic() > late:
                raise TimeoutError(f"behind {end} bytes it is accelerated: {self.is_past()}")

    def is_past(self):
        return is_accelerated(self.connection)

    def count_rounds(self, count):
        end = self.at + count * ROUND
        self.rounds(lambda: self.at >= end)

    def send(self, whole):
        try:
            self.connection.sendall(whole)
        except ConnectionError:
            # The receiving thread reports the error too.
            pass

    def stream_by_threads(self):
        end = self.at + TOTAL
        whole = numbers(self.at, end)
        sender = threading.Thread(target=self.send, args=[whole], daemon=True)
        sender.start()
        self.expect(end)
        sender.join()

    def stream_by(self, selector):
        end, sent = self.at + TOTAL, self.at
        self.connection.setblocking(False)
        both = selectors.EVENT_READ | selectors.EVENT_WRITE
        with selector() as waits:
            waits.register(self.connection, both)
            while self.at < end:
                for _, events in waits.select():
                    if events & selectors.EVENT_WRITE and sent < end:
                        sent += self.connection.send(numbers(sent, min(end, sent + 200_000)))
                        if sent == end:
                            waits.modify(self.connection, selectors.EVENT_READ)
                    if events & selectors.EVENT_READ:
                        # A descriptor that is reported as readable must be readable.
                        self.take(self.connection.recv(100_000))
        self.connection.setblocking(True)

    def stream(self, how):
        if how == "threads":
            self.stream_by_threads()
        elif how == "rounds":
            self.count_rounds(3000)
        else:
            self.stream_by({"poll": selectors.PollSelector, "select": selectors.SelectSelector,
                            "epoll": selectors.EpollSelector}[how])

    def end(self):
        self.connection.shutdown(socket.SHUT_WR)
        behind = self.connection.recv(1000)
        if behind:
            raise ValueError(f"more than the stream: {behind}")
        self.connection.close()


def ask(port, how, leaves, ending):
    """A conversation in which the server passes its end on."""
    client = Client(port)
    if leaves == "leaves":
        client.rounds(client.is_past)
    else:
        client.count_rounds(200)
    announce("left", "")
    client.stream(how)
    if ending == "past":
        client.rounds(client.is_past)
    client.count_rounds(500)
    is_past = client.is_past()
    if ending in ["past", "kernel"] and is_past != (ending == "past"):
        raise ValueError(f"at the end it is accelerated: {is_past}")
    client.end()


def give_back(connection, is_enough=lambda: False):
    """Echoes until the end of file or until a condition holds; then everything that was received
    has been echoed."""
    while not is_enough():
        data = connection.recv(50_000)
        if not data:
            return
        connection.sendall(data)


def give_back_until_left(connection, leaves, more):
    """Echoes until the connection is accelerated, if that is expected, and then a number of further
    bytes."""
    count, left_at = 0, None if leaves == "leaves" else 0
    while left_at is None or count < left_at + more:
        data = connection.recv(50_000)
        if not data:
            raise EOFError(f"the end, behind {count} bytes; it had left at {left_at}")
        connection.sendall(data)
        count += len(data)
        if left_at is None and is_accelerated(connection):
            left_at = count


if __name__ == "__main__":
    role, *rest = sys.argv[1:]
    if role == "ask":
        port, how, leaves, ending = rest
        try:
            ask(int(port), how, leaves, ending)
            print("all came back")
        except (EOFError, ConnectionError):
            if ending != "broken":
                raise
            print("the end")
    else:
        # Continues with an inherited connection.
        announce("handed on", "")
        with socket.socket(fileno=int(rest[0])) as inherited:
            give_back(inherited)
