// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The page of results is what the model returns.

use freeport_plan_model::profile::built_in;
use freeport_plan_results::{page, rows};
use std::collections::BTreeSet;

/// `BLESS=1` writes the page of results.
#[test]
fn the_page_of_results_is_up_to_date() {
    let profile = built_in("bluefield2").expect("the default").expect("a profile");
    let rows = rows(&profile, |_| ());
    let missed: Vec<u32> =
        rows.iter().filter(|row| !row.is_reached()).map(|row| row.number).collect();
    // Row 30 is about a file system. Gains to A1 and A4 contradict other rows in the model.
    assert_eq!(missed, [30, 42, 42], "{rows:#?}");
    let numbers: BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    assert!(numbers.iter().copied().eq(1..=43));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/paths.md");
    let page = page::markdown(&profile, &rows);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let text = std::fs::read_to_string(path).expect("the page");
    assert_eq!(text, page, "BLESS=1 writes the page");
}
