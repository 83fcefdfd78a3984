// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles with other values, as texts that keep everything else of the file.

use super::{Profile, ProfileError};
use toml_edit::{DocumentMut, Item};

/// Returns the text of a profile with these values in place of its own, by names such as
/// `nic.request`; comments and order stay.
///
/// # Errors
/// The text is not a profile.
pub fn with_values(file: &str, text: &str, values: &[(&str, f64)]) -> Result<String, ProfileError> {
    Profile::parse(file, text)?;
    let mut document: DocumentMut = text.parse().expect("it has just been parsed");
    for (name, value) in values {
        let Some((section, key)) = name.split_once('.') else { continue };
        let place = document
            .get_mut(section)
            .and_then(|section| section.get_mut(key))
            .and_then(|parameter| parameter.get_mut("value"))
            .and_then(Item::as_value_mut);
        if let Some(place) = place {
            let decor = place.decor().clone();
            *place = match value.fract() == 0.0 {
                true => (*value as i64).into(),
                false => (*value).into(),
            };
            *place.decor_mut() = decor;
        }
    }
    Ok(document.to_string())
}
