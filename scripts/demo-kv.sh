#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# demo-kv.sh FREEPORT OUT: the key-value server in the demonstration. FREEPORT is the program, OUT
# a folder for results.

set -euo pipefail

freeport=$1
out=$2

mkdir -p "$out"
server=
trap 'kill "$server" 2>/dev/null || true' EXIT

# Starts a server with more options. The system chooses the ports; the line about the start names
# them.
serve() {
    rm -f "$out/kv-serve.json"
    "$freeport" kv serve --port 0 --json "$@" >"$out/kv-serve.json" &
    server=$!
    until [ -s "$out/kv-serve.json" ]; do
        kill -0 "$server"
        sleep 0.05
    done
    port=$(sed -E 's/.*"resp":\["[^"]*:([0-9]+)".*/\1/' "$out/kv-serve.json")
}
run() {
    echo "> $*"
    "$freeport" kv cli --server "$port" "$@"
}
serve --memcached-port 0
memcached=$(sed -E 's/.*"memcached":\["[^"]*:([0-9]+)".*/\1/' "$out/kv-serve.json")
run SET greeting hello EX 100
run HSET user:1 name Ada language Analytical
run ZADD ranking 10 one 20 two 30 three
run ZRANGE ranking 15 +inf BYSCORE WITHSCORES
run XADD log '*' event started
run EVAL 'return redis.call("INCRBY", KEYS[1], ARGV[1]) * 2' 1 counter 21
run SET pixels abcdef
run KV.UPDATEV pixels add_saturating u8 DELTA 1 RETURN
run GET pixels

exec 3<>"/dev/tcp/127.0.0.1/$memcached"
printf 'set item 0 0 5\r\nvalue\r\nmg item v s c\r\nquit\r\n' >&3
cat <&3
exec 3>&-

if command -v redis-benchmark >/dev/null; then
    redis-benchmark -p "$port" -n 200000 -P 16 -t set,get,incr,lpush,sadd,zadd -q |
        tr '\r' '\n' | grep 'requests per second'
else
    echo "redis-benchmark is left out: it is not installed"
fi
kill "$server"
wait "$server"

echo
echo "A server with a folder keeps its data when it is killed (kill -9):"
rm -rf "$out/kv-data"
serve --dir "$out/kv-data"
run MSET greeting hello name Ada
run RPUSH tasks one two three
kill -9 "$server"
# The shell would report the signal.
wait "$server" 2>/dev/null || true
serve --dir "$out/kv-data"
run MGET greeting name
run LRANGE tasks 0 -1
"$freeport" kv inspect "$out/kv-data" --units
kill "$server"
wait "$server"

echo
echo "Batches of small operations over shared memory, TCP and UDP; every reply is checked:"
rm -f "$out/kv-fabric"
serve --batch-port 0 --batch-udp-port 0 --batch-fabric "$out/kv-fabric" \
    --functions "$(dirname "$0")/../examples/kv/stock.cnp"
address() {
    sed -E "s/.*\"$1\":\[\"([^\"]*)\".*/\1/" "$out/kv-serve.json"
}
"$freeport" kv bench --fabric "$out/kv-fabric" --mix c --value 2 --pipeline 256 --seconds 2
"$freeport" kv bench --protocol batch --address "$(address batch)" --requests 200000
"$freeport" kv bench --udp "$(address batch_udp)" --requests 100000

echo
echo "A function of examples/kv/stock.cnp takes 5 of each item, and refills those below 10 by 91:"
run SET stock $'dz\f'
run KV.UPDATEV stock order u8 DELTA 5 10 91
run GET stock
[ "$("$freeport" kv cli --server "$port" --raw GET stock)" = _ub ]
kill "$server"
wait "$server"

"$freeport" bench kv --quick --case resp --case memcached --case fabric \
    --out "$out/kv-servers" 2>"$out/kv-servers.notes"
