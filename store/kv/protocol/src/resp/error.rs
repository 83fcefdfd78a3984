// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of the readers. After each of them the position in the stream is unknown: the connection
//! has to be closed, and the reader reports the same error again.

/// A request that Redis refuses to read. The text is that of Redis; [`write_reply`] writes it as a
/// reply, after which the server closes the connection.
///
/// [`write_reply`]: ProtocolError::write_reply
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    /// An inline request has no line end within 64 KiB.
    #[error("Protocol error: too big inline request")]
    InlineTooBig,
    /// A quote of an inline request is not closed, or its end is followed by other text.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// The line with the number of arguments has no end within 64 KiB.
    #[error("Protocol error: too big mbulk count string")]
    CountTooBig,
    /// The number of arguments is no integer, or is above the limit.
    #[error("Protocol error: invalid multibulk length")]
    InvalidCount,
    /// The number of arguments is above what a client may send before it has authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedCount,
    /// The line with the length of an argument has no end within 64 KiB.
    #[error("Protocol error: too big bulk count string")]
    LengthTooBig,
    /// An argument begins with another byte than `$`.
    #[error("Protocol error: expected '$', got '{}'", char::from(shown(*got)))]
    ExpectedBulk {
        /// The byte.
        got: u8,
    },
    /// The length of an argument is no integer, negative, or above the limit.
    #[error("Protocol error: invalid bulk length")]
    InvalidLength,
    /// The length of an argument is above what a client may send before it has authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedLength,
    /// A request would be larger than [`RequestLimits::request_bytes`]. Redis closes the connection
    /// without a reply when its `client-query-buffer-limit` is exceeded.
    ///
    /// [`RequestLimits::request_bytes`]: super::RequestLimits::request_bytes
    #[error("request exceeds the limit of bytes that a client may have outstanding")]
    RequestTooLarge,
}

impl ProtocolError {
    /// Appends the reply that precedes the end of the connection, for example
    /// `-ERR Protocol error: invalid bulk length`. [`RequestTooLarge`] has none.
    ///
    /// [`RequestTooLarge`]: ProtocolError::RequestTooLarge
    pub fn write_reply(&self, output: &mut Vec<u8>) {
        match *self {
            Self::RequestTooLarge => {}
            // The byte is sent as it is, also if it is no ASCII.
            Self::ExpectedBulk { got } => {
                output.extend_from_slice(b"-ERR Protocol error: expected '$', got '");
                output.push(shown(got));
                output.extend_from_slice(b"'\r\n");
            }
            _ => {
                output.extend_from_slice(b"-ERR ");
                output.extend_from_slice(self.to_string().as_bytes());
                output.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// A line of an error has no line end inside.
fn shown(byte: u8) -> u8 {
    if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }
}

/// A reply that is not RESP, or exceeds a limit of the reader.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// The first byte of a value is of no type.
    #[error("a reply begins with byte {0:#04x}, which is no type of RESP")]
    UnknownType(u8),
    /// A line is longer than the limit.
    #[error("a line of a reply is longer than the limit of {0} bytes")]
    LineTooLong(usize),
    /// A line has a carriage return or a line feed inside, or a string does not end with both.
    #[error("a reply has a missing or misplaced line end")]
    LineEnd,
    /// A length or count is no decimal number, or negative where null is not possible.
    #[error("a reply has an invalid length")]
    InvalidLength,
    /// A string is longer than the limit.
    #[error("a string of a reply is longer than the limit of {0} bytes")]
    StringTooLong(usize),
    /// An aggregate has more elements than the limit.
    #[error("an aggregate of a reply has more elements than the limit of {0}")]
    TooManyElements(usize),
    /// Aggregates and attributes are nested more deeply than the limit.
    #[error("a reply is nested more deeply than the limit of {0} levels")]
    TooDeep(usize),
    /// A reply has more bytes than the limit.
    #[error("a reply is longer than the limit of {0} bytes")]
    TooLarge(usize),
    /// The text of a number, boolean, null or verbatim string does not follow its type.
    #[error("a reply has invalid content for type '{}'", char::from(*.0))]
    InvalidContent(u8),
    /// A push inside another value, a chunk outside a streamed string, or an end where no streamed
    /// aggregate can end.
    #[error("a reply has an element of type '{}' where it cannot be", char::from(*.0))]
    Misplaced(u8),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(error: ProtocolError) -> Vec<u8> {
        let mut output = vec![];
        error.write_reply(&mut output);
        output
    }

    #[test]
    fn a_reply_is_one_line_in_the_words_of_redis() {
        let expected = b"-ERR Protocol error: invalid multibulk length\r\n";
        assert_eq!(reply(ProtocolError::InvalidCount), expected);
        let expected = b"-ERR Protocol error: expected '$', got 'x'\r\n";
        assert_eq!(reply(ProtocolError::ExpectedBulk { got: b'x' }), expected);
        let expected = b"-ERR Protocol error: expected '$', got '\xff'\r\n";
        assert_eq!(reply(ProtocolError::ExpectedBulk { got: 0xff }), expected);
        let expected = b"-ERR Protocol error: expected '$', got ' '\r\n";
        assert_eq!(reply(ProtocolError::ExpectedBulk { got: b'\n' }), expected);
        assert_eq!(reply(ProtocolError::RequestTooLarge), b"");
    }

    #[test]
    fn texts_name_the_byte() {
        let got = ProtocolError::ExpectedBulk { got: b'+' };
        assert_eq!(got.to_string(), "Protocol error: expected '$', got '+'");
        assert_eq!(
            ValueError::Misplaced(b'>').to_string(),
            "a reply has an element of type '>' where it cannot be"
        );
    }
}
