#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# demo-kv-cluster.sh FREEPORT OUT: a cluster of key-value servers in the demonstration: three shards
# with a replica each. A client writes all the time while a primary is killed, slots are moved, and
# a replica takes the place of its primary. In the end every acknowledged write has to be there.
# FREEPORT is the program, OUT a folder for results.

set -euo pipefail

freeport=$(realpath "$1")
out=$(realpath "$2")/kv-cluster

rm -rf "$out"
mkdir -p "$out"
export FREEPORT_KV_REGISTRY="file:$out/registry"
nodes=()
writer=
trap 'touch "$out/stop"; kill -9 "${nodes[@]}" $writer 2>/dev/null || true' EXIT

# Longest time in seconds for anything that the demonstration waits for.
patience=60
# Waits until a command succeeds.
await() {
    local what=$1 end=$((SECONDS + patience))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "not within $patience s: $what; see $out/node*.log" >&2
            exit 1
        fi
        sleep 0.05
    done
}
# Ends the demonstration if a process has ended.
lives() {
    if ! kill -0 "$1" 2>/dev/null; then
        echo "$2 has ended; see $out/node*.log" >&2
        exit 1
    fi
}

# Starts a node; the system chooses its port.
start() {
    local number=$1
    rm -f "$out/node$number.json"
    "$freeport" kv serve --port 0 --json --memory 64MiB --dir "$out/node$number" \
        --cluster "$FREEPORT_KV_REGISTRY" --cluster-timeout 1000 \
        >"$out/node$number.json" 2>>"$out/node$number.log" &
    nodes[number]=$!
    await "node $number is ready" is_ready "$number"
}
is_ready() {
    lives "${nodes[$1]}" "node $1"
    [ -s "$out/node$1.json" ]
}
port() {
    sed -E 's/.*"resp":\["[^"]*:([0-9]+)".*/\1/' "$out/node$1.json"
}
cluster() {
    echo "> freeport kv cluster $*"
    "$freeport" kv cluster "$@"
}
# Name of the shard with a number.
shard() {
    "$freeport" kv cluster status --json | grep -o '"shards":.*' |
        grep -oE '"id":"[0-9a-f]{40}","nodes' | cut -d '"' -f 4 | sed -n "${1}p"
}
# Number of the node at an address.
number() {
    grep -l ":${1##*:}\"" "$out"/node?.json | sed -E 's/.*node([0-9]+)\.json/\1/'
}

# Writes groups of 20 keys that belong together, through any node that answers. A group whose WAIT
# has the answer of a replica is acknowledged.
write() {
    local group=0 replies
    while [ ! -e "$out/stop" ]; do
        group=$((group + 1))
        replies=$({
            for key in {1..20}; do echo "SET {$group}:$key $group-$key"; done
            echo "WAIT 1 1000"
        } | "$freeport" kv cli -c --server "$(port $((group % 6)))" 2>/dev/null) || continue
        if [ "$(tail -n 1 <<<"$replies")" = "(integer) 1" ]; then
            echo "$group" >>"$out/acknowledged"
        fi
    done
}
# Waits until the writer has some more groups.
more() {
    await "more writes are acknowledged" has_written $(($(wc -l <"$out/acknowledged") + 20))
}
has_written() {
    lives "$writer" "the writer"
    [ "$(wc -l <"$out/acknowledged")" -ge "$1" ]
}
# The node at an address is a replica without a lease. `status` fails while slots are not served.
is_replaced() {
    local status
    status=$("$freeport" kv cluster status || true)
    grep -q "replica .*$1 *none" <<<"$status"
}

echo "A cluster: three shards with a replica each, on one machine, without any other service:"
for node in {0..5}; do start "$node"; done
cluster create --nodes 6 --replicas 1 --wait --timeout "$patience"
if command -v redis-benchmark >/dev/null; then
    # On a slow machine there are no figures.
    timeout 20 redis-benchmark --cluster -p "$(port 0)" -n 100000 -P 16 -t set,get -q \
        >"$out/benchmark" 2>&1 || true
    tr '\r' '\n' <"$out/benchmark" | grep 'requests per second' || true
fi
touch "$out/acknowledged"
write &
writer=$!
more

echo
echo "A primary is killed (kill -9) while a client writes; its replica takes its place:"
status=$("$freeport" kv cluster status)
address=$(awk '$4 == "primary" { print $6; exit }' <<<"$status")
victim=$(number "$address")
# Otherwise the shell reports the signal.
disown "${nodes[victim]}"
kill -9 "${nodes[victim]}"
await "the replica takes its place" is_replaced "$address"
more
start "$victim"
more
cluster status

echo
echo "Slots move to another shard while they are used, and a replica becomes the primary:"
cluster move --count 2000 --from "$(shard 1)" --to "$(shard 2)" --wait --timeout "$patience"
more
cluster rebalance --wait --timeout "$patience"
more
cluster failover "$(shard 3)"
more
touch "$out/stop"
wait $writer

while read -r group; do
    for key in {1..20}; do echo "GET {$group}:$key"; done
done <"$out/acknowledged" >"$out/reads"
"$freeport" kv cli -c --raw --server "$(port 1)" <"$out/reads" >"$out/values"
sed -E 's/GET \{(.*)\}:(.*)/\1-\2/' "$out/reads" >"$out/expected"
lost=$(paste "$out/expected" "$out/values" | awk '$1 != $2' | wc -l)
echo
echo "acknowledged writes: $(wc -l <"$out/expected"); lost: $lost"
kill "${nodes[@]}"
wait "${nodes[@]}"
[ "$lost" = 0 ]
