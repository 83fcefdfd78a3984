// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Published results about file replication.

use freeport_plan_model::profile::built_in;
use freeport_study_replication::model::machine::{MEMORY_MAX, Measured, Run, RunError};
use freeport_study_replication::model::rows;
use freeport_study_replication::{Alternative, Policy};
use std::time::Duration;

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
        run.measure(&profile).expect("one client, in bounds")
    };
    let (usual, large) = (measure(256 << 10, 64), measure(16 << 20, 1));
    assert!(large.goodput < 0.5 * usual.goodput, "{large:?} {usual:?}");
    assert!(large.wait > usual.wait, "{large:?} {usual:?}");
    println!("{} {}", large.goodput, usual.goodput);
}

/// Runs that would take all memory, or never end, say so.
#[test]
fn runs_out_of_bounds_are_refused() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let error = |change: fn(&mut Run)| {
        let mut run = Run::new(8, Policy::Auto);
        change(&mut run);
        run.measure(&profile).expect_err("it is out of bounds")
    };
    let large = error(|run| {
        run.options.chunk_bytes = 16 << 20;
        run.options.backups = 8;
    });
    assert!(matches!(large, RunError::Memory(needed) if needed > MEMORY_MAX), "{large}");
    assert!(large.to_string().contains("a run may need 4096 MiB; use shorter chunks"), "{large}");
    assert!(matches!(error(|run| run.options.backups = u16::MAX), RunError::Memory(_)));
    assert!(matches!(error(|run| run.window = u32::MAX), RunError::Memory(_)));
    let settings: [fn(&mut Run); 6] = [
        |run| run.clients.clear(),
        |run| run.window = 0,
        |run| run.chunks = [1, 0],
        |run| run.noise = f64::NAN,
        |run| run.noise = 1.1,
        |run| run.options.chunk_bytes = 8,
    ];
    for change in settings {
        let refused = error(change);
        assert!(matches!(refused, RunError::Setting(_)), "{refused}");
    }
    let slow = error(|run| run.options.costs.write.each = Duration::from_secs(2));
    assert_eq!(slow, RunError::Stalled);
}
