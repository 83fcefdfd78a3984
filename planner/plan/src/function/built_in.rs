// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of the study.

use super::Function;
use crate::file::FileError;

/// Names and texts of the built-in functions.
pub const BUILT_IN: [(&str, &str); 2] = [
    ("replication", include_str!("../../../functions/replication.toml")),
    ("key-value", include_str!("../../../functions/key-value.toml")),
];

/// Returns the built-in function of that name, if there is one.
///
/// # Errors
/// Its text is not a function: a fault of this program.
pub fn built_in(name: &str) -> Option<Result<Function, FileError>> {
    Some(Function::parse(&format!("{name}.toml"), built_in_text(name)?))
}

/// Returns the text of the built-in function of that name, if there is one.
pub fn built_in_text(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
