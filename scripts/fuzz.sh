#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Fuzzes the named readers, or all, each for FREEPORT_FUZZ_SECONDS (60), starting from earlier
# findings. With FREEPORT_FUZZ_KEEP=1, inputs that reach more code of a reader are kept. Stops at
# the first reader that panics, hangs, or takes too much memory.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../tests"
seconds=${FREEPORT_FUZZ_SECONDS:-60}
readers=("$@")
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "fuzzing needs a nightly compiler and cargo-fuzz:" >&2
    echo "    rustup toolchain install nightly" >&2
    echo "    cargo install --locked cargo-fuzz" >&2
    exit 1
fi
if [ ${#readers[@]} = 0 ]; then
    mapfile -t readers < <(cargo +nightly fuzz list)
fi

FREEPORT_SEEDS=$PWD/fuzz/corpus cargo test --locked --quiet --test untrusted samples_are_written
limits=(-max_len=4096 -timeout=20 -rss_limit_mb=3000)
for reader in "${readers[@]}"; do
    found=fuzz/corpus/$reader
    kept=fuzz/kept/$reader
    mkdir -p "$found"
    cargo +nightly fuzz run "$reader" "$found" -- -max_total_time="$seconds" "${limits[@]}"
    if [ "${FREEPORT_FUZZ_KEEP:-}" = 1 ]; then
        # Keeps only inputs that reach new code, not those that reach code more often: a few files.
        mkdir -p "$kept"
        cargo +nightly fuzz run "$reader" "$kept" "$found" -- \
            -merge=1 -use_counters=0 "${limits[@]}"
    fi
done
