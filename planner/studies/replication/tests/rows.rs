// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Published results about file replication.

use freeport_plan_model::profile::built_in;
use freeport_study_replication::model::machine::{Measured, Run};
use freeport_study_replication::model::rows;
use freeport_study_replication::{Alternative, Policy};

#[test]
fn all_rows_are_reached() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let rows = rows(&profile);
    let numbers: Vec<u32> = rows.iter().map(|row| row.number).collect();
    assert_eq!(numbers, [32, 33, 34, 35, 36, 37, 37]);
    for row in rows {
        let (number, ours) = (row.number, row.ours_text());
        println!("{number} {}: {}, ours {ours}", row.metric, row.published);
        assert!(row.is_reached(), "row {number}, {}: {ours}", row.metric);
    }
}

/// With the same bytes in flight, the chunks of 16 MiB that the file system had before are slow.
#[test]
fn large_chunks_are_slow_through_the_nic_cores() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let measure = |chunk_bytes: usize, window: u32| -> Measured {
        let mut run = Run::new(1, Policy::Always(Alternative::A1));
        run.options.chunk_bytes = chunk_bytes;
        (run.options.log_slots, run.options.receive_slots) = (64, 32);
        run.window = window;
        run.chunks = if window > 1 { [64, 128] } else { [1, 4] };
        run.measure(&profile)
    };
    let (usual, large) = (measure(256 << 10, 64), measure(16 << 20, 1));
    assert!(large.goodput < 0.5 * usual.goodput, "{large:?} {usual:?}");
    assert!(large.wait > usual.wait, "{large:?} {usual:?}");
    println!("{} {}", large.goodput, usual.goodput);
}
