// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of nodes and shards, as clients of Redis Cluster know them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A text is no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an id has 40 hexadecimal digits")
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 20]);

        impl $name {
            /// An id that no other has.
            pub fn random() -> Self {
                Self(std::array::from_fn(|_| fastrand::u8(..)))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let (pairs, rest) = text.as_bytes().as_chunks::<2>();
                let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
                match bytes.and_then(|bytes| bytes.try_into().ok()) {
                    Some(bytes) if rest.is_empty() => Ok(Self(bytes)),
                    _ => Err(ParseIdError),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseIdError;

            fn try_from(text: String) -> Result<Self, ParseIdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

id! {
    /// A node: one server process and its folder. 40 hexadecimal digits as text.
    NodeId
}

id! {
    /// A shard: a primary with its replicas. 40 hexadecimal digits as text.
    ShardId
}

fn byte(pair: &[u8; 2]) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = NodeId::random();
        assert_eq!(id.to_string().len(), 40);
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in ["", "00", &"0".repeat(39), &"0".repeat(41), &"g".repeat(40), &"+1".repeat(20)]
        {
            assert_eq!(wrong.parse::<NodeId>(), Err(ParseIdError), "{wrong}");
        }
    }
}
