#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Shows what works, in well under a minute once it is built: a ClickNP program as native code on a
# real trace, its counters and variables, its drawing, and how fast frames go through memory.
# Everything lands in out/demo.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=out/demo
mkdir -p "$out"

echo "building ..."
cargo build --locked --release --quiet -p freeport-cli
freeport=target/release/freeport

echo
echo "1. a trace through examples/capture.cnp, as native code: count the packets, send them on, and"
echo "   log a copy. First the counter's answer to a signal, then variables of the logger by name"
"$freeport" run examples/capture.cnp --in from_tor=examples/traces/sample.pcap \
    --out to_tor="$out/out.pcap" --signal cnt:0 --get logger.packets \
    --get 'logger.lengths[0]' --get 'logger.heads[0]' --stats text
cmp examples/traces/sample.pcap "$out/out.pcap"
echo
echo "$out/out.pcap equals the input, byte for byte"
"$freeport" run examples/capture.cnp --on interpreter --in from_tor=examples/traces/sample.pcap \
    --out to_tor="$out/interpreted.pcap"
cmp "$out/out.pcap" "$out/interpreted.pcap"
echo "$out/interpreted.pcap, from the reference interpreter, is the same"

echo
echo "2. the element graph"
"$freeport" graph examples/capture.cnp -o "$out/capture.svg"
echo "$out/capture.svg"

# Frames a second of the last run, from what --time told.
rate_of_last() {
    sed -n 's/.*: \([0-9]*\) a second$/\1/p' "$out/last.time"
}

# The number that follows a key of the statistics of an outer end, such as: to_tor frames.
count_of() {
    grep -o "{[^{}]*\"endpoint\":\"$1\"[^{}]*}" "$out/last.json" |
        grep -o "\"$2\":[0-9]*" | grep -o '[0-9]*$'
}

echo
echo "3. frames through memory as native code, without elements and with the three above; a"
echo "   generator and a counting port are part of it, a driver is not"
printf '%-24s %6s %10s %10s %8s %12s\n' elements bytes packets sent drops packets/s
packets=1000000
for program in wire capture; do
    for size in 64 1500; do
        "$freeport" run "examples/$program.cnp" --in "from_tor=gen:${size}x$packets" \
            --out to_tor=count --stats json --time >"$out/last.json" 2>"$out/last.time"
        elements=$([ "$program" = wire ] && echo none || echo "Count, Tee, PktLogger")
        printf '%-24s %6s %10s %10s %8s %12s\n' "$elements" "$size" \
            "$(count_of from_tor frames)" "$(count_of to_tor frames)" \
            "$(count_of to_tor dropped)" "$(rate_of_last)"
    done
done

echo
echo "4. forwarding with the addresses exchanged, beside the kernel's XDP and a bare copy of the"
echo "   frames (three rounds only; 'make bench' measures properly)"
"$freeport" bench nf --case forward --rounds 3 --out "$out/bench" 2>"$out/bench.notes"
