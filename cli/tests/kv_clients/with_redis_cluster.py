# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Uses a cluster through redis-py, as applications do: `with_redis_cluster.py PORT`.

After all kinds of commands, it writes until its standard input ends, and then compares what it has
written. Nodes may end and slots may move meanwhile. It prints a line when it has begun, and another
each time all keys were written.
"""

import logging
import sys
import threading
import time

from redis import exceptions
from redis.cluster import ClusterNode, RedisCluster

PORT = int(sys.argv[1])
KEYS = 50
# A node is not there, or has no primary for a while.
UNAVAILABLE = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ClusterDownError,
    exceptions.ReadOnlyError,
    exceptions.RedisClusterException,
)


def connect():
    nodes = [ClusterNode("127.0.0.1", PORT)]
    return RedisCluster(startup_nodes=nodes, decode_responses=True, socket_timeout=5)


def values(cluster):
    for number in range(300):
        assert cluster.set(f"key:{number}", number)
    for number in range(300):
        assert cluster.get(f"key:{number}") == str(number)
    assert sorted(cluster.scan_iter("key:*")) == sorted(f"key:{number}" for number in range(300))
    assert cluster.mset_nonatomic({f"many:{number}": number for number in range(50)})
    got = cluster.mget_nonatomic([f"many:{number}" for number in range(50)])
    assert got == [str(number) for number in range(50)]
    assert cluster.mset({"{tag}:a": 1, "{tag}:b": 2})
    assert cluster.mget("{tag}:a", "{tag}:b") == ["1", "2"]
    assert cluster.rename("{tag}:a", "{tag}:c") and cluster.get("{tag}:c") == "1"
    try:
        cluster.execute_command("MGET", "a", "b")
        raise AssertionError("the keys are in different slots")
    except exceptions.RedisClusterException:
        pass


def pipelines(cluster):
    with cluster.pipeline() as pipe:
        for number in range(300):
            pipe.set(f"pipe:{number}", number)
            pipe.get(f"pipe:{number}")
        replies = pipe.execute()
    assert replies[1::2] == [str(number) for number in range(300)]


def scripts(cluster):
    add = "return redis.call('INCRBY', KEYS[1], ARGV[1])"
    assert cluster.eval(add, 1, "sum", 5) == 5 and cluster.eval(add, 1, "sum", 7) == 12


def replicas(cluster):
    assert len(cluster.get_replicas()) == len(cluster.get_primaries())
    with RedisCluster(
        host="127.0.0.1", port=PORT, decode_responses=True, read_from_replicas=True
    ) as reader:
        cluster.set("read", "everywhere")
        owner = cluster.get_node_from_key("read")
        assert cluster.execute_command("WAIT", 1, 10_000, target_nodes=owner) == 1
        for _ in range(10):
            assert reader.get("read") == "everywhere"


def messages(cluster):
    if not hasattr(cluster, "spublish"):
        return
    with cluster.pubsub() as listener:
        listener.ssubscribe("news")
        # The reply to the subscription.
        message = None
        while message is None:
            message = listener.get_sharded_message(timeout=10)
        assert message["type"] == "ssubscribe", message
        assert cluster.spublish("news", "hello") == 1
        message = None
        while message is None:
            message = listener.get_sharded_message(timeout=10)
        assert (message["type"], message["data"]) == ("smessage", "hello"), message


def written(number):
    """The key of a value, in the slot of its counter."""
    return f"written:{{{number}}}"


def counted(number):
    return f"counted:{{{number}}}"


def until_available(use):
    """The result of a function, which is called again while nodes are not there."""
    while True:
        try:
            return use()
        except UNAVAILABLE:
            time.sleep(0.05)


def write(cluster, round):
    """Writes all keys once, and reads what was written."""

    def one(number):
        assert cluster.set(written(number), f"{round}:{number}")
        cluster.incr(counted(number))
        # Without a replica that has both, the loss of the primary may lose them.
        owner = cluster.get_node_from_key(written(number))
        if cluster.execute_command("WAIT", 1, 1_000, target_nodes=owner) < 1:
            raise exceptions.ConnectionError("no replica has the changes")
        assert cluster.get(written(number)) == f"{round}:{number}"

    for number in range(KEYS):
        until_available(lambda: one(number))


def compare(cluster, round):
    """All values are those of the last round; a repeated write has counted more than once."""
    for number in range(KEYS):
        value = until_available(lambda: cluster.get(written(number)))
        assert value == f"{round}:{number}", (number, value, round)
        count = int(until_available(lambda: cluster.get(counted(number))))
        assert count >= round, (number, count, round)


def main():
    # The library reports every error, also those after which it tries again.
    logging.getLogger("redis").setLevel(logging.CRITICAL)
    ended = threading.Event()
    with connect() as cluster:
        for use in [values, pipelines, scripts, replicas, messages]:
            use(cluster)
        print("has begun", flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
        round = 0
        while not ended.is_set():
            round += 1
            write(cluster, round)
            print("has written", flush=True)
        compare(cluster, round)
    print("redis-py is content", flush=True)


main()
