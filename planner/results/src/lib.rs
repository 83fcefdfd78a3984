// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All published results of the study of off-path SmartNICs beside the planner's: those of paths,
//! from the model, and those of the two case studies, which run on the simulated machine.

#![forbid(unsafe_code)]

pub mod page;

use freeport_plan_model::Profile;
use freeport_plan_model::study::{self, Basis, Row};
use freeport_study_kv::peaks::{self, Sizes};
use freeport_study_replication::model;

/// Rows to which sizes and times of the case studies were fitted, which the study does not state.
const FITTED: [u32; 9] = [34, 35, 36, 38, 39, 40, 41, 42, 43];

/// Returns rows 1 to 43 of the study's table for a profile, in their order. `on_done` gets the
/// number of rows that are there.
pub fn rows(profile: &Profile, mut on_done: impl FnMut(usize)) -> Vec<Row> {
    let key_value = |profile: &Profile| {
        let peaks = peaks::peaks(profile, &Sizes::default());
        peaks::rows(&peaks.expect("the default sizes are within the limits"))
    };
    let parts: [fn(&Profile) -> Vec<Row>; 3] = [study::rows, model::rows, key_value];
    let mut rows = vec![];
    for part in parts {
        rows.extend(part(profile));
        on_done(rows.len());
    }
    rows
}

/// Returns the relation of a row to the parameters of a profile and of the case studies.
pub fn basis(profile: &Profile, row: u32) -> Basis {
    match Basis::of(profile, row) {
        Basis::Follows if FITTED.contains(&row) => Basis::Fitted,
        of_profile => of_profile,
    }
}
