// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The study's rows.

use freeport_plan_model::profile::built_in;
use freeport_plan_model::study::{self, Row};
use std::sync::OnceLock;

/// The rows of the default profile.
fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        study::rows(&built_in("bluefield2").expect("the default").expect("a profile"))
    })
}

#[test]
fn the_published_results_are_reached() {
    let rows = rows();
    let missed = rows.iter().filter(|row| !row.is_reached());
    let missed: Vec<u32> = missed.map(|row| row.number).collect();
    // Row 30 is about a file system.
    assert_eq!(missed, [30], "{rows:#?}");
    let numbers: std::collections::BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    assert!(numbers.iter().copied().eq(1..=31));
}

/// A value that does not fit the results is found and corrected.
#[test]
fn a_wrong_value_is_fitted_again() {
    let mut profile = built_in("bluefield2").expect("the default").expect("a profile");
    assert!(profile.set_value("soc.doorbell", 235.0));
    let wrong = study::rows(&profile);
    assert!(!wrong.iter().find(|row| row.number == 22).expect("row 22").is_reached());
    let fit = freeport_plan_model::calibrate::fit(&profile, &["soc.doorbell".into()], |_| ());
    let missed = fit.rows.iter().filter(|row| !row.is_reached());
    assert_eq!(missed.map(|row| row.number).collect::<Vec<_>>(), [30]);
    assert!(!fit.changed.is_empty());
    for (name, _) in &fit.changed {
        assert!(profile.origins[name].fitted, "{name} was published");
    }
}
