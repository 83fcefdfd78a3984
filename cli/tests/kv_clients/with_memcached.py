# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Uses a server of memcached through pymemcache, as applications do: `with_memcached.py PORT`."""

import sys
import threading

import pymemcache
from pymemcache import serde
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import MemcacheClientError

ADDRESS = ("127.0.0.1", int(sys.argv[1]))


def values(client):
    assert client.set("key", b"abc", noreply=False) and client.get("key") == b"abc"
    assert client.get("none") is None and client.get("none", b"other") == b"other"
    assert client.add("key", b"x", noreply=False) is False
    assert client.replace("key", b"x", noreply=False) is True
    assert client.append("key", b"z", noreply=False) and client.prepend("key", b"y", noreply=False)
    assert client.get("key") == b"yxz"
    assert client.set_many({f"many:{n}": str(n) for n in range(300)}) == []
    got = client.get_many([f"many:{n}" for n in range(400)])
    assert got == {f"many:{n}": str(n).encode() for n in range(300)}
    client.delete_many([f"many:{n}" for n in range(300)])
    assert client.get("many:1") is None
    big = b"x" * 500_000
    assert client.set("big", big, noreply=False) and client.get("big") == big
    assert client.touch("key", 100, noreply=False) and client.delete("key", noreply=False)
    try:
        client.get("k" * 251)
        raise AssertionError("the key is too long")
    except MemcacheClientError:
        pass


def counters(client):
    client.set("count", "10")
    assert client.incr("count", 5) == 15 and client.decr("count", 20) == 0
    assert client.incr("none", 1) is None
    client.set("text", "abc")
    try:
        client.incr("text", 1)
        raise AssertionError("text is no number")
    except MemcacheClientError as error:
        assert "non-numeric" in str(error), error


def compare_and_swap(client):
    client.set("shared", "0", noreply=False)

    def work():
        own = Client(ADDRESS)
        for _ in range(50):
            while True:
                value, unique = own.gets("shared")
                if own.cas("shared", str(int(value) + 1), unique, noreply=False):
                    break
        own.close()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.get("shared") == b"200"


def objects():
    client = PooledClient(ADDRESS, serde=serde.pickle_serde, max_pool_size=4)
    value = {"numbers": [1, 2, 3], "text": "abc"}
    client.set("object", value)
    assert client.get("object") == value
    client.close()
    client = HashClient([ADDRESS])
    assert client.set("hashed", b"1") and client.get("hashed") == b"1"
    client.close()


def operations(client):
    assert client.version().decode()[0].isdigit()
    stats = client.stats()
    assert stats[b"curr_items"] > 0 and stats[b"cmd_get"] > 0, stats
    assert client.flush_all(noreply=False) and client.get("shared") is None
    client.quit()


client = Client(ADDRESS)
values(client)
counters(client)
compare_and_swap(client)
objects()
operations(client)
print("pymemcache", pymemcache.__version__, "is content")
