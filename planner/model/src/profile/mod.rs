// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles of devices: what a host, a NIC and its processor can do, as numbers with units and
//! sources.
//!
//! A profile is a TOML file with a line for each parameter:
//!
//! ```toml
//! [switch]
//! pass = { value = 300, unit = "ns", source = "off-path SmartNIC study, 3.1" }
//! ```
//!
//! A parameter that was fitted to published results, because nobody has published it, has
//! `fitted = true`. [`SECTIONS`] lists all parameters; a profile has each of them once.

mod built_in;
mod check;
mod error;
mod parameters;
mod random;
mod read;
mod write;

pub use built_in::{BUILT_IN, built_in, built_in_text};
pub use error::{Problem, ProfileError};
pub use parameters::{
    Client, Dma, End, Key, Link, Network, Nic, Pcie, Profile, Rnic, SECTIONS, Switch,
};
pub use random::random;
pub use write::with_values;

/// Origin of a parameter's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The publication and its section, or the reason.
    pub source: String,
    /// Whether the value was fitted to published results.
    pub fitted: bool,
}
