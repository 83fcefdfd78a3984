// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Entries of `unsteady-cases.txt`.

use std::collections::BTreeSet;

/// Cases and random programs that may differ once.
pub fn unsteady_cases() -> BTreeSet<&'static str> {
    let lines = include_str!("../../unsteady-cases.txt").lines();
    let entries = lines.filter_map(|line| line.split_once(" | ")).map(|(name, _)| name);
    entries.filter(|name| *name != "NAME").collect()
}
