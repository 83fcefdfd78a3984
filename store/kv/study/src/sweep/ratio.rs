// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The largest index with which a table can be filled, by trial.
//!
//! A larger index has fewer collisions, and leaves less memory for blocks. So the largest index
//! that still lets all pairs fit costs the fewest accesses (KV-Direct, hash table).

use super::Trial;
use crate::table::{Refused, Table};

/// Index ratios are found within this share of memory.
const RESOLUTION: f64 = 1.0 / 512.0;
/// Smaller indexes are not tried: their chains are too long to be of use.
const SMALLEST: f64 = 1.0 / 64.0;

/// A table that was filled for a trial.
pub struct Filled {
    /// The table.
    pub table: Box<dyn Table>,
    /// Share of memory that its index has.
    pub index_ratio: f64,
    /// Number of pairs in it.
    pub pairs: u64,
}

/// Fills a table that has the largest possible index. `make` returns an empty table whose index has
/// the given share of memory, or `None` if there is no such table.
///
/// # Errors
/// The reason for which the last table refused a pair, if the pairs fit at no ratio.
pub fn fill_largest_index(
    make: &dyn Fn(f64) -> Option<Box<dyn Table>>,
    trial: &Trial,
) -> Result<Filled, Refused> {
    let (mut low, mut high) = (0.0, 1.0);
    let mut best = Err(Refused::Memory);
    while high - low > RESOLUTION && high > SMALLEST {
        let index_ratio = (low + high) / 2.0;
        let Some(mut table) = make(index_ratio) else {
            low = index_ratio;
            continue;
        };
        match trial.fill(table.as_mut()) {
            Ok(pairs) => {
                low = index_ratio;
                best = Ok(Filled { table, index_ratio, pairs });
            }
            // A cuckoo table whose index is too small.
            Err(Refused::Displacement) => low = index_ratio,
            Err(reason @ Refused::Memory) => {
                high = index_ratio;
                best = best.map_err(|_| reason);
            }
            Err(reason) => return Err(reason),
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metered::Metered;
    use crate::rivals::{Cuckoo, Options};
    use crate::workload::Sizes;

    fn trial(pair_bytes: usize, utilisation: f64) -> Trial {
        Trial { pairs: Sizes::fixed(pair_bytes), utilisation, operations: 1, seed: 1 }
    }

    #[test]
    fn a_larger_index_would_not_fit() {
        let make = |ratio| -> Option<Box<dyn Table>> {
            Some(Box::new(Metered::new(1 << 20, ratio, 10, 1).ok()?))
        };
        for (pair_bytes, utilisation) in [(10, 0.5), (10, 0.6), (62, 0.5)] {
            let trial = trial(pair_bytes, utilisation);
            let filled = fill_largest_index(&make, &trial).expect("pairs fit");
            assert!((filled.table.utilisation() / utilisation - 1.0).abs() < 0.001);
            let mut larger = make(filled.index_ratio + 1.0 / 32.0).expect("valid");
            assert_eq!(trial.fill(larger.as_mut()), Err(Refused::Memory));
        }
    }

    #[test]
    fn what_cannot_be_filled_is_refused() {
        let make = |index_ratio| -> Option<Box<dyn Table>> {
            let options =
                Options { memory_bytes: 1 << 20, index_ratio, smallest_block_bytes: 32, seed: 1 };
            Some(Box::new(Cuckoo::new(&options).ok()?))
        };
        assert!(fill_largest_index(&make, &trial(10, 0.15)).is_ok());
        let refused = fill_largest_index(&make, &trial(10, 0.55)).map(|filled| filled.index_ratio);
        assert_eq!(refused, Err(Refused::Memory));
    }
}
