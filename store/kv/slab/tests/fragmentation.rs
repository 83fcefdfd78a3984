// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Share of a full range that is in use although sizes change at random.

use fastrand::Rng;
use freeport_kv_slab::{Class, Options, Slabs};
use freeport_testbed::{note, usual_or_long};

const UNITS: u32 = 1 << 18;

fn inline() -> Options {
    Options { has_background_merge: false, ..Options::default() }
}

/// Fills the range, then replaces blocks at random, several times what fits. Returns the smallest
/// share that was in use when an allocation failed.
fn least_share_in_use(seed: u64, sizes: std::ops::Range<u32>) -> f64 {
    let (mut random, mut least) = (Rng::with_seed(seed), 1.0_f64);
    let mut slabs = Slabs::new(1..UNITS, inline());
    let (mut held, mut replaced) = (Vec::new(), 0);
    while replaced < usual_or_long(4, 40) * u64::from(UNITS) {
        let class = Class::holding_units(random.u32(sizes.clone())).expect("a class");
        match slabs.allocate(class) {
            Some(unit) => {
                held.push((unit, class));
                replaced += u64::from(class.units());
            }
            None => {
                least = least.min(slabs.used_bytes() as f64 / f64::from(UNITS * 16));
                // The next attempts find one or two blocks of other sizes.
                for _ in 0..4 {
                    let (unit, class) = held.swap_remove(random.usize(..held.len()));
                    slabs.free(unit, class);
                }
            }
        }
    }
    least
}

#[test]
fn random_sizes_leave_little_memory_unused() {
    for (sizes, share) in [(1..5, 0.9), (2..33, 0.9), (1..200, 0.9), (32..33, 0.9)] {
        let least = least_share_in_use(1, sizes.clone());
        note(format!("sizes {sizes:?}: {least:.4} of a full range is in use"));
        assert!(least > share, "{least} of the range is in use if sizes are {sizes:?}");
    }
}
