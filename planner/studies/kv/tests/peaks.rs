// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rates and latencies of the alternatives in the model, and the study's.

use freeport_plan_model::profile::built_in;
use freeport_study_kv::Alternative::{CacheReads, CallCache, HostReads, SplitReads};
use freeport_study_kv::peaks::{Peaks, Run, Sizes, peaks, rows};

#[test]
fn the_published_results_are_reached_in_their_order() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let peaks = peaks(&profile, &Sizes::default());
    let rows = rows(&peaks);
    let missed: Vec<_> = rows.iter().filter(|row| !row.is_reached()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let numbers = rows.iter().map(|row| row.number);
    assert_eq!(numbers.collect::<Vec<_>>(), [38, 38, 39, 40, 41, 42, 42, 42, 42, 43, 43]);
    let Peaks { cache_reads, combined, split_reads, plain_nic, host_reads, call_cache, .. } = peaks;
    let order = [cache_reads, combined, split_reads, plain_nic, host_reads, call_cache];
    assert!(order.is_sorted_by(|one, next| one > next), "{order:?}");
    assert!(peaks.switch > 0);
}

/// A row can be missed: without its weak cores, the processor would answer more.
#[test]
fn other_machines_have_other_results() {
    let mut profile = built_in("bluefield2").expect("the default").expect("a profile");
    assert!(profile.set_value("soc.cores", 16.0));
    let rows = rows(&peaks(&profile, &Sizes::default()));
    let missed: Vec<u32> =
        rows.iter().filter(|row| !row.is_reached()).map(|row| row.number).collect();
    assert!(missed.contains(&39) && !missed.contains(&40), "{missed:?}");
}

#[test]
fn alternatives_have_the_limits_that_the_study_names() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let sizes = Sizes::default();
    let run = Run::new(&profile, &sizes);
    for (alternative, expected) in [
        (HostReads, "reads in flight to the host"),
        (SplitReads, "network to clients"),
        (CallCache, "cores of the SoC"),
        (CacheReads, "network to clients"),
    ] {
        let usage = run.rate(|_| alternative);
        assert_eq!(usage.busiest.0, expected, "{alternative}: {usage:?}");
        assert_eq!(usage.misses, 0.0, "{alternative}: all items are cached");
        assert!(usage.host_cores == 0.0, "{alternative}: {usage:?}");
    }
    let usage = run.on_plain_nic().rate(|_| HostReads);
    assert_eq!(usage.busiest.0, "NIC cores");
}
