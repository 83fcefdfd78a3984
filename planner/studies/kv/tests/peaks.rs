// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rates and latencies of the alternatives in the model, and the study's.

use freeport_plan_model::profile::built_in;
use freeport_study_kv::Alternative::{CacheReads, CallCache, HostReads, SplitReads};
use freeport_study_kv::layout::VALUE_MAX;
use freeport_study_kv::peaks::{Peaks, Run, Sizes, peaks, rows};

#[test]
fn the_published_results_are_reached_in_their_order() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let peaks = peaks(&profile, &Sizes::default()).expect("within the limits");
    let rows = rows(&peaks);
    let missed = rows.iter().filter(|row| !row.is_reached()).map(|row| row.metric);
    // They contradict other rows in the model; their texts say how.
    let expected = ["A4 and A5, to A1", "A4 and A5, to A4"];
    assert_eq!(missed.collect::<Vec<_>>(), expected, "{rows:#?}");
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
    let rows = rows(&peaks(&profile, &Sizes::default()).expect("within the limits"));
    let missed: Vec<u32> =
        rows.iter().filter(|row| !row.is_reached()).map(|row| row.number).collect();
    assert!(missed.contains(&39) && !missed.contains(&40), "{missed:?}");
}

#[test]
fn alternatives_have_the_limits_that_the_study_names() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let sizes = Sizes::default();
    let run = Run::new(&profile, &sizes).expect("within the limits");
    for (alternative, expected) in [
        (HostReads, "reads in flight to the host"),
        (SplitReads, "NIC cores"),
        (CallCache, "cores of the SoC"),
        (CacheReads, "network to clients"),
    ] {
        let usage = run.rate(|_| alternative).expect("all keys fit");
        assert_eq!(usage.busiest.0, expected, "{alternative}: {usage:?}");
        assert_eq!(usage.misses, 0.0, "{alternative}: all items are cached");
        assert!(usage.host_cores == 0.0, "{alternative}: {usage:?}");
    }
    let usage = run.on_plain_nic().rate(|_| HostReads).expect("all keys fit");
    assert_eq!(usage.busiest.0, "NIC cores");
}

/// All of them can be arguments of a command.
#[test]
fn impossible_sizes_are_errors() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let sizes = Sizes::default();
    for (sizes, expected) in [
        (Sizes { keys: 0, ..sizes }, "keys is 0; it has to be 1 to 2^20"),
        (Sizes { keys: 100_000_000, value_bytes: 1, ..sizes }, "keys is 100000000;"),
        (Sizes { keys: u64::MAX, ..sizes }, "keys is 18446744073709551615;"),
        (Sizes { value_bytes: 0, ..sizes }, "value_bytes is 0;"),
        (Sizes { keys: 1, value_bytes: 16 << 20, ..sizes }, "value_bytes is 16777216;"),
        (Sizes { keys: 1 << 20, value_bytes: VALUE_MAX, ..sizes }, "bytes of all items"),
        (Sizes { buckets_per_key: 0, ..sizes }, "buckets is 0;"),
        (Sizes { buckets_per_key: u64::MAX, ..sizes }, "buckets is 18446744073709551615;"),
        (Sizes { skew: 1.0, ..sizes }, "the skew is 1;"),
        (Sizes { skew: f64::NAN, ..sizes }, "the skew is NaN;"),
    ] {
        let error = Run::new(&profile, &sizes).err().expect("impossible").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    // A bucket for each key: some keys have too many neighbours.
    let sizes = Sizes { keys: 100_000, buckets_per_key: 1, value_bytes: 1, ..sizes };
    let run = Run::new(&profile, &sizes).expect("within the limits");
    let error = run.rate(|_| HostReads).expect_err("too full").to_string();
    assert!(
        error.starts_with("the store is full: the 64 buckets that can have the key"),
        "{error}"
    );
    for (keys, value_bytes, skew) in [(1, 1, 1.0 - f64::EPSILON), (2, VALUE_MAX, 0.5)] {
        let sizes = Sizes { keys, buckets_per_key: 2, value_bytes, skew };
        let run = Run::new(&profile, &sizes).expect("within the limits").skewed();
        assert!(run.latency(HostReads).expect("all keys fit") > 0.0);
    }
}
