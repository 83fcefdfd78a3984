// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Conditional jumps that only ask whether the packet is long enough.

/// A comparison that only asks whether the packet, or its metadata, is long enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundsCheck {
    /// The jump's slot.
    pub slot: usize,
    /// Whether it asks for the metadata.
    pub is_metadata: bool,
    /// How many bytes from the start on it asks for: at least and at most. Where both are one
    /// number, the answer depends on the length alone.
    pub needed: (i64, i64),
    /// Whether they are there if the jump is made; if not, they are if it is not made.
    pub holds_if_taken: bool,
    /// The slot where control goes on if they are not there.
    pub failure: usize,
    /// What the program ends with if they are not there, if it does so at once, without any effect
    /// and always with this.
    pub verdict: Option<u64>,
}

/// What a conditional jump is, on all ways that control comes there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Checked {
    /// Control has not come there.
    #[default]
    Never,
    /// The same check of the length on all of them.
    Length(BoundsCheck),
    /// Something else on some of them.
    Other,
}

impl Checked {
    /// The check that it is.
    pub fn length(&self) -> Option<&BoundsCheck> {
        match self {
            Self::Length(check) => Some(check),
            Self::Never | Self::Other => None,
        }
    }

    /// What it is if it is this, or nothing of the kind, on another way.
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
    /// Whether another check asks for the same memory, and answers the same way.
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
