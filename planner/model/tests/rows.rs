// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The study's rows.

use freeport_plan_model::profile::built_in;
use freeport_plan_model::study;

#[test]
fn the_published_results_are_reached() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let rows = study::rows(&profile);
    let missed = rows.iter().filter(|row| !row.is_reached());
    let missed: Vec<u32> = missed.map(|row| row.number).collect();
    // Row 30 is about a file system.
    assert_eq!(missed, [30], "{rows:#?}");
    let numbers: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    assert!(numbers.iter().copied().eq(1..=31));
}
