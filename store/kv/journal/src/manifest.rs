// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The manifest: a text that names the files which make up the state, in their order.
//!
//! ```text
//! freeport-kv-journal 1
//! generation 3
//! salt 0c54a1b2d3e4f506
//! snapshot snapshot.8
//! log log.9 position 81920 sequence 1200
//! end 5f0cd321
//! ```
//!
//! The line `snapshot` is missing until the first snapshot. The last line has the CRC-32C of the
//! lines before it. Nothing else is accepted: a line that this program does not know could name
//! something that the state needs.

use crate::frame::VERSION;
use std::fmt::Write;

/// The largest manifest that is read, in bytes. It has a line for each segment.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// The largest number in a manifest, such as a position.
pub(crate) const MAX_NUMBER: u64 = 1 << 60;

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Number of the manifest: each that is written has the next one.
    pub generation: u64,
    /// A random number that the checks of all frames include.
    pub salt: u64,
    /// Number of the snapshot's file.
    pub snapshot: Option<u64>,
    /// Segments of the log, at least one. The last one is appended to.
    pub segments: Vec<Segment>,
}

/// A segment of the log, as the manifest names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its file.
    pub number: u64,
    /// Position of its first batch in the log, in bytes.
    pub position: u64,
    /// Sequence number of its first batch.
    pub sequence: u64,
}

/// Name of a segment's file.
pub(crate) fn log_name(number: u64) -> String {
    format!("log.{number}")
}

/// Name of a snapshot's file.
pub(crate) fn snapshot_name(number: u64) -> String {
    format!("snapshot.{number}")
}

/// The number in the name of a segment or a snapshot; no other name has one.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log.").or_else(|| name.strip_prefix("snapshot."))?;
    decimal(digits)
}

impl Manifest {
    /// Whether the manifest names this file.
    pub fn names(&self, name: &str) -> bool {
        self.snapshot.is_some_and(|number| name == snapshot_name(number))
            || self.segments.iter().any(|segment| name == log_name(segment.number))
    }

    /// The last segment.
    pub fn last(&self) -> Segment {
        *self.segments.last().expect("a manifest has a segment")
    }

    pub(crate) fn format(&self) -> String {
        let mut text = format!("freeport-kv-journal {VERSION}\n");
        let mut line = |arguments: std::fmt::Arguments| {
            text.write_fmt(arguments).expect("a text takes all");
        };
        line(format_args!("generation {}\n", self.generation));
        line(format_args!("salt {:016x}\n", self.salt));
        if let Some(number) = self.snapshot {
            line(format_args!("snapshot {}\n", snapshot_name(number)));
        }
        for Segment { number, position, sequence } in &self.segments {
            let name = log_name(*number);
            line(format_args!("log {name} position {position} sequence {sequence}\n"));
        }
        with_end(text)
    }

    /// The manifest in this text, or what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
        let first = text.lines().next().unwrap_or_default();
        let Some(version) = first.strip_prefix("freeport-kv-journal ") else {
            return Err("the first line is not `freeport-kv-journal` and a version".to_owned());
        };
        if version != VERSION.to_string() {
            return Err(format!("the folder has version {version}, this program reads {VERSION}"));
        }
        let body = checked_body(text)?;
        let mut lines = body.lines().skip(1).peekable();
        let generation = lines.next().and_then(|line| decimal(line.strip_prefix("generation ")?));
        let salt = lines.next().and_then(|line| hexadecimal(line.strip_prefix("salt ")?));
        let (Some(generation), Some(salt)) = (generation, salt) else {
            return Err("the lines `generation` and `salt` are missing".to_owned());
        };
        let snapshot = lines.peek().and_then(|line| line.strip_prefix("snapshot snapshot."));
        let snapshot = match snapshot {
            Some(number) => Some(decimal(number).ok_or("the snapshot's name has no number")?),
            None => None,
        };
        if snapshot.is_some() {
            lines.next();
        }
        let segments = lines
            .map(|line| segment(line).ok_or_else(|| format!("the line `{line}` is not known")))
            .collect::<Result<Vec<Segment>, String>>()?;
        let manifest = Manifest { generation, salt, snapshot, segments };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), String> {
        let Some(first) = self.segments.first() else {
            return Err("no segment of the log is named".to_owned());
        };
        if self.snapshot.is_none() && (first.position, first.sequence) != (0, 0) {
            return Err("the log does not begin at position 0, and no snapshot is named".to_owned());
        }
        let is_ordered = self.segments.is_sorted_by(|left, right| {
            left.number < right.number
                && left.position <= right.position
                && left.sequence <= right.sequence
        });
        if is_ordered { Ok(()) } else { Err("the segments are not in their order".to_owned()) }
    }
}

/// Lines, and behind them the one that has their check.
pub(crate) fn with_end(body: String) -> String {
    let check = crc32c::crc32c(body.as_bytes());
    format!("{body}end {check:08x}\n")
}

/// The lines before the last one, whose check matches them.
pub(crate) fn checked_body(text: &str) -> Result<&str, String> {
    let wrong = || "the last line is not `end` and the check of the other lines".to_owned();
    let at = text.rfind("end ").ok_or_else(wrong)?;
    let body = &text[..at];
    let is_line = body.ends_with('\n');
    if !is_line || with_end(body.to_owned()) != text {
        return Err(wrong());
    }
    Ok(body)
}

fn segment(line: &str) -> Option<Segment> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["log", name, "position", position, "sequence", sequence] = words[..] else {
        return None;
    };
    let number = number_of(name).filter(|&number| name == log_name(number))?;
    Some(Segment { number, position: decimal(position)?, sequence: decimal(sequence)? })
}

/// A number as it is written: digits without a sign or leading zeros. Larger ones than a journal
/// reaches are refused, so that additions to them do not overflow.
pub(crate) fn decimal(text: &str) -> Option<u64> {
    let number = text.parse().ok().filter(|number: &u64| number.to_string() == text)?;
    (number <= MAX_NUMBER).then_some(number)
}

pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok().filter(|number| format!("{number:016x}") == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        let segment = |number, position, sequence| Segment { number, position, sequence };
        let segments = vec![segment(9, 81_920, 1_200), segment(10, 90_000, 1_300)];
        Manifest { generation: 3, salt: 0xc54, snapshot: Some(8), segments }
    }

    #[test]
    fn a_written_manifest_is_read_again() {
        let mut manifest = sample();
        assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest.clone()));
        manifest.snapshot = None;
        let error =
            Manifest::parse(&manifest.format()).expect_err("the log's beginning is missing");
        assert!(error.contains("position 0"), "{error}");
        manifest.segments = vec![Segment { number: 1, position: 0, sequence: 0 }];
        assert_eq!(Manifest::parse(&manifest.format()), Ok(manifest));
    }

    #[test]
    fn every_changed_letter_is_noticed() {
        let text = sample().format();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("one bit of ASCII");
            assert!(Manifest::parse(&changed).is_err(), "{changed}");
            assert!(Manifest::parse(&text[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn other_lines_and_orders_are_refused() {
        let text = sample().format();
        let body = text.split_at(text.rfind("end ").expect("the last line")).0;
        assert_eq!(with_end(body.to_owned()), text);
        let unknown = Manifest::parse(&with_end(format!("{body}index index.3\n")));
        assert_eq!(unknown, Err("the line `index index.3` is not known".to_owned()));
        let twice = body.replace("log.10", "log.9");
        assert!(Manifest::parse(&with_end(twice)).is_err());
        let zeros = body.replace("log.10", "log.010");
        assert!(Manifest::parse(&with_end(zeros)).is_err());
        let newer = text.replace("journal 1", "journal 2");
        let error = Manifest::parse(&newer).expect_err("another version");
        assert_eq!(error, "the folder has version 2, this program reads 1");
    }

    #[test]
    fn only_names_of_our_files_have_numbers() {
        assert_eq!(number_of("log.12"), Some(12));
        assert_eq!(number_of("snapshot.0"), Some(0));
        const LARGE: &str = "log.18446744073709551615";
        for name in ["log.", "log.01", "log.+1", "log.1.bak", "lock", "snapshot.x", LARGE] {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
