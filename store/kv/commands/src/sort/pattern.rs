// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Patterns that make the name of a key of an element: `weight_*` names a string, `object_*->field`
//! a field of a hash, and `#` the element itself.

use freeport_kv_types::Hash;

use crate::database::Database;

/// A pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern<'a> {
    /// The element itself.
    Itself,
    /// A text without a place for the element names nothing.
    Nothing,
    /// A value of another key.
    Value {
        /// The key before the element.
        before: &'a [u8],
        /// The key behind the element.
        behind: &'a [u8],
        /// A field of the hash that the key has.
        field: Option<&'a [u8]>,
    },
}

impl<'a> Pattern<'a> {
    /// Reads a pattern.
    pub fn parse(text: &'a [u8]) -> Self {
        if text == b"#" {
            return Self::Itself;
        }
        let Some(star) = text.iter().position(|byte| *byte == b'*') else { return Self::Nothing };
        let (before, rest) = (&text[..star], &text[star + 1..]);
        // An arrow at the end belongs to the key.
        let arrow = rest.windows(2).position(|pair| pair == b"->");
        match arrow.filter(|arrow| arrow + 2 < rest.len()) {
            Some(arrow) => {
                let (behind, field) = (&rest[..arrow], Some(&rest[arrow + 2..]));
                Self::Value { before, behind, field }
            }
            None => Self::Value { before, behind: rest, field: None },
        }
    }

    /// Calls `read` with the value that the pattern names for an element; none: there is no such
    /// value, or it has another type.
    pub fn read<R>(
        self,
        database: &Database<'_>,
        element: &[u8],
        read: impl FnOnce(Option<&[u8]>) -> R,
    ) -> R {
        let (before, behind, field) = match self {
            Self::Itself => return read(Some(element)),
            Self::Nothing => return read(None),
            Self::Value { before, behind, field } => (before, behind, field),
        };
        let key = [before, element, behind].concat();
        let Some(field) = field else { return read(database.string(&key).unwrap_or(None)) };
        let hash = database.read::<Hash>(&key).unwrap_or(None);
        match hash.and_then(|hash| hash.get(field)) {
            Some(value) => value.with_bytes(|value| read(Some(value))),
            None => read(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_a_place_and_a_field() {
        let value = |before: &'static str, behind: &'static str, field: Option<&'static str>| {
            Pattern::Value {
                before: before.as_bytes(),
                behind: behind.as_bytes(),
                field: field.map(str::as_bytes),
            }
        };
        let table = [
            ("#", Pattern::Itself),
            ("name", Pattern::Nothing),
            ("", Pattern::Nothing),
            ("a_*", value("a_", "", None)),
            ("*", value("", "", None)),
            ("a_*_b*", value("a_", "_b*", None)),
            ("a_*->f", value("a_", "", Some("f"))),
            ("a->*_b->f->g", value("a->", "_b", Some("f->g"))),
            ("a_*->", value("a_", "->", None)),
            ("a->f*", value("a->f", "", None)),
        ];
        for (text, expected) in table {
            assert_eq!(Pattern::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
