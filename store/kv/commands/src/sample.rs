// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random elements of a value: the number that a client asks for, and replies in which an element
//! may come several times.

use freeport_kv_protocol::resp::Writer;

use crate::arguments::signed_count;
use crate::error::Error;

/// Bytes of a reply with repetitions at most. Its length is the client's choice alone.
const MOST_BYTES: usize = 1 << 30;
/// Bytes of the shortest element of a reply.
const LEAST_ELEMENT_BYTES: u64 = 6;

const OUT_OF_RANGE: Error = Error::fixed("ERR value is out of range");

/// Elements that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Different ones, as many as there are at most.
    Distinct(usize),
    /// This number of them, some of which may be the same: a negative number.
    Repeated(u64),
}

impl Sample {
    /// Reads the number.
    ///
    /// # Errors
    /// It is none, or has no magnitude.
    pub fn parse(argument: &[u8]) -> Result<Self, Error> {
        Ok(match signed_count(argument)? {
            number @ 0.. => Self::Distinct(number as usize),
            number => Self::Repeated(number.unsigned_abs()),
        })
    }

    /// The number can be doubled, for elements that are written as two values.
    ///
    /// # Errors
    /// It cannot.
    pub fn check_pairs(self) -> Result<Self, Error> {
        match self {
            Self::Distinct(number) if number > i64::MAX as usize / 2 => Err(OUT_OF_RANGE),
            Self::Repeated(number) if number > i64::MAX as u64 / 2 => Err(OUT_OF_RANGE),
            _ => Ok(self),
        }
    }
}

/// A random number below `range`.
pub fn choose(range: usize) -> usize {
    fastrand::usize(..range)
}

/// Writes `number` elements, whose header the caller has written.
///
/// # Errors
/// The reply would be too long.
pub fn repeat(
    reply: &mut Writer<'_>,
    number: u64,
    write: impl FnMut(&mut Writer<'_>),
) -> Result<(), Error> {
    repeat_within(reply, MOST_BYTES, number, write)
}

fn repeat_within(
    reply: &mut Writer<'_>,
    most_bytes: usize,
    number: u64,
    mut write: impl FnMut(&mut Writer<'_>),
) -> Result<(), Error> {
    let start = reply.len();
    if number > most_bytes as u64 / LEAST_ELEMENT_BYTES {
        return Err(OUT_OF_RANGE);
    }
    for _ in 0..number {
        write(reply);
        if reply.len() - start > most_bytes {
            return Err(OUT_OF_RANGE);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::resp::Version;

    use super::*;

    #[test]
    fn the_sign_chooses_whether_elements_repeat() {
        assert_eq!(Sample::parse(b"3"), Ok(Sample::Distinct(3)));
        assert_eq!(Sample::parse(b"-3"), Ok(Sample::Repeated(3)));
        assert!(Sample::parse(b"-9223372036854775808").is_err());
        assert!(Sample::Repeated(1 << 62).check_pairs().is_err());
        assert!(Sample::Distinct(1 << 62).check_pairs().is_err());
        assert!(Sample::Repeated((1 << 62) - 1).check_pairs().is_ok());
    }

    #[test]
    fn no_number_takes_all_memory() {
        let mut output = vec![];
        let mut reply = Writer::new(&mut output, Version::Two);
        let write = |reply: &mut Writer<'_>| reply.bulk(b"0123456789");
        assert_eq!(repeat(&mut reply, 2, write), Ok(()));
        assert_eq!(repeat(&mut reply, 1 << 62, write), Err(OUT_OF_RANGE));
        assert_eq!(reply.len(), 34);
        assert_eq!(repeat_within(&mut reply, 170, 10, write), Ok(()));
        assert_eq!(repeat_within(&mut reply, 169, 10, write), Err(OUT_OF_RANGE));
    }
}
