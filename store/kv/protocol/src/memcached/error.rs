// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Refusals of requests, in the words of the original server.

use super::Key;
use thiserror::Error;

/// Reason for which a request is refused. `Display` shows it in the words of memcached 1.6.18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{}", self.text())]
pub enum Error {
    /// There is no such command, or it has another number of words.
    Command,
    /// A key is too long, or a number is none.
    Format,
    /// The words behind the key of `delete` are neither `0` nor `noreply`.
    DeleteUsage,
    /// An expiry is no number.
    Expiry,
    /// The operand of `incr` or `decr` is no number.
    Delta,
    /// The value is not followed by the end of a line.
    DataChunk,
    /// An item of this size is never stored.
    TooLarge,
    /// `mg` has too many flags.
    GetFlagsTooLong,
    /// Another meta command has too many flags.
    FlagsTooLong,
    /// A flag of `mg` or `ms` appears twice, or is no ASCII character.
    DuplicateFlag,
    /// A flag of `mg` or `ms` is unknown.
    InvalidFlag,
    /// A flag of `md` or `ma` is unknown, appears twice, or has an invalid token.
    InvalidOrDuplicateFlag,
    /// The key is not valid base64 (flag `b`).
    KeyEncoding,
    /// A number of a flag is none.
    Token,
    /// The token of flag `M` is not one character.
    ModeLength,
    /// The token of flag `J` is no number.
    InitialValue,
    /// The token of flag `D` is no number.
    DeltaValue,
    /// Flag `O` has more than 31 bytes of token.
    OpaqueTooLong,
    /// `ms` has no such mode.
    SetMode,
    /// `ma` has no such mode.
    ArithmeticMode,
}

impl Error {
    /// The reply, with the end of its line.
    pub const fn reply(self) -> &'static [u8] {
        self.line().as_bytes()
    }

    /// The reply without the end of its line.
    pub fn text(self) -> &'static str {
        self.line().trim_ascii_end()
    }

    const fn line(self) -> &'static str {
        match self {
            Self::Command => "ERROR\r\n",
            Self::Format => "CLIENT_ERROR bad command line format\r\n",
            Self::DeleteUsage => {
                "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n"
            }
            Self::Expiry => "CLIENT_ERROR invalid exptime argument\r\n",
            Self::Delta => "CLIENT_ERROR invalid numeric delta argument\r\n",
            Self::DataChunk => "CLIENT_ERROR bad data chunk\r\n",
            Self::TooLarge => "SERVER_ERROR object too large for cache\r\n",
            Self::GetFlagsTooLong => "CLIENT_ERROR options flags are too long\r\n",
            Self::FlagsTooLong => "CLIENT_ERROR options flags too long\r\n",
            Self::DuplicateFlag => "CLIENT_ERROR duplicate flag\r\n",
            Self::InvalidFlag => "CLIENT_ERROR invalid flag\r\n",
            Self::InvalidOrDuplicateFlag => "CLIENT_ERROR invalid or duplicate flag\r\n",
            Self::KeyEncoding => "CLIENT_ERROR error decoding key\r\n",
            Self::Token => "CLIENT_ERROR bad token in command line format\r\n",
            Self::ModeLength => "CLIENT_ERROR incorrect length for M token\r\n",
            Self::InitialValue => "CLIENT_ERROR invalid numeric initial value\r\n",
            Self::DeltaValue => "CLIENT_ERROR invalid numeric delta value\r\n",
            Self::OpaqueTooLong => "CLIENT_ERROR opaque token too long\r\n",
            Self::SetMode => "CLIENT_ERROR invalid mode for ms M token\r\n",
            Self::ArithmeticMode => "CLIENT_ERROR invalid mode for ma M token\r\n",
        }
    }
}

/// A request that the server does not carry out. The connection stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal<'a> {
    /// Reason, which is also the reply.
    pub error: Error,
    /// The client wants no reply, not even this one.
    pub is_quiet: bool,
    /// A key to remove: a value that is too large must not leave an older one behind.
    pub removes: Option<Key<'a>>,
}

impl From<Error> for Refusal<'_> {
    fn from(error: Error) -> Self {
        Self { error, is_quiet: false, removes: None }
    }
}

impl Refusal<'_> {
    /// The reply with the end of its line; empty if the client wants none.
    pub fn reply(&self) -> &'static [u8] {
        if self.is_quiet { b"" } else { self.error.reply() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_lines_and_texts_are_not() {
        assert_eq!(Error::Command.reply(), b"ERROR\r\n");
        assert_eq!(Error::Format.to_string(), "CLIENT_ERROR bad command line format");
        let refusal = Refusal::from(Error::TooLarge);
        assert_eq!(refusal.reply(), b"SERVER_ERROR object too large for cache\r\n");
        assert_eq!(Refusal { is_quiet: true, ..refusal }.reply(), b"");
    }
}
