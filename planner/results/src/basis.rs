// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a row was fitted, or follows.

use freeport_plan_model::Profile;
use freeport_plan_model::study::Basis;

/// Rows to which sizes and times of the case studies were fitted, which the study does not state.
const FITTED: [u32; 9] = [34, 35, 36, 38, 39, 40, 41, 42, 43];

/// Returns the relation of a row to the parameters of a profile and of the case studies.
pub fn basis(profile: &Profile, row: u32) -> Basis {
    match Basis::of(profile, row) {
        Basis::Follows if FITTED.contains(&row) => Basis::Fitted,
        of_profile => of_profile,
    }
}
