// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A machine that was measured: a profile with few parameters of its path over shared memory, and
//! estimates that are arithmetic with them.
//!
//! One-sided requests are copies by the core that posts them. So their time is a sum: of a fixed
//! part, and of parts for addresses and bytes that only a farther cache or the memory holds. A
//! message needs a core on both sides.
//!
//! The file has the form of all [`parameters`](crate::parameters), with `kind = "machine"`.

mod check;
mod estimate;
mod parameters;
mod request;
mod time;

pub use check::KIB;
pub use estimate::{Estimate, Parts};
pub use parameters::{
    Atomic, Cache, Copying, Machine, Measured, Message, SECTIONS, Together, Wait,
};
pub use request::{Operation, PATH, Request, RequestError};
pub use time::{Shares, Weight, batch_share, copy_weights, message_weights, shares, word_weights};

use crate::parameters::{ProfileError, parse, text_of};

impl Machine {
    /// Reads a profile from the text of a file, whose name appears in errors.
    ///
    /// # Errors
    /// The text is not a complete and consistent profile of a machine.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProfileError> {
        parse(file, text)
    }

    /// Returns the text of the profile, below a comment of these lines.
    pub fn text(&self, comment: &[&str]) -> String {
        text_of(self, comment)
    }
}
