// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bytes of a unit of the append log: what one command, transaction or script has changed.
//!
//! A unit consists of records, each of which begins with a byte for its kind. Numbers have seven
//! bits in a byte, the low ones first; the eighth bit says that more follow.
//!
//! | kind | then | meaning |
//! |---|---|---|
//! | 0 | time | the records that follow were executed at that time, in milliseconds since 1970 |
//! | 1 | database, number of arguments, arguments | a command that succeeded |
//! | 2 | as 1 | a command that replied an error after it had changed something |
//! | 3 | database, key | a key was removed outside of commands |
//! | 4 | version, bytes | all functions, as `FUNCTION DUMP` writes them |
//! | 5 | bytes | keys that came from another shard of a cluster, as images write them |
//!
//! Arguments, keys and bytes have their length in front.

/// Kinds of records.
const TIME: u8 = 0;
const COMMAND: u8 = 1;
const FAILED_COMMAND: u8 = 2;
const REMOVAL: u8 = 3;
const FUNCTIONS: u8 = 4;
const PAIRS: u8 = 5;
/// Bytes of a number at most.
const NUMBER_BYTES: usize = 10;

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// The time of the records that follow, in milliseconds since 1970.
    Time(u64),
    /// A command that has changed something.
    Command {
        /// The database.
        database: u16,
        /// Its arguments; the first is its name.
        arguments: Vec<&'a [u8]>,
        /// Whether its reply was no error.
        has_succeeded: bool,
    },
    /// A key was removed outside of commands, because its time had passed or memory was short.
    Removal {
        /// The database.
        database: u16,
        /// The key.
        key: &'a [u8],
    },
    /// The functions of the server.
    Functions {
        /// The number of their changes until then.
        version: u64,
        /// All libraries.
        dump: &'a [u8],
    },
    /// Keys with their values that came from another shard of a cluster, as images write them.
    Pairs(&'a [u8]),
}

/// Appends a record of the time.
pub fn write_time(unit: &mut Vec<u8>, now_ms: u64) {
    unit.push(TIME);
    write_number(unit, now_ms);
}

/// Appends a record of a command.
pub fn write_command<A: AsRef<[u8]>>(
    unit: &mut Vec<u8>,
    database: u16,
    arguments: &[A],
    has_succeeded: bool,
) {
    unit.push(if has_succeeded { COMMAND } else { FAILED_COMMAND });
    write_number(unit, u64::from(database));
    write_number(unit, arguments.len() as u64);
    arguments.iter().for_each(|argument| write_bytes(unit, argument.as_ref()));
}

/// Appends a record of a removal.
pub fn write_removal(unit: &mut Vec<u8>, database: u16, key: &[u8]) {
    unit.push(REMOVAL);
    write_number(unit, u64::from(database));
    write_bytes(unit, key);
}

/// Appends a record of all functions.
pub fn write_functions(unit: &mut Vec<u8>, version: u64, dump: &[u8]) {
    unit.push(FUNCTIONS);
    write_number(unit, version);
    write_bytes(unit, dump);
}

/// Appends a record of keys that came from another shard.
pub fn write_pairs(unit: &mut Vec<u8>, pairs: &[u8]) {
    unit.push(PAIRS);
    write_bytes(unit, pairs);
}

fn write_number(unit: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        unit.push(number as u8 | 0x80);
        number >>= 7;
    }
    unit.push(number as u8);
}

fn write_bytes(unit: &mut Vec<u8>, bytes: &[u8]) {
    write_number(unit, bytes.len() as u64);
    unit.extend_from_slice(bytes);
}

/// Bytes that the record of a command needs at most, with the time in front.
pub fn command_bytes(arguments: &[&[u8]]) -> u64 {
    let fixed = 2 + 3 * NUMBER_BYTES;
    let lengths = arguments.iter().map(|argument| argument.len() + NUMBER_BYTES);
    (fixed + lengths.sum::<usize>()) as u64
}

/// Divides a command for the log into several if its arguments have more than `most` bytes. The
/// members of a set that `SPOP` has removed may be that many; other commands are never that long.
pub fn parts(words: &[Vec<u8>], most: usize) -> Vec<Vec<&[u8]>> {
    let bytes: usize = words.iter().map(Vec::len).sum();
    let is_divisible = words.len() > 3 && words[0].eq_ignore_ascii_case(b"SREM");
    if bytes <= most || !is_divisible {
        return vec![words.iter().map(Vec::as_slice).collect()];
    }
    let (command, members) = words.split_at(2);
    let mut parts: Vec<Vec<&[u8]>> = vec![];
    let mut left = 0;
    for member in members {
        if parts.is_empty() || member.len() > left {
            parts.push(command.iter().map(Vec::as_slice).collect());
            left = most;
        }
        left = left.saturating_sub(member.len());
        if let Some(part) = parts.last_mut() {
            part.push(member);
        }
    }
    parts
}

/// Reads the records of a unit.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader of a unit.
    pub fn new(unit: &'a [u8]) -> Self {
        Self { rest: unit }
    }

    /// Number of bytes that were not read.
    pub fn rest(&self) -> usize {
        self.rest.len()
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// The bytes are no record: why.
    pub fn next(&mut self) -> Result<Option<Record<'a>>, String> {
        let Some((&kind, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let record = match kind {
            TIME => Some(self.number().map(Record::Time)),
            COMMAND | FAILED_COMMAND => Some(self.command(kind == COMMAND)),
            REMOVAL => Some(self.removal()),
            FUNCTIONS => Some(self.functions()),
            PAIRS => Some(self.bytes().map(Record::Pairs)),
            _ => None,
        };
        let record = record.ok_or_else(|| format!("a record of an unknown kind, {kind}"))?;
        record.map(Some).ok_or_else(|| format!("a record of kind {kind} is not complete"))
    }

    fn command(&mut self, has_succeeded: bool) -> Option<Record<'a>> {
        let database = u16::try_from(self.number()?).ok()?;
        let count = usize::try_from(self.number()?).ok()?;
        // Every argument has one byte at least.
        if count == 0 || count > self.rest.len() {
            return None;
        }
        let mut arguments = Vec::with_capacity(count);
        for _ in 0..count {
            arguments.push(self.bytes()?);
        }
        Some(Record::Command { database, arguments, has_succeeded })
    }

    fn removal(&mut self) -> Option<Record<'a>> {
        let database = u16::try_from(self.number()?).ok()?;
        Some(Record::Removal { database, key: self.bytes()? })
    }

    fn functions(&mut self) -> Option<Record<'a>> {
        Some(Record::Functions { version: self.number()?, dump: self.bytes()? })
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for at in 0..NUMBER_BYTES {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7F);
            number |= bits.checked_shl(7 * at as u32).filter(|it| it >> (7 * at) == bits)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(unit: &[u8]) -> Result<Vec<Record<'_>>, String> {
        let (mut reader, mut records) = (Reader::new(unit), vec![]);
        while let Some(record) = reader.next()? {
            records.push(record);
        }
        Ok(records)
    }

    fn unit() -> Vec<u8> {
        let mut unit = vec![];
        write_time(&mut unit, u64::MAX);
        write_command(&mut unit, 300, &[&b"SET"[..], b"key", &[7; 200]], true);
        write_command(&mut unit, 0, &["X"], false);
        write_removal(&mut unit, 1, b"");
        write_functions(&mut unit, 1 << 40, b"dump");
        write_pairs(&mut unit, b"pairs");
        unit
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let value = [7; 200];
        let arguments = vec![&b"SET"[..], b"key", &value];
        let expected = [
            Record::Time(u64::MAX),
            Record::Command { database: 300, arguments, has_succeeded: true },
            Record::Command { database: 0, arguments: vec![b"X"], has_succeeded: false },
            Record::Removal { database: 1, key: b"" },
            Record::Functions { version: 1 << 40, dump: b"dump" },
            Record::Pairs(b"pairs"),
        ];
        assert_eq!(all(&unit()).as_deref(), Ok(&expected[..]));
        assert_eq!(all(b""), Ok(vec![]));
    }

    #[test]
    fn only_long_removals_of_members_are_divided() {
        let words = |line: &str| -> Vec<Vec<u8>> {
            line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
        };
        let lines = |line: &str, most: usize| -> Vec<String> {
            let words = words(line);
            let text = |part: Vec<&[u8]>| String::from_utf8_lossy(&part.join(&b' ')).into_owned();
            parts(&words, most).into_iter().map(text).collect()
        };
        let line = "SREM set aaaa bb cc dddddddd e";
        assert_eq!(lines(line, 100), [line]);
        let divided = ["SREM set aaaa bb", "SREM set cc", "SREM set dddddddd", "SREM set e"];
        assert_eq!(lines(line, 6), divided);
        assert_eq!(lines("DEL aaaaaaaa bbbb", 4), ["DEL aaaaaaaa bbbb"]);
    }

    #[test]
    fn a_record_fits_in_the_bytes_that_are_asked_for() {
        for arguments in [&[&b"DEL"[..], b"key"][..], &[&[1; 300][..]], &[&b""[..]; 50]] {
            let mut unit = vec![];
            write_time(&mut unit, u64::MAX);
            write_command(&mut unit, u16::MAX, arguments, true);
            assert!(unit.len() as u64 <= command_bytes(arguments));
        }
    }

    #[test]
    fn bytes_that_are_no_records_are_refused() {
        let unit = unit();
        // Records may end before the last one, and nowhere else.
        let complete = (0..unit.len()).filter(|&end| all(&unit[..end]).is_ok()).count();
        assert_eq!(complete, 6);
        let refused = |bytes: &[u8]| all(bytes).expect_err("it is no unit");
        assert_eq!(refused(&[9]), "a record of an unknown kind, 9");
        let text = "a record of kind 1 is not complete";
        assert_eq!(refused(&[COMMAND, 0, 0]), text);
        assert_eq!(refused(&[COMMAND, 0, 0xFF, 0xFF, 0xFF, 0x7F, 0]), text);
        let endless = [&[TIME][..], &[0xFF; 11]].concat();
        assert_eq!(refused(&endless), "a record of kind 0 is not complete");
    }
}
