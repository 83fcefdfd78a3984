# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Uses a server of RESP through redis-py, as applications do: `with_redis.py PORT`."""

import inspect
import sys
import threading

import redis

PORT = int(sys.argv[1])


def connect(**options):
    return redis.Redis(port=PORT, decode_responses=True, **options)


def values(client):
    assert client.set("text", "abc") and client.get("text") == "abc"
    assert client.set("text", "x", nx=True) is None
    assert client.getrange("text", 1, 2) == "bc" and client.append("text", "d") == 4
    assert client.mset({"one": 1, "two": 2}) and client.mget("one", "two", "no") == ["1", "2", None]
    assert client.incrbyfloat("one", 0.5) == 1.5 and client.incr("two", 5) == 7
    assert client.expire("two", 100) and 0 < client.ttl("two") <= 100
    client.hset("hash", mapping={"a": 1, "b": 2})
    assert client.hgetall("hash") == {"a": "1", "b": "2"}
    assert client.rpush("list", 1, 2, 3) == 3 and client.lrange("list", 0, -1) == ["1", "2", "3"]
    assert client.sadd("set", 1, 2) == 2 and client.smembers("set") == {"1", "2"}
    client.zadd("ranks", {"a": 1, "b": 2.5})
    ranks = client.zrange("ranks", 0, -1, withscores=True)
    assert [tuple(rank) for rank in ranks] == [("a", 1.0), ("b", 2.5)]
    assert client.zrevrangebyscore("ranks", "+inf", 2) == ["b"]
    client.geoadd("places", (13.36, 38.11, "palermo", 15.08, 37.5, "catania"))
    assert 160 < client.geodist("places", "palermo", "catania", "km") < 170
    assert client.pfadd("seen", *range(100)) and 90 < client.pfcount("seen") < 110
    assert client.bitfield("bits").set("u8", 0, 255).incrby("u8", 0, 1).execute() == [0, 0]
    assert client.type("hash") == "hash" and client.exists("hash", "no") == 1
    big = "x" * 1_000_000
    assert client.set("big", big) and client.get("big") == big
    try:
        client.incr("text")
        raise AssertionError("text is no number")
    except redis.ResponseError as error:
        assert "not an integer" in str(error), error


def pipelines(client):
    with client.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"pipe:{number}", number)
            pipe.get(f"pipe:{number}")
        replies = pipe.execute()
    assert replies[1::2] == [str(number) for number in range(1000)]
    assert len(set(client.scan_iter("pipe:*", count=50))) == 1000
    assert client.delete(*[f"pipe:{number}" for number in range(1000)]) == 1000


def transactions(client):
    client.set("balance", 10)
    with client.pipeline() as pipe:
        pipe.watch("balance")
        balance = int(pipe.get("balance"))
        client.set("balance", 99)
        pipe.multi()
        pipe.set("balance", balance + 1)
        try:
            pipe.execute()
            raise AssertionError("the key has changed")
        except redis.WatchError:
            pass
    def increase(pipe):
        balance = int(pipe.get("balance"))
        pipe.multi()
        pipe.set("balance", balance + 1)

    for _ in range(20):
        client.transaction(increase, "balance")
    assert client.get("balance") == "119"


def messages(client):
    heard = []
    done = threading.Event()

    def hear(message):
        heard.append((message["channel"], message["data"]))
        if message["data"] == "last":
            done.set()

    with client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(news=hear)
        listener.psubscribe(**{"ne?s": hear})
        while client.pubsub_numsub("news") != [("news", 1)] or client.pubsub_numpat() != 1:
            pass
        thread = listener.run_in_thread(sleep_time=0.01)
        for number in range(100):
            assert client.publish("news", number) == 2
        client.publish("news", "last")
        assert done.wait(100)
        thread.stop()
        thread.join()
    assert [data for _, data in heard][:4] == ["0", "0", "1", "1"]
    assert client.publish("news", "nobody") in (0, 2)


def waiting(client):
    got = []

    def wait():
        with connect() as own:
            got.extend(own.blpop(["queue", "other"], timeout=100)[1] for _ in range(50))

    thread = threading.Thread(target=wait)
    thread.start()
    for number in range(50):
        client.rpush("queue", number)
    thread.join()
    assert got == [str(number) for number in range(50)]
    assert client.blpop("queue", timeout=0.05 if redis.VERSION[0] > 3 else 1) is None
    client.zadd("jobs", {"a": 1})
    assert tuple(client.bzpopmin("jobs", timeout=1)) == ("jobs", "a", 1.0)


def streams(client):
    client.xgroup_create("stream", "group", mkstream=True)
    for number in range(10):
        client.xadd("stream", {"number": number})
    read = client.xreadgroup("group", "one", {"stream": ">"}, count=6)
    # Version 3 has a map of streams, with the entries in a list of their own.
    entries = read["stream"][0] if isinstance(read, dict) else read[0][1]
    assert [fields["number"] for _, fields in entries] == list("012345")
    assert client.xack("stream", "group", *[name for name, _ in entries[:4]]) == 4
    assert client.xpending("stream", "group")["pending"] == 2
    _, claimed, *_ = client.xautoclaim("stream", "group", "two", min_idle_time=0)
    assert [name for name, _ in claimed] == [name for name, _ in entries[4:]]
    assert client.xinfo_stream("stream")["length"] == 10
    assert client.xinfo_groups("stream")[0]["pending"] == 2
    assert len(client.xrange("stream", count=3)) == 3
    assert client.xtrim("stream", 2, approximate=False) == 8


def locks(client):
    counted = [0]

    def work():
        with connect() as own:
            for _ in range(10):
                with own.lock("lock", timeout=100, sleep=0.001):
                    before = counted[0]
                    own.ping()
                    counted[0] = before + 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted == [40] and client.exists("lock") == 0
    lock = client.lock("lock", timeout=100)
    assert lock.acquire() and lock.extend(10) and lock.reacquire()
    assert not client.lock("lock", blocking_timeout=0.01).acquire()
    lock.release()


def scripts(client):
    add = client.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    assert add(keys=["sum"], args=[5]) == 5 and add(keys=["sum"], args=[7]) == 12
    client.script_flush()
    assert add(keys=["sum"], args=[1]) == 13
    with client.pipeline() as pipe:
        add(keys=["sum"], args=[1], client=pipe)
        assert pipe.execute() == [14]
    code = "#!lua name=own\nredis.register_function('twice', function(k, a) return a[1] * 2 end)"
    client.function_load(code, replace=True)
    assert client.fcall("twice", 0, 21) == 42


def operations(client):
    assert client.ping() and client.echo("a") == "a" and client.time()
    assert client.info()["redis_version"] and client.info("memory")["used_memory"] > 0
    assert client.client_setname("own") and client.client_getname() == "own"
    assert any(other["name"] == "own" for other in client.client_list())
    assert "maxmemory" in client.config_get("maxmemory*")
    assert client.command_count() > 200 and client.dbsize() > 0
    assert client.object("encoding", "text") and client.memory_usage("big") > 1_000_000
    with connect(db=3) as other:
        other.set("own", 1)
        assert other.dbsize() == 1 and other.flushdb()


def main():
    versions = [{}]
    # Later versions of the library speak the third version of the protocol too.
    if "protocol" in inspect.signature(redis.Redis).parameters:
        versions = [{"protocol": 2}, {"protocol": 3}]
    uses = [values, pipelines, transactions, messages, waiting, streams, locks, scripts, operations]
    for version in versions:
        with connect(**version) as client:
            client.flushall()
            for use in uses:
                try:
                    use(client)
                except Exception as error:
                    raise AssertionError(f"{use.__name__} with {version}") from error
    print("redis-py", redis.__version__, "is content with", len(versions), "versions of RESP")


main()
