// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files of parameters as texts.

use super::{Key, Parameters};
use std::fmt::Write;
use toml_edit::Value;

/// Returns the text of a file, below a comment of these lines.
///
/// [`parse`](super::parse) returns an equal profile if each parameter has an origin.
pub fn text_of<P: Parameters + Clone>(profile: &P, comment: &[&str]) -> String {
    let mut profile = profile.clone();
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text: String = comment.iter().map(|line| format!("# {line}\n")).collect();
    let (kind, name) = (quoted(P::KIND), quoted(profile.name_mut()));
    text += &format!("\nkind = {kind}\nname = {name}\n");
    for (section, keys) in P::SECTIONS {
        text += &format!("\n[{section}]\n");
        for Key { name, unit, .. } in *keys {
            let value = profile.place(section, name).map_or(0.0, |place| *place);
            let origin = profile.origins_mut().get(&format!("{section}.{name}"));
            let source = quoted(origin.map_or("", |origin| &origin.source));
            let fitted = match origin {
                Some(origin) if origin.fitted => ", fitted = true",
                _ => "",
            };
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "{name} = {{ value = {value}, unit = \"{unit}\", source = {source}{fitted} }}"
            );
        }
    }
    text
}
