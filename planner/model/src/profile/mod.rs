// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of devices: what a host, a NIC and its processor can do, as numbers with units and
//! sources.
//!
//! The form of the file is that of all [`parameters`](crate::parameters). [`SECTIONS`] lists them;
//! a profile has each of them once.

mod built_in;
mod check;
mod parameters;
mod random;
mod write;

pub use crate::parameters::{Key, Origin, Problem, ProfileError};
pub use built_in::{BUILT_IN, built_in, built_in_text};
pub use parameters::{Client, Dma, End, Link, Network, Nic, Pcie, Profile, Rnic, SECTIONS, Switch};
pub use random::random;
pub use write::with_values;

impl Profile {
    /// Reads a profile from the text of a file, whose name appears in errors.
    ///
    /// # Errors
    /// The text is not a complete and consistent profile.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProfileError> {
        crate::parameters::parse(file, text)
    }
}
