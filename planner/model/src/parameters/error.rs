// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of profiles.

use thiserror::Error;

/// A profile that cannot be used.
#[derive(Debug, Error)]
#[error("{file}{}{}: {problem}", at_line(*line), named(field))]
pub struct ProfileError {
    /// The file, or the name of a built-in profile.
    pub file: String,
    /// The line, from 1; none for what is missing from the file.
    pub line: Option<usize>,
    /// The parameter, such as `switch.pass`; empty if the error concerns none.
    pub field: String,
    /// The reason.
    pub problem: Problem,
}

/// The reason of a [`ProfileError`].
#[derive(Debug, Error)]
pub enum Problem {
    /// The file is not TOML.
    #[error("it is not TOML: {0}")]
    Syntax(String),
    /// A parameter or an attribute of it is missing; with how to get a complete file.
    #[error("{0} is missing; {1}")]
    Missing(String, &'static str),
    /// A profile of another kind.
    #[error("it is a profile of a {found}, and a {expected} is needed here")]
    Kind {
        /// The kind of the file.
        found: String,
        /// The kind that is needed.
        expected: &'static str,
    },
    /// A section, parameter or attribute that no profile has.
    #[error("there is no such {0}")]
    Unknown(&'static str),
    /// Something that is not what belongs there.
    #[error("it has to be {0}")]
    Wrong(&'static str),
    /// A value in another unit.
    #[error("the unit has to be \"{0}\", and not \"{1}\"")]
    Unit(&'static str, String),
    /// A value outside of its range.
    #[error("{value} {unit} is not between {least} and {most} {unit}")]
    Range {
        /// The value.
        value: f64,
        /// The unit of all of them.
        unit: &'static str,
        /// Smallest accepted value.
        least: f64,
        /// Largest accepted value.
        most: f64,
    },
    /// Values that contradict each other.
    #[error("{0}")]
    Contradiction(String),
}

fn at_line(line: Option<usize>) -> String {
    line.map(|line| format!(":{line}")).unwrap_or_default()
}

fn named(field: &str) -> String {
    if field.is_empty() { String::new() } else { format!(": {field}") }
}
