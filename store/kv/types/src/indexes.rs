// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Indexes as clients write them: from 0 at the start, or from -1 backwards at the end.

use std::ops::Range;

/// Returns the indexes from `start` to `stop`, which is included, of a sequence of `len`. The parts
/// beyond either end are left out; a start behind the stop gives an empty range.
pub fn range(len: usize, start: i64, stop: i64) -> Range<usize> {
    let signed = i64::try_from(len).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index.saturating_add(signed) } else { index };
    let start = from_start(start).max(0);
    let end = from_start(stop).saturating_add(1).clamp(0, signed);
    if start < end { start as usize..end as usize } else { 0..0 }
}

/// Returns `index` counted from the start of a sequence of `len`; `None` beyond either end.
pub fn position(len: usize, index: i64) -> Option<usize> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { len.checked_sub(distance) } else { (distance < len).then_some(distance) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_both_ends() {
        assert_eq!(range(10, 0, -1), 0..10);
        assert_eq!(range(10, -3, 100), 7..10);
        assert_eq!(range(10, -100, 0), 0..1);
        assert_eq!(range(10, i64::MIN, i64::MAX), 0..10);
        let empty = [(3, 2), (10, 11), (0, -11), (i64::MAX, i64::MIN), (i64::MAX, i64::MAX)];
        for (start, stop) in empty {
            assert!(range(10, start, stop).is_empty(), "{start} to {stop}");
        }
        assert!(range(0, 0, -1).is_empty());
    }

    #[test]
    fn positions_count_from_either_end() {
        let found = [0, 9, 10, -1, -10, -11, i64::MAX, i64::MIN].map(|index| position(10, index));
        assert_eq!(found, [Some(0), Some(9), None, Some(9), Some(0), None, None, None]);
    }
}
