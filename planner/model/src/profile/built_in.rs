// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The profiles that belong to the product.

use super::{Profile, ProfileError};

/// Names and texts of the built-in profiles; the first is the default.
pub const BUILT_IN: [(&str, &str); 2] = [
    ("bluefield2", include_str!("../../../profiles/bluefield2.toml")),
    ("bluefield3", include_str!("../../../profiles/bluefield3.toml")),
];

/// Returns the built-in profile of that name, if there is one.
///
/// # Errors
/// Its text is not a profile: a fault of this program.
pub fn built_in(name: &str) -> Option<Result<Profile, ProfileError>> {
    Some(Profile::parse(&format!("{name}.toml"), built_in_text(name)?))
}

/// Returns the text of the built-in profile of that name, if there is one.
pub fn built_in_text(name: &str) -> Option<&'static str> {
    BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
