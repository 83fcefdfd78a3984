// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kinds of entries, with their numbers in a header.

/// Kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of the application.
    Data = 1,
    /// The ring continues at its start.
    Wrap = 3,
    /// The sender will send nothing more.
    Shutdown = 5,
    /// The ring continues in other memory, which the payload, one word, names.
    Move = 11,
}

impl Kind {
    /// Returns the kind with this number; `None` if no kind has it.
    #[inline]
    pub(crate) const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Data,
            3 => Self::Wrap,
            5 => Self::Shutdown,
            11 => Self::Move,
            _ => return None,
        })
    }
}
