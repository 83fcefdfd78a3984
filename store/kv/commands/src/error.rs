// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of commands, in the words of Redis.

use std::borrow::Cow;
use std::fmt::{self, Display};

/// Text of an error reply. Its first word is its code, such as `ERR` or `WRONGTYPE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Cow<'static, str>);

impl Error {
    /// Words of a command that it does not have.
    pub const SYNTAX: Self = Self::fixed("ERR syntax error");
    /// An argument is no integer of 64 bits.
    pub const NOT_AN_INTEGER: Self = Self::fixed("ERR value is not an integer or out of range");
    /// An argument is no floating-point number.
    pub const NOT_A_FLOAT: Self = Self::fixed("ERR value is not a valid float");
    /// A number of keys is above that of the arguments.
    pub const TOO_MANY_KEYS: Self =
        Self::fixed("ERR Number of keys can't be greater than number of args");
    /// There is no such key.
    pub const NO_SUCH_KEY: Self = Self::fixed("ERR no such key");
    /// The value has another type.
    pub const WRONG_TYPE: Self =
        Self::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// No memory is left.
    pub const OUT_OF_MEMORY: Self =
        Self::fixed("OOM command not allowed when used memory > 'maxmemory'.");

    /// An error with a text known in advance, code included.
    pub const fn fixed(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// An error with any text, code included.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// An error of a value, whose text gets the code `ERR` if it has none.
    pub fn of(error: impl Display) -> Self {
        let text = error.to_string();
        let code = text.split(' ').next().unwrap_or_default();
        let is_coded = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_uppercase());
        if is_coded { Self::new(text) } else { Self::new(format!("ERR {text}")) }
    }

    /// A command was given too few or too many arguments.
    pub fn arity(name: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{name}' command"))
    }

    /// A command was given a subcommand that it does not have, or too few or many arguments for it.
    pub fn unknown_subcommand(name: &str, subcommand: &[u8]) -> Self {
        let subcommand = String::from_utf8_lossy(&subcommand[..subcommand.len().min(128)]);
        Self::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. \
             Try {name} HELP."
        ))
    }

    /// Part of a text that a client gave, as errors show it: up to its first zero byte.
    pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end])
    }

    /// The text of the reply.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<freeport_kv_keyspace::Error> for Error {
    fn from(error: freeport_kv_keyspace::Error) -> Self {
        match error {
            freeport_kv_keyspace::Error::WrongType => Self::WRONG_TYPE,
            freeport_kv_keyspace::Error::OutOfMemory => Self::OUT_OF_MEMORY,
        }
    }
}

impl From<freeport_kv_types::StreamError> for Error {
    fn from(error: freeport_kv_types::StreamError) -> Self {
        Self::of(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_values_have_a_code() {
        assert_eq!(Error::of("no such thing").text(), "ERR no such thing");
        assert_eq!(Error::of("NOGROUP no such group").text(), "NOGROUP no such group");
        assert_eq!(Error::of("").text(), "ERR ");
    }
}
