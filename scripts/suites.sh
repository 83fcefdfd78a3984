#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs public test suites against `freeport kv serve`, and in the same way against redis-server or
# memcached, and writes docs/results/kv-compatibility.md.
#
#   scripts/suites.sh redis                  # all units below
#   scripts/suites.sh redis type/hash multi  # these
#   scripts/suites.sh memcached [FILE...]     # such as metaget
#   scripts/suites.sh page                    # only writes the page, from the last runs
#
# A suite is fetched once, at the commit below, into FREEPORT_SUITES (~/.cache/freeport/suites),
# where the results of the last run of each unit also stay; a peer runs only units of which there
# are none. Nothing of the suite is built. FREEPORT names the program (otherwise the release build),
# FREEPORT_SUITES_SECONDS the time that a unit may take.
# Needs redis-server, redis-cli, tclsh, memcached and perl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

redis_source=https://github.com/redis/redis
redis_version=7.2.6
redis_commit=ae6a2aa95cd094b032e7a69b8b59f64dd1ed085f
memcached_source=https://github.com/memcached/memcached
memcached_version=1.6.18
memcached_commit=8bb9d9a3e5ca93c38db97181d4c15b03d48a644d

# Units of Redis that need neither replicas nor files of the server.
redis_units=(type/string type/incr type/hash type/list type/list-2 type/list-3 type/set type/zset
    type/stream type/stream-cgroups expire scan multi pubsub bitops bitfield
    hyperloglog geo sort keyspace other dump scripting functions introspection introspection-2
    querybuf protocol info info-command latency-monitor slowlog lazyfree auth acl acl-v2 tracking
    pause quit)
# Files of memcached that look at no option of the server's command line.
memcached_units=(64bit binary-get binary bogus-commands cas chunked-items evictions expirations
    flags flush-all getandtouch getset incrdecr issue_104 issue_108 issue_14 issue_140 issue_152
    issue_163 issue_183 issue_192 issue_22 issue_260 issue_29 issue_3 issue_41 issue_42 issue_50
    issue_61 issue_68 issue_70 item_size_max lru-crawler lru malicious-commands metaget misbehave
    multiversioning noreply quit stats-detail stats strtol-testing touch watcher)

cache=${FREEPORT_SUITES:-$HOME/.cache/freeport/suites}
seconds=${FREEPORT_SUITES_SECONDS:-240}
page=docs/results/kv-compatibility.md
scratch=$(mktemp -d)
server=
trap 'stop_server; rm -rf "$scratch"' EXIT

# Fetches a repository at a commit: fetch NAME SOURCE COMMIT
fetch() {
    local tree=$cache/$1
    [ "$(git -C "$tree" rev-parse HEAD 2>/dev/null)" = "$3" ] && return
    rm -rf "$tree"
    git init --quiet "$tree"
    git -C "$tree" fetch --quiet --depth 1 "$2" "$3"
    git -C "$tree" checkout --quiet FETCH_HEAD
}

stop_server() {
    [ -n "$server" ] || return 0
    kill "$server" 2>/dev/null || true
    for _ in $(seq 50); do
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    kill -9 "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    server=
}

free_port() {
    perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => "127.0.0.1",
        LocalPort => 0, Listen => 1)->sockport'
}

# Starts a server on the port $port, of protocol redis or memcached: start_server SIDE PROTOCOL
start_server() {
    port=$(free_port)
    case "$1-$2" in
        freeport-redis)
            rm -rf "$scratch/data"
            set -- "$freeport" kv serve --port "$port" --dir "$scratch/data"
            ;;
        freeport-memcached) set -- "$freeport" kv serve --port 0 --memcached-port "$port" ;;
        peer-redis) set -- redis-server --bind 127.0.0.1 --port "$port" --dir "$scratch" --save '' \
            --enable-debug-command yes --enable-protected-configs yes ;;
        peer-memcached) set -- memcached -l 127.0.0.1 -p "$port" -U 0 -u "$(id -un)" ;;
    esac
    "$@" >"$scratch/server.out" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "suites.sh: $1 does not start:" >&2
    cat "$scratch/server.out" >&2
    exit 1
}

# Runs a unit of Redis; prints `ok NAME` or `not NAME` for each test. A test that hangs is left out
# of another run, which tells the results of those behind it. The suite also uses ports that are
# 10,000 above its own.
run_redis() {
    local out=$scratch/out skips=() hanging
    while true; do
        start_server "$1" redis
        redis-cli -p "$port" config set notify-keyspace-events KEA latency-monitor-threshold 1 \
            >/dev/null
        (cd "$cache/redis" && timeout -k 5 "$seconds" tclsh tests/test_helper.tcl \
            --host 127.0.0.1 --port "$port" --single "unit/$2" --durable --ignore-encoding \
            --timeout 15 --baseport "$((20000 + $(free_port) % 20000))" \
            --tags "-needs:repl -needs:save -cli -large-memory" "${skips[@]}") </dev/null 2>&1 |
            sed 's/\x1b\[[0-9;]*m//g' >"$out" || true
        stop_server
        hanging=$(sed -n 's/^sock.* => (IN PROGRESS) //p' "$out")
        [ -n "$hanging" ] && [ ${#skips[@]} -lt 12 ] || break
        skips+=(--skiptest "$hanging")
    done
    cp "$out" "$cache/results/redis.$(tr / - <<<"$2").$1.log"
    sed -n -e 's/^\[ok\]: \(.*\) ([0-9]* ms)$/ok \1/p' \
        -e 's/^\[err\]: \(.*\) in tests\/unit\/.*/not \1/p' "$out"
    local name
    for name in "${skips[@]}"; do
        case "$name" in --skiptest | /*) ;; *) echo "not $name" ;; esac
    done
}

# Runs a file of memcached; prints `ok NAME` or `not NAME` for each check.
run_memcached() {
    local tree=$cache/memcached
    # The suite asks a program that it would build for the features of the server.
    printf '#!/bin/sh\necho memcached\n' >"$tree/memcached-debug"
    chmod +x "$tree/memcached-debug"
    start_server "$1" memcached
    (cd "$tree" && T_MEMD_USE_DAEMON=127.0.0.1:$port setsid timeout -k 5 "$seconds" \
        perl "t/$2.t") </dev/null >"$scratch/out" 2>&1 || true
    stop_server
    cp "$scratch/out" "$cache/results/memcached.$2.$1.log"
    sed -n -e '/# skip/Id' -e 's/^ok [0-9]*\( - \)\?\(.*\)/ok \2/p' \
        -e 's/^not ok [0-9]*\( - \)\?\(.*\)/not \2/p' "$scratch/out"
}

# Runs units beside the peer: run_suite SUITE UNIT...
run_suite() {
    local suite=$1 unit side file
    shift
    for unit in "$@"; do
        for side in peer freeport; do
            file=$cache/results/$suite.$(tr / - <<<"$unit").$side
            [ "$side" = peer ] && [ -e "$file" ] && continue
            echo "suites.sh: $suite $unit on $side" >&2
            "run_$suite" "$side" "$unit" >"$scratch/results"
            mv "$scratch/results" "$file"
        done
    done
}

# Prints rows of a table, and the names of tests that only the peer passes: compare SUITE UNIT...
compare() {
    local suite=$1 unit file
    shift
    echo "| unit | tests of the peer | the peer passes | Freeport passes of these | |"
    echo "|---|---|---|---|---|"
    rm -f "$scratch/missed" "$scratch/alone"
    for unit in "$@"; do
        file=$cache/results/$suite.$(tr / - <<<"$unit")
        if [ ! -s "$file.peer" ] && [ -s "$file.freeport" ]; then
            printf '%s: Freeport passes %d of %d tests.\n' "$unit" \
                "$(grep -c '^ok' "$file.freeport")" "$(wc -l <"$file.freeport")" >>"$scratch/alone"
        fi
        [ -s "$file.peer" ] && [ -e "$file.freeport" ] || continue
        awk -v unit="$unit" -v missed="$scratch/missed" '
            FNR == NR { tests += 1; if (sub(/^ok /, "")) { peer[$0] += 1; order[++names] = $0 } }
            FNR != NR && sub(/^ok /, "") { ours[$0] += 1 }
            END {
                for (at = 1; at <= names; at += 1) {
                    name = order[at]; if (done[name]++) continue
                    expected += peer[name]
                    less = peer[name] - ours[name]; if (less < 0) less = 0
                    passed += peer[name] - less
                    if (!less) continue
                    if (!lost++) printf "\n**%s**\n\n", unit >> missed
                    if (lost > 40) continue
                    if (length(name) > 80) name = substr(name, 1, 77) "..."
                    printf "- `%s`%s\n", name, (less > 1 ? " (" less " times)" : "") >> missed
                }
                if (lost > 40) printf "- and %d others\n", lost - 40 >> missed
                share = expected ? sprintf("%.1f %%", 100 * passed / expected) : ""
                printf "| %s | %d | %d | %d | %s |\n", unit, tests, expected, passed, share
            }' "$file.peer" "$file.freeport"
    done
}

write_page() {
    local redis=$(redis-server --version | sed 's/.*v=\([0-9.]*\).*/\1/')
    local memcached=$(memcached --version | sed 's/memcached //')
    {
        cat <<END
<!-- SPDX-License-Identifier: Apache-2.0 OR MIT -->
# Compatibility of the key-value server

Results of public test suites against \`freeport kv serve\`, counted on $(date -u +%F) by
\`scripts/suites.sh\`, which also writes this page. Each unit runs against a server that was just
started, with one worker and a folder for its log, as against any external server: tests that
start servers with options of their own, or that need replicas or files, leave themselves out. A
peer runs the same tests in the same way. A test of a feature newer than the peer fails there, and
does not count. Tests that a unit has not reached within its time count as not passed. Units without
results of both are left out.

## Redis

Units of Redis $redis_version; the peer is redis-server $redis. Encodings of values are not
compared, because those of Redis 7.0 and 7.2 differ.

END
        compare redis "${redis_units[@]}"
        if [ -s "$scratch/alone" ]; then
            printf '\nUnits that the peer cannot run:\n\n'
            sed 's/^/- /' "$scratch/alone"
        fi
        if [ -s "$scratch/missed" ]; then
            printf '\n### Tests that only the peer passes\n'
            cat "$scratch/missed"
        fi
        cat <<END

## memcached

Files of memcached $memcached_version; the peer is memcached $memcached. A file often starts with
options of its own, such as a small memory; here all meet a server with the defaults. A check
without a name is counted with the others of its file.

END
        compare memcached "${memcached_units[@]}"
        if [ -s "$scratch/missed" ]; then
            printf '\n### Checks that only the peer passes\n'
            cat "$scratch/missed"
        fi
    } >"$page"
    echo "suites.sh: $page" >&2
}

suite=${1:-}
shift || true
mkdir -p "$cache/results"
case "$suite" in
    redis)
        fetch redis "$redis_source" "$redis_commit"
        # Their first parts need no file, so they run with a server that is there already.
        sed -i '1s/{"acl external:skip"}/{"acl"}/' "$cache"/redis/tests/unit/{acl,acl-v2}.tcl
        ;;
    memcached) fetch memcached "$memcached_source" "$memcached_commit" ;;
    page) write_page; exit ;;
    *) echo "suites.sh: the suite is redis, memcached or page" >&2; exit 1 ;;
esac
freeport=${FREEPORT:-target/release/freeport}
[ -n "${FREEPORT:-}" ] || cargo build --locked --release --quiet -p freeport-cli
declare -n units="${suite}_units"
[ $# -gt 0 ] || set -- "${units[@]}"
run_suite "$suite" "$@"
write_page
