// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Merges by a second thread: allocation continues meanwhile, and no block is lost.

use crate::shadow::Shadow;
use fastrand::Rng;
use freeport_kv_slab::{Class, Options};
use freeport_testbed::usual_or_long;
use std::num::NonZero;

fn class(units: u32) -> Class {
    Class::holding_units(units).expect("a class")
}

/// The load shifts from small to large blocks while small ones are still allocated and freed.
fn shift(seed: u64, options: Options) -> Shadow {
    let mut random = Rng::with_seed(seed);
    let mut shadow = Shadow::new(1..usual_or_long(1 << 20, 1 << 24), options);
    while shadow.allocate(class(random.u32(1..5))) {}
    random.shuffle(&mut shadow.blocks);
    for _ in 0..shadow.blocks.len() * 9 / 10 {
        shadow.free(shadow.blocks.len() - 1);
    }
    // Large blocks from here on, so that memory that can be split becomes short again.
    for step in 0..60_000 {
        let at = random.usize(..shadow.blocks.len());
        let is_small = shadow.blocks[at].1 <= class(4);
        if step % 8 == 0 {
            shadow.allocate(class(random.u32(16..64)));
        } else if step % 2 == 0 {
            assert!(shadow.allocate(class(1)) || shadow.slabs.free_bytes() == 0);
        } else if is_small {
            shadow.free(at);
        }
    }
    shadow
}

#[test]
fn a_second_thread_merges_before_memory_is_exhausted() {
    let sort_threads = NonZero::new(2).expect("not zero");
    let options = Options { sort_threads, ..Options::default() };
    let mut shadow = shift(1, options);
    let events = shadow.slabs.statistics().events;
    assert!(events.background_merges > 0, "{events:?}");
    shadow.free_all();
    assert!(shadow.allocate(class(1 << 19)), "half of the range");
}

#[test]
fn without_a_second_thread_the_allocation_merges() {
    let options = Options { has_background_merge: false, ..Options::default() };
    let mut shadow = shift(1, options);
    let events = shadow.slabs.statistics().events;
    assert_eq!(events.background_merges, 0);
    assert!(events.merges > 0);
    shadow.free_all();
    assert!(shadow.allocate(class(1 << 19)), "half of the range");
}
