// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether entries have arrived since the last check, while older entries have not been read yet:
//! the condition that an edge-triggered wait reports.

use crate::receiver::Place;
use crate::{Kind, Local, Receiver, Remote};

/// Position up to which entries have been seen; by default none.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    place: Place,
    /// Name of the memory that the position is in, if the receiver has not moved there, and where
    /// it begins.
    elsewhere: Option<(u64, Place)>,
    /// Whether something that is not an entry has been seen.
    faulty: bool,
}

impl<L: Local + Clone, R: Remote + Clone> Receiver<L, R> {
    /// Moves `seen` past everything that has arrived, and returns whether anything had arrived
    /// since the last call. Entries that were read count as seen.
    ///
    /// Where the ring continues in other memory, `elsewhere` returns the memory of a name, and its
    /// number of bytes. A violation of the protocol counts as news once.
    ///
    /// # Safety
    /// Memory that `elsewhere` returns has the stated number of bytes, and was zero before the
    /// sender moved there. If names form a cycle, `elsewhere` ends it by returning none.
    pub unsafe fn has_news(
        &self,
        seen: &mut Seen,
        mut elsewhere: impl FnMut(u64) -> Option<(L, usize)>,
    ) -> bool {
        let head = self.place();
        if seen.place.head < head.head || seen.place.sequence < head.sequence {
            *seen = Seen { place: head, ..Seen::default() };
        }
        // The receiver has moved there itself.
        seen.elsewhere = seen.elsewhere.filter(|(_, begin)| begin.sequence > head.sequence);
        let mut look_on = |(name, begin)| {
            let (memory, capacity) = elsewhere(name)?;
            // SAFETY: the caller upholds the contract for `elsewhere`.
            unsafe { self.looking_on(begin, memory, capacity) }
        };
        let mut other = seen.elsewhere.and_then(&mut look_on);
        if seen.faulty || other.is_none() && seen.elsewhere.is_some() {
            return false;
        }
        let mut found = false;
        loop {
            let ring = other.as_ref().unwrap_or(self);
            let (entry, behind) = match ring.peek_behind(seen.place) {
                Ok(Some(next)) => next,
                Ok(None) => return found,
                Err(_) => {
                    seen.faulty = true;
                    return true;
                }
            };
            (seen.place, found) = (behind, true);
            if entry.kind == Kind::Move {
                seen.elsewhere = Some((ring.name_of(&entry), behind));
                let Some(next) = seen.elsewhere.and_then(&mut look_on) else { return found };
                other = Some(next);
            }
        }
    }
}
