// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether something has come since one looked last, while older entries have not been read yet:
//! what an edge-triggered wait reports.

use crate::receiver::Place;
use crate::{Kind, Local, Receiver, Remote};

/// How far one has seen what came; by default nothing of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    place: Place,
    /// The memory that this is in, if the receiver has not been there, and where it begins.
    elsewhere: Option<(u64, Place)>,
    /// Whether it has been seen that there is no entry, but something else.
    faulty: bool,
}

impl<L: Local + Clone, R: Remote + Clone> Receiver<L, R> {
    /// Moves `seen` behind all that has come, and says whether anything had come since it was
    /// there. What reading has passed counts as seen.
    ///
    /// Where the ring goes on in other memory, `elsewhere` has that of a name, and how many bytes
    /// that is. What breaks the protocol counts as news once.
    ///
    /// # Safety
    /// What `elsewhere` gives has so many bytes, and was zero before the sender moved there. Names
    /// that go round in a circle come to an end there.
    pub unsafe fn has_news(
        &self,
        seen: &mut Seen,
        mut elsewhere: impl FnMut(u64) -> Option<(L, usize)>,
    ) -> bool {
        let head = self.place();
        if seen.place.head < head.head || seen.place.sequence < head.sequence {
            *seen = Seen { place: head, ..Seen::default() };
        }
        // The receiver has gone there itself.
        seen.elsewhere = seen.elsewhere.filter(|(_, begin)| begin.sequence > head.sequence);
        let mut look_on = |(name, begin)| {
            let (memory, capacity) = elsewhere(name)?;
            // SAFETY: as the caller says.
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
