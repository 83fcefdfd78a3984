// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Known contents of the function's own frame before each instruction: values that were stored in
//! one piece and are still intact on all paths. Together with the liveness of bytes they determine
//! which stores are needed, and what a load returns.

use super::facts::{Fact, Type};
use super::state::State;
use super::unknown::Place;
use crate::abi::FRAME_BYTES;

/// Facts of frames that are kept for a program, at most; beyond that limit no facts about frames
/// are reported. Programs of `programs/xdp` have a few thousand.
pub(super) const SPILLS_MAX: usize = 400_000;

/// Bytes of the function's own frame with a known value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spill {
    /// Offset of the first byte from the frame pointer, which is negative.
    pub offset: i16,
    /// Number of bytes: 1, 2, 4 or 8. With fewer than 8 the value is an unsigned number.
    pub size: u8,
    /// Fact about the value.
    pub fact: Fact,
}

/// Returns the known contents of the top frame in a state.
pub(super) fn spills(state: &State) -> Vec<Spill> {
    let Some(frame) = state.frames.last() else { return vec![] };
    let pieces = frame.content.pieces().iter().map(|piece| Spill {
        offset: piece.start as i16 - FRAME_BYTES as i16,
        size: piece.size as u8,
        fact: Fact::of(state, &piece.value),
    });
    pieces.filter(|spill| is_known(&spill.fact)).collect()
}

/// Intersects the facts of one path with those of another.
pub(super) fn join(known: &mut Vec<Spill>, more: &[Spill], slot: usize) {
    known.retain_mut(|spill| {
        let place = |other: &&Spill| (other.offset, other.size) == (spill.offset, spill.size);
        let Some(other) = more.iter().find(place) else { return false };
        // The depth of the frame does not matter: unknown values are not kept.
        let place = Place::Stack { depth: 0, offset: spill.offset };
        spill.fact = spill.fact.join(&other.fact, slot, place);
        is_known(&spill.fact)
    });
}

fn is_known(fact: &Fact) -> bool {
    !matches!(fact.holds, Type::Unknown(_) | Type::Nothing)
}

#[cfg(test)]
mod tests {
    use crate::analysis::Analysis;
    use crate::analysis::analysed::analysed;

    fn spilled(analysis: &Analysis, slot: usize) -> Vec<String> {
        let spills = analysis.spills(slot).iter();
        spills.map(|it| format!("{} {}: {}", it.offset, it.size, it.fact)).collect()
    }

    #[test]
    fn what_is_stored_is_known_until_it_is_overwritten() {
        let analysis = analysed(
            "*(u64 *)(r10 - 8) = r1
             *(u32 *)(r10 - 16) = 7
             *(u16 *)(r10 - 4) = 1
             r0 = 0
             exit",
        );
        assert_eq!(spilled(&analysis, 0), [""; 0]);
        assert_eq!(spilled(&analysis, 1), ["-8 8: context+0"]);
        assert_eq!(spilled(&analysis, 2), ["-16 4: 0x7", "-8 8: context+0"]);
        assert_eq!(spilled(&analysis, 3), ["-16 4: 0x7", "-4 2: 0x1"]);
    }

    #[test]
    fn where_paths_meet_only_what_both_have_is_kept() {
        let analysis = analysed(
            "r2 = *(u32 *)(r1 + 12)
             if r2 == 0 goto other
             *(u64 *)(r10 - 8) = r1
             *(u64 *)(r10 - 16) = 1
             *(u64 *)(r10 - 24) = 1
             goto join
             other:
             *(u64 *)(r10 - 8) = r1
             *(u64 *)(r10 - 16) = 3
             *(u64 *)(r10 - 32) = r1
             join:
             r0 = 0
             exit",
        );
        assert_eq!(spilled(&analysis, 9), ["-16 8: 0x1..=0x3", "-8 8: context+0"]);
    }

    #[test]
    fn each_function_has_its_own() {
        let analysis = analysed(
            "*(u64 *)(r10 - 8) = r1
             call inner
             r0 = 0
             exit
             inner:
             *(u64 *)(r10 - 16) = 5
             r0 = 0
             exit",
        );
        assert_eq!(spilled(&analysis, 4), [""; 0]);
        assert_eq!(spilled(&analysis, 5), ["-16 8: 0x5"]);
        assert_eq!(spilled(&analysis, 2), ["-8 8: context+0"]);
    }
}
