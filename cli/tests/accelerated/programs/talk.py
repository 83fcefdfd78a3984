# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An echo server and a client that verifies the echo, each with one of Python's ways to wait."""
import asyncio
import hashlib
import select
import selectors
import socket
import sys
import threading

CONNECTIONS = 8
SIZES = [1, 10, 1000, 4096, 65536] * 8 + [1 << 20]


def content(seed, size):
    block = hashlib.sha256(b"%d %d" % (seed, size)).digest()
    return (block * (size // len(block) + 1))[:size]


def serve_threads(listener):
    def echo(connection):
        with connection:
            while data := connection.recv(100_000):
                connection.sendall(data)

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=echo, args=[connection], daemon=True).start()


def serve_by(wait_for, listener):
    """A loop around one of the system calls that wait for several descriptors."""
    listener.setblocking(False)
    rest = {}
    while True:
        readable, writable = wait_for(listener, rest)
        for ready in readable:
            if ready is listener:
                connection, _ = listener.accept()
                connection.setblocking(False)
                rest[connection] = bytearray()
                continue
            # A descriptor that is reported as ready must be ready.
            data = ready.recv(100_000)
            if not data:
                del rest[ready]
                ready.close()
                continue
            rest[ready] += data
        for ready in writable:
            if ready in rest and rest[ready]:
                sent = ready.send(rest[ready])
                del rest[ready][:sent]


def by_select(listener, rest):
    readable, writable, _ = select.select([listener, *rest], [one for one in rest if rest[one]], [])
    return readable, writable


def by_poll(listener, rest):
    poll = select.poll()
    sockets = {one.fileno(): one for one in [listener, *rest]}
    for one in sockets.values():
        poll.register(one, select.POLLIN | (select.POLLOUT if rest.get(one) else 0))
    ready = poll.poll(60_000)
    ends = select.POLLIN | select.POLLHUP | select.POLLERR
    return ([sockets[fd] for fd, events in ready if events & ends],
            [sockets[fd] for fd, events in ready if events & select.POLLOUT])


def by_selectors():
    selector = selectors.DefaultSelector()

    def wait_for(listener, rest):
        known = selector.get_map()
        for one in [listener, *rest]:
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if rest.get(one) else 0)
            if one not in known:
                selector.register(one, events)
            elif known[one].events != events:
                selector.modify(one, events)
        for key in list(known.values()):
            if key.fileobj is not listener and key.fileobj not in rest:
                selector.unregister(key.fileobj)
        ready = selector.select(60)
        return ([key.fileobj for key, events in ready if events & selectors.EVENT_READ],
                [key.fileobj for key, events in ready if events & selectors.EVENT_WRITE])

    return wait_for


async def serve_asyncio(listener):
    async def echo(reader, writer):
        while data := await reader.read(100_000):
            writer.write(data)
            await writer.drain()
        writer.close()

    is_unix = listener.family == socket.AF_UNIX
    start = asyncio.start_unix_server if is_unix else asyncio.start_server
    server = await start(echo, sock=listener)
    await server.serve_forever()


def exchange(connection, seed):
    """Sends and receives concurrently, so that neither side has to buffer everything."""
    for size in SIZES:
        sent = content(seed, size)
        sender = threading.Thread(target=connection.sendall, args=[sent])
        sender.start()
        got = bytearray()
        while len(got) < size:
            data = connection.recv(size - len(got))
            assert data, "it has ended"
            got += data
        sender.join()
        assert got == sent, f"{size} bytes have changed"
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b"", "the end comes back"


def connect(where):
    if isinstance(where, str):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(where)
        return connection
    return socket.create_connection(("127.0.0.1", where), timeout=60)


def listen(where):
    if isinstance(where, str):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(where)
        listener.listen(64)
        return listener
    return socket.create_server(("127.0.0.1", where), backlog=64)


def ask_threads(where):
    failures = []

    def ask(seed):
        try:
            with connect(where) as connection:
                exchange(connection, seed)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=ask, args=[seed]) for seed in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


async def ask_asyncio(where):
    async def ask(seed):
        if isinstance(where, str):
            reader, writer = await asyncio.open_unix_connection(where)
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", where)
        for size in SIZES:
            sent = content(seed, size)
            writer.write(sent)
            _, got = await asyncio.gather(writer.drain(), reader.readexactly(size))
            assert got == sent, f"{size} bytes have changed"
        writer.write_eof()
        assert await reader.read() == b"", "the end comes back"
        writer.close()

    await asyncio.wait_for(asyncio.gather(*(ask(seed) for seed in range(CONNECTIONS))), 60)


def main(role, how, where):
    if role == "serve":
        listener = listen(where)
        if how == "threads":
            serve_threads(listener)
        elif how == "asyncio":
            asyncio.run(serve_asyncio(listener))
        else:
            ways = {"select": by_select, "poll": by_poll, "selectors": by_selectors()}
            serve_by(ways[how], listener)
    elif how == "asyncio":
        asyncio.run(ask_asyncio(where))
    else:
        ask_threads(where)


port_or_path = sys.argv[3]
main(*sys.argv[1:3], int(port_or_path) if port_or_path.isdigit() else port_or_path)
