#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Builds the simulated card with other numbers of lanes than four, and runs the tests that compare
# it with the interpreter. Each build takes a minute, so `make test` leaves this out.
#
#   scripts/test-lanes.sh              # 1, 2, 3, 6 and 8 lanes
#   scripts/test-lanes.sh 2            # these
#   FREEPORT_LONG=1 scripts/test-lanes.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lanes=("$@")
[[ ${#lanes[@]} -gt 0 ]] || lanes=(1 2 3 6 8)
for count in "${lanes[@]}"; do
    echo "== $count lanes"
    # A separate folder, so that the card with four lanes need not be rebuilt.
    FREEPORT_LANES=$count "${CARGO:-cargo}" test --locked --target-dir target/lanes \
        -p freeport-card --test all -- --nocapture \
        lanes:: streams:: random_programs::
done
