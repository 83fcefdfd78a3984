// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds of parameters: which texts are values, and the one form in which each value is shown.

use freeport_kv_types::number::parse_integer;

use super::events;

/// Kind of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `yes` or `no`.
    Switch,
    /// An integer of a range.
    Integer {
        /// Least value.
        least: i64,
        /// Largest value.
        most: i64,
    },
    /// A number of bytes of a range, with a unit such as `kb` or `mb` if there is one.
    Bytes {
        /// Least value.
        least: i64,
        /// Largest value.
        most: i64,
    },
    /// One of several words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
    /// Classes of keyspace events.
    Events,
}

impl Kind {
    /// A number of things: 0 or more.
    pub const COUNT: Self = Self::Integer { least: 0, most: i64::MAX };
    /// A number of at most 32 bits.
    pub const SMALL: Self = Self::Integer { least: 0, most: 2_147_483_647 };
    /// Bytes of a list's node by a negative code, or a positive number of elements.
    pub const LIST_NODE: Self = Self::Integer { least: -2_147_483_648, most: 2_147_483_647 };
    /// A number of bytes: 0 or more.
    pub const SIZE: Self = Self::Bytes { least: 0, most: i64::MAX };

    /// The form in which a value is shown.
    ///
    /// # Errors
    /// The text is no value, in the words of Redis.
    pub fn parse(self, text: &[u8]) -> Result<String, String> {
        let shown = || String::from_utf8_lossy(text).into_owned();
        match self {
            Self::Switch => match text.to_ascii_lowercase().as_slice() {
                b"yes" => Ok("yes".into()),
                b"no" => Ok("no".into()),
                _ => Err("argument must be 'yes' or 'no'".into()),
            },
            Self::Integer { least, most } => {
                const NONE: &str = "argument couldn't be parsed into an integer";
                in_range(parse_integer(text).ok_or(NONE)?, least, most)
            }
            Self::Bytes { least, most } => {
                let bytes = bytes(text).ok_or("argument must be a memory value")?;
                in_range(bytes, least, most)
            }
            Self::Word(words) => {
                let found = words.iter().find(|word| text.eq_ignore_ascii_case(word.as_bytes()));
                found.map(|word| (*word).to_owned()).ok_or_else(|| {
                    format!("argument(s) must be one of the following: {}", words.join(", "))
                })
            }
            Self::Text => Ok(shown()),
            Self::Events => events::parse(text)
                .map(events::text)
                .ok_or_else(|| "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".into()),
        }
    }
}

fn in_range(value: i64, least: i64, most: i64) -> Result<String, String> {
    match (least..=most).contains(&value) {
        true => Ok(value.to_string()),
        false => Err(format!("argument must be between {least} and {most} inclusive")),
    }
}

/// A number of bytes with a unit. `k` is 1,000, and `kb` is 1,024.
fn bytes(text: &[u8]) -> Option<i64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
    let unit: i64 = match text[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    parse_integer(&text[..digits])?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_one_form() {
        let least = Kind::Integer { least: -1, most: 9 };
        for (kind, text, form) in [
            (Kind::Switch, "YES", "yes"),
            (least, "-1", "-1"),
            (Kind::SIZE, "3mb", "3145728"),
            (Kind::SIZE, "2K", "2000"),
            (Kind::SIZE, "7", "7"),
            (Kind::Word(&["one", "two"]), "TWO", "two"),
            (Kind::Text, "A b", "A b"),
            (Kind::Events, "lK", "lK"),
        ] {
            assert_eq!(kind.parse(text.as_bytes()).as_deref(), Ok(form));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        let refused = |kind: Kind, text: &str| kind.parse(text.as_bytes()).expect_err("no value");
        let text = "argument couldn't be parsed into an integer";
        assert_eq!(refused(Kind::COUNT, "x"), text);
        assert_eq!(refused(Kind::COUNT, "9223372036854775808"), text);
        let text = "argument must be between 0 and 9223372036854775807 inclusive";
        assert_eq!(refused(Kind::COUNT, "-1"), text);
        assert_eq!(refused(Kind::SIZE, "3zz"), "argument must be a memory value");
        assert_eq!(refused(Kind::SIZE, "99999999999gb"), "argument must be a memory value");
        assert_eq!(refused(Kind::SIZE, ""), "argument must be a memory value");
        assert_eq!(refused(Kind::Switch, "1"), "argument must be 'yes' or 'no'");
        let text = "argument(s) must be one of the following: one, two";
        assert_eq!(refused(Kind::Word(&["one", "two"]), "3"), text);
    }
}
