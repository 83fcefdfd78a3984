#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Demonstrates everything that works, in about three minutes after the build: a ClickNP program as
# native code on a real trace, its counters and variables, its drawing, the rate of frames through
# memory, two hosts connected by the firewall and the load balancer, bytes between processes,
# unmodified programs with accelerated sockets, the key-value engine and server, and the planner.
# All output goes to out/demo.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=out/demo
mkdir -p "$out"

echo "building ..."
cargo build --locked --release --quiet -p freeport-cli -p freeport-preload
freeport=target/release/freeport

echo
echo "1. a trace through examples/capture.cnp, as native code: count the packets, forward them, and"
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

# Prints the frames per second of the last run, from the output of --time.
rate_of_last() {
    sed -n 's/.*: \([0-9]*\) a second$/\1/p' "$out/last.time"
}

# Prints the number that follows a key in the statistics of an outer end, such as: to_tor frames.
count_of() {
    grep -o "{[^{}]*\"endpoint\":\"$1\"[^{}]*}" "$out/last.json" |
        grep -o "\"$2\":[0-9]*" | grep -o '[0-9]*$'
}

echo
echo "3. three applications on the same trace, with tables from the files beside them; their output"
echo "   is compared with that of the reference interpreter"
for application in firewall router balancer; do
    for machine in native interpreter; do
        "$freeport" run "examples/$application.cnp" --init "examples/$application.json" \
            --on "$machine" --in from_tor=examples/traces/sample.pcap \
            --out to_tor="$out/$application.$machine.pcap" --stats json \
            >"$out/$application.$machine.json" 2>/dev/null
    done
    cmp "$out/$application.native.pcap" "$out/$application.interpreter.pcap"
    "$freeport" graph "examples/$application.cnp" -o "$out/$application.svg"
    sent=$(grep -o '"endpoint":"to_tor"[^{}]*' "$out/$application.native.json" |
        grep -o '"frames":[0-9]*' | grep -o '[0-9]*$')
    printf '%-10s 100 frames in, %3s out: %s\n' "$application" "$sent" \
        "$out/$application.native.pcap, the same from both; $out/$application.svg"
done
echo "another rule, given on the command line, lets two more packets through the firewall:"
"$freeport" run examples/firewall.cnp --init examples/firewall.json \
    --call 'firewall.manager.insert({source: 10.0.0.8, target: 192.168.95.182, source_port: 26568,
                                     target_port: 4789, protocol: 17},
                                    {source: 255.255.255.255, target: 255.255.255.255,
                                     source_port: 65535, target_port: 65535, protocol: 255},
                                    0, 100)' \
    --in from_tor=examples/traces/sample.pcap --out to_tor="$out/more.pcap" \
    --get firewall.buffer.sent --get firewall.buffer.unmatched 2>/dev/null

echo
echo "4. frames through memory as native code, without elements and with those of capture.cnp; a"
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
echo "5. traffic from examples/generator.cnp (20,000 packets of flows that start at random times,"
echo "   50,000 per second), measured by the same program, and recorded by examples/recorder.cnp"
"$freeport" run examples/generator.cnp --init examples/generator.json \
    --out to_tor="$out/made.pcap" --get generator.flows.started \
    --get generator.flows.sent 2>/dev/null
"$freeport" run examples/generator.cnp --in from_tor="$out/made.pcap" --get latency.received \
    --get latency.bytes --get latency.lost --get latency.duplicated 2>/dev/null
"$freeport" run examples/recorder.cnp --set tick.left=20 --in from_tor="$out/made.pcap" \
    --get 'logger#1.records' --get 'logger#2.records' --get 'logger#3.records' \
    --get 'logger#4.records' --then 'logger#1.record(0)' 2>/dev/null

echo
echo "6. five network functions in memory, compared with the same in the kernel's XDP (three"
echo "   rounds, 64-byte frames only; 'make bench' measures properly)"
"$freeport" bench nf --no-network --frame-bytes 64 --rounds 3 --out "$out/bench" \
    2>"$out/bench.notes"

echo
echo "7. real traffic: two hosts (network namespaces) connected by firewall and balancer on AF_XDP,"
echo "   compared with the kernel alone; then a rule inserted during a transfer"
if unshare --net true 2>/dev/null; then
    "$freeport" bench apps --rounds 1 --out "$out/apps"
    echo "$out/apps/apps.svg"
else
    echo "left out: network namespaces need root"
fi

echo
echo "8. an unmodified XDP program on the same trace: the firewall of the hXDP publication in the"
echo "   interpreter, and, if BPF is permitted, in the kernel, compared packet by packet; then as"
echo "   native code; then compiled for a small VLIW processor, on its model and in simulated"
echo "   hardware: each compared with the interpreter; and the cycles of that hardware"
target=interpreter
if "$freeport" doctor --json | grep -q '"name":"BPF","seen":"a program was loaded"'; then
    target=both
fi
"$freeport" xdp run programs/xdp/simple_firewall.bpf.c --trace examples/traces/sample.pcap \
    --on "$target" --map 'inside key 0 0 0 0 value 1 0 0 0' \
    --map 'ways key 0 0 0 0 value 3 0 0 0' --write "$out/xdp.pcap"
"$freeport" xdp run programs/xdp/simple_firewall.bpf.c --trace examples/traces/sample.pcap \
    --on interpreter,native --map 'inside key 0 0 0 0 value 1 0 0 0' \
    --map 'ways key 0 0 0 0 value 3 0 0 0'
"$freeport" xdp run programs/xdp/simple_firewall.bpf.c --trace examples/traces/sample.pcap \
    --on interpreter,vliw --profile --map 'inside key 0 0 0 0 value 1 0 0 0' \
    --map 'ways key 0 0 0 0 value 3 0 0 0'
"$freeport" xdp run programs/xdp/simple_firewall.bpf.c --trace examples/traces/sample.pcap \
    --on interpreter,sim --profile --map 'inside key 0 0 0 0 value 1 0 0 0' \
    --map 'ways key 0 0 0 0 value 3 0 0 0'
"$freeport" bench xdp --packets 500

echo
echo "9. bytes between two processes: Freeport's rings in shared memory, compared with the kernel's"
echo "   sockets and pipes ('freeport bench fabric' measures properly)"
"$freeport" bench fabric --quick --out "$out/fabric" 2>"$out/fabric.notes"
echo "$out/fabric/fabric-latency.svg, $out/fabric/fabric-throughput.svg"

echo
echo "10. unmodified programs, plain and with accelerated sockets in turn: redis, nginx, memcached"
echo "   and a bulk transfer ('freeport bench sockets' measures properly)"
"$freeport" bench sockets --quick --case redis --case nginx --case memcached --case bulk \
    --out "$out/sockets" 2>"$out/sockets.notes"
echo "$out/sockets/sockets-applications.svg"

echo
echo "11. the key-value engine: parameters for a mix of sizes, operations in memory beside the"
echo "   standard library's map and the limit of memory, and memory accesses per operation"
echo "   beside the published ones ('freeport bench kv' measures properly)"
"$freeport" kv tune --pairs 10:7 --pairs 62:3 --utilisation 0.5
"$freeport" bench kv --quick --case engine-get --case engine-put --case accesses \
    --out "$out/kv" 2>"$out/kv.notes"

echo
echo "12. the key-value server: commands of any type from redis-cli's counterpart, a script, an"
echo "   update of a vector inside a value, memcached's protocol, redis' own benchmark; batches"
echo "   over shared memory, a function of a user, and the server beside redis and memcached"
echo "   ('freeport bench kv' measures properly)"
bash scripts/demo-kv.sh "$freeport" "$out"
echo
bash scripts/demo-kv-cluster.sh "$freeport" "$out"

echo
echo "13. the planner: which way a get of a key-value store takes on a SmartNIC, and why; settings"
echo "   for services, the load of the links, and two applications on the simulated machine"
"$freeport" plan plan key-value --svg "$out/plan-load.svg" --out "$out/plan.toml"
"$freeport" plan apply "$out/plan.toml" --to "$out/placement.toml"
"$freeport" plan study key-value --gets A5:185 --gets A4
"$freeport" plan study replication --writes auto:8
echo "$out/plan-load.svg, $out/placement.toml"
