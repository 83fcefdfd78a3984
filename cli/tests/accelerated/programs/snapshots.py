# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A server that forks a child within a conversation, as databases do for snapshots: the child still
holds the connection after the client and the server have closed it, and exits."""
import os
import signal

import numbered


def serve(listener, forks):
    connection, _ = listener.accept()
    with connection:
        numbered.give_back_until_left(connection, "leaves", 1000)
        child = os.fork() if forks else None
        if child == 0:
            signal.pause()
        numbered.give_back(connection)
    if forks:
        # The last process that holds it is killed, or exits.
        os.kill(child, forks)
        os.waitpid(child, 0)


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
with numbered.listen() as server:
    for ends in [signal.SIGKILL, signal.SIGTERM, None]:
        serve(server, ends)
    numbered.announce("served", "")
    while True:
        serve(server, None)
