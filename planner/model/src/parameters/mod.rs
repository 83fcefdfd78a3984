// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of parameters: named numbers with units and sources, in sections.
//!
//! A file is TOML with a line for each parameter:
//!
//! ```toml
//! [switch]
//! pass = { value = 300, unit = "ns", source = "off-path SmartNIC study, 3.1" }
//! ```
//!
//! A parameter that was fitted to results, because nobody has published or measured it by itself,
//! has `fitted = true`. A kind of file is one table (`profile!` and `section!`), from which the
//! types, the reader and the documentation follow.

mod error;
mod read;
mod table;
mod write;

pub use error::{Problem, ProfileError};
pub use read::{kind_of, parse};
pub(crate) use table::{profile, section};
pub use write::text_of;

use std::collections::BTreeMap;

/// Origin of a parameter's value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The publication and its section, or the measurement, or the reason.
    pub source: String,
    /// Whether the value was fitted to results.
    pub fitted: bool,
}

/// Description of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Key {
    /// Its name in its section.
    pub name: &'static str,
    /// The unit that a file has to state. A `count` is a whole number.
    pub unit: &'static str,
    /// Smallest accepted value.
    pub least: f64,
    /// Largest accepted value.
    pub most: f64,
    /// Its meaning.
    pub meaning: &'static str,
}

/// A section of a file: its name and its parameters.
pub type Section = (&'static str, &'static [Key]);

/// A kind of file, which has each of its parameters once.
pub trait Parameters: Default {
    /// The value of `kind` in the file; one without it is of a `device`.
    const KIND: &'static str;
    /// How to get a complete file, for errors.
    const COMPLETE: &'static str;
    /// All sections and their parameters, in the order of files.
    const SECTIONS: &'static [Section];

    /// Returns the place of the name.
    fn name_mut(&mut self) -> &mut String;

    /// Returns the origins of the values, by names such as `switch.pass`.
    fn origins_mut(&mut self) -> &mut BTreeMap<String, Origin>;

    /// Returns the place of a parameter's value.
    fn place(&mut self, section: &str, key: &str) -> Option<&mut f64>;

    /// Returns the first parameter that contradicts another one, and the reason.
    fn contradiction(&self) -> Option<(&'static str, String)>;
}
