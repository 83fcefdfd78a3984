// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditional jumps that only check whether the packet is long enough.

/// A comparison that only checks whether the packet, or its metadata, is long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundsCheck {
    /// Slot of the jump.
    pub slot: usize,
    /// Whether it checks the metadata.
    pub is_metadata: bool,
    /// Least and greatest number of bytes that it requires from the start. If the two are equal,
    /// the outcome depends on the length alone.
    pub needed: (i64, i64),
    /// Whether the bytes exist if the jump is taken; otherwise they exist if it falls through.
    pub holds_if_taken: bool,
    /// Slot where execution continues if they do not exist.
    pub failure: usize,
    /// Result of the program if they do not exist, provided that it then exits at once, without
    /// side effects and always with this result.
    pub verdict: Option<u64>,
}

/// Classification of a conditional jump over all paths that reach it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Checked {
    /// It has not been reached.
    #[default]
    Never,
    /// The same check of the length on all paths.
    Length(BoundsCheck),
    /// Something else on some paths.
    Other,
}

impl Checked {
    /// Returns the check of the length, if it is one.
    pub fn length(&self) -> Option<&BoundsCheck> {
        match self {
            Self::Length(check) => Some(check),
            Self::Never | Self::Other => None,
        }
    }

    /// Joins with the classification on another path.
    pub fn join(&self, check: Option<BoundsCheck>) -> Self {
        match (*self, check) {
            (Self::Never, Some(check)) => Self::Length(check),
            (Self::Length(known), Some(check)) if known.asks_as(&check) => {
                let needed =
                    (known.needed.0.min(check.needed.0), known.needed.1.max(check.needed.1));
                let verdict = known.verdict.filter(|_| known.verdict == check.verdict);
                Self::Length(BoundsCheck { needed, verdict, ..known })
            }
            _ => Self::Other,
        }
    }
}

impl BoundsCheck {
    /// Returns whether another check tests the same memory with the same outcome.
    fn asks_as(&self, other: &Self) -> bool {
        (self.is_metadata, self.holds_if_taken) == (other.is_metadata, other.holds_if_taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analysed::{PACKET, analysed};

    #[test]
    fn a_check_of_the_length_is_known_with_its_failure() {
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 14\nif r4 > r3 goto short\nr0 = 2\nexit\n\
             short:\nr0 = 1\ngoto out\nout:\nexit"
        );
        let expected = BoundsCheck {
            slot: 4,
            is_metadata: false,
            needed: (14, 14),
            holds_if_taken: false,
            failure: 7,
            verdict: Some(1),
        };
        assert_eq!(analysed(&text).bounds_check(4), Some(&expected));
    }

    fn verdict(failure: &str) -> Option<u64> {
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 14\nif r4 <= r3 goto enough\n{failure}\nexit\n\
             enough:\nr0 = 2\nexit"
        );
        let analysis = analysed(&text);
        let check = analysis.bounds_check(4).expect("it is one");
        assert_eq!((check.holds_if_taken, check.failure), (true, 5));
        check.verdict
    }

    #[test]
    fn a_failure_with_effects_has_no_verdict() {
        assert_eq!(verdict("r0 = 1\nr0 += 1"), Some(2));
        assert_eq!(verdict("r0 = 1\nif r0 == 1 goto +1\nr0 = 3"), Some(1));
        assert_eq!(verdict("r0 = 1\n*(u64 *)(r10 - 8) = r0\nr0 = *(u64 *)(r10 - 8)"), None);
        assert_eq!(verdict("call 0x5\nr0 = 1"), None);
        assert_eq!(verdict("r0 = *(u32 *)(r1 + 12)"), None, "it is not always the same");
        assert_eq!(verdict("r0 = *(u8 *)(r2 + 0)\nr0 = 1"), None, "it may miss");
        assert_eq!(verdict("r0 = *(u32 *)(r1 + 12)\nr0 = 1"), Some(1));
    }

    #[test]
    fn a_comparison_that_is_something_else_on_another_way_is_no_check() {
        let check = |other: &str| {
            let text = format!(
                "{PACKET}r5 = *(u32 *)(r1 + 12)\nr4 = r2\nr4 += 14\nif r5 == 0 goto join\n\
                 {other}\njoin:\nif r4 > r3 goto out\nr0 = 2\nout:\nexit"
            );
            let analysis = analysed(&text);
            analysis.bounds_check(7).map(|check| check.needed)
        };
        assert_eq!(check("r4 += 20"), Some((14, 34)));
        assert_eq!(check("r4 = 5"), None);
        assert_eq!(check("r4 = r3"), None);
    }
}
