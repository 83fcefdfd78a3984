// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All published results of the study of off-path SmartNICs beside the planner's: those of paths,
//! from the model, and those of the two case studies, which run on the simulated machine.

#![forbid(unsafe_code)]

pub mod basis;
pub mod page;

pub use basis::basis;

use freeport_plan_model::Profile;
use freeport_plan_model::study::{self, Row};
use freeport_study_kv::peaks::{self, Sizes};
use freeport_study_replication::model;

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
