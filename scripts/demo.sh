#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Shows what works, in a few minutes from a fresh clone: a capture program on a real trace, its
# counter, its drawing, and frames through it in memory. Everything lands in out/demo.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=out/demo
mkdir -p "$out"

echo "building ..."
cargo build --locked --release --quiet -p freeport-cli
freeport=target/release/freeport

echo
echo "1. a trace through examples/capture.ir: count the packets, send them on, copy to the host"
"$freeport" run examples/capture.ir --in from_tor=examples/traces/sample.pcap \
    --out to_tor="$out/out.pcap" --out to_host=count --signal cnt:0 --stats text
cmp examples/traces/sample.pcap "$out/out.pcap" && echo "$out/out.pcap equals the input"

echo
echo "2. the element graph"
"$freeport" graph examples/capture.ir -o "$out/capture.svg"
echo "$out/capture.svg"

# Prints the time of one run in seconds.
seconds_of() {
    local TIMEFORMAT=%R
    { time "$freeport" run "$1" --in "from_tor=gen:$2x$3" --out to_tor=count --stats json \
        >"$out/last.json"; } 2>&1
}

# The number that follows a key of an object of the statistics, such as: to_tor frames.
count_of() {
    grep -o "{[^{}]*\"endpoint\":\"$1\"[^{}]*}" "$out/last.json" |
        grep -o "\"$2\":[0-9]*" | grep -o '[0-9]*$'
}

echo
echo "3. frames through memory, on the reference interpreter (start-up included; the interpreter"
echo "   defines what a program means, it is not the fast path)"
printf '%-14s %8s %10s %12s %12s %10s\n' elements bytes frames sent dropped frames/s
frames=100000
for program in examples/wire.ir examples/capture.ir; do
    for size in 64 1500; do
        seconds=$(seconds_of "$program" "$size" "$frames")
        rate=$(awk -v frames="$frames" -v seconds="$seconds" \
            'BEGIN { printf "%d", (seconds > 0) ? frames / seconds : 0 }')
        name=$([ "$program" = examples/wire.ir ] && echo none || echo "Count, Tee")
        sent=$(count_of to_tor frames)
        printf '%-14s %8s %10s %12s %12s %10s\n' "$name" "$size" "$frames" "$sent" \
            "$((frames - sent))" "$rate"
    done
done
