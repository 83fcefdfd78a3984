// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Transfer of variables and tables from one graph to the other.

use super::plan::{Pair, Plan};
use super::report::{KeptTable, Replacement};
use crate::device::Transfer;
use freeport_native::Place;

/// Elements that are copied at once between devices of different kinds.
const ELEMENTS_AT_ONCE: u64 = 1 << 16;

/// Moves all corresponding variables and tables.
pub(super) fn keep(
    plan: &Plan,
    old: &mut dyn Transfer,
    new: &mut dyn Transfer,
    report: &mut Replacement,
) {
    for (pair, depth) in &plan.variables {
        keep_variable(pair, *depth, old, new);
        report.variables.push(pair.name.clone());
    }
    for pair in &plan.tables {
        report.tables.push(keep_table(pair, old, new));
    }
}

fn keep_variable(pair: &Pair<Place>, depth: u64, old: &mut dyn Transfer, new: &mut dyn Transfer) {
    if let (Some(from), Some(to)) = (old.native(), new.native()) {
        to.take_variable(pair.new, from, pair.old);
        return;
    }
    let mut bytes = vec![];
    for first in (0..depth).step_by(ELEMENTS_AT_ONCE as usize) {
        bytes.clear();
        old.read_elements(pair.old, first..depth.min(first + ELEMENTS_AT_ONCE), &mut bytes);
        new.write_elements(pair.new, first, &bytes);
    }
}

fn keep_table(pair: &Pair<Place>, old: &mut dyn Transfer, new: &mut dyn Transfer) -> KeptTable {
    let path = pair.name.clone();
    if let (Some(from), Some(to)) = (old.native(), new.native())
        && let Some(entries) = to.take_table(pair.new, from, pair.old)
    {
        return KeptTable { path, entries, lost: 0 };
    }
    // Entries that the new program inserted at its start are removed.
    let mut begun = vec![];
    new.read_entries(pair.new, &mut |key, _| begun.push(key.to_vec()));
    begun.iter().for_each(|key| new.delete_entry(pair.new, key));
    let mut read = 0_u64;
    old.read_entries(pair.old, &mut |key, value| {
        read += 1;
        new.write_entry(pair.new, key, value);
    });
    let mut entries = 0_u64;
    new.read_entries(pair.new, &mut |_, _| entries += 1);
    // Entries of an array always exist, so the number read limits the count.
    let entries = entries.min(read);
    KeptTable { path, entries, lost: read - entries }
}
