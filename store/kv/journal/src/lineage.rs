// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lineage of a log: the histories that it consists of, in the file `lineage`.
//!
//! A *history* is what one primary has appended from its start on, under a random number. Two logs
//! that have the same history are equal up to the first end of it in either of them. So a follower
//! can continue a log if that log covers the follower's newest history up to the follower's end.
//!
//! ```text
//! freeport-kv-lineage 1
//! history 0c54a1b2d3e4f506 term 3 position 81920
//! end 5f0cd321
//! ```
//!
//! The file is replaced as the manifest is. It may be older than the log, but never newer: a
//! history is in it before the log has a batch of it. Histories that begin beyond the end of the
//! log were never reached, or lost by a crash, and are dropped at the next start. A file that is
//! missing or cannot be read only means that followers need the whole state.

use crate::disk::words;
use crate::error::LineageError;
use crate::folder::{Folder, LINEAGE, NEW_LINEAGE, Unstored};
use crate::journal::Journal;
use crate::manifest::{checked_body, decimal, hexadecimal, with_end};
use crate::shared::Shared;
use crate::status::Position;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::sync::MutexGuard;

/// The most histories that a lineage has. Older ones are dropped.
pub const MAX_HISTORIES: usize = 64;

/// The largest file that is read, in bytes.
const MAX_LINEAGE_BYTES: u64 = 16 << 10;

const FIRST_LINE: &str = "freeport-kv-lineage 1";

/// A part of a log that one primary has appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// A random number.
    pub id: u64,
    /// The term of the primary.
    pub term: u64,
    /// The position at which it begins.
    pub start: Position,
}

/// The histories of a log, from the oldest to the newest. Its text ([`fmt::Display`]) is that of
/// the file, and what is sent to other servers; [`str::parse`] reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    histories: Vec<History>,
}

impl Lineage {
    /// All histories, from the oldest to the newest.
    pub fn histories(&self) -> &[History] {
        &self.histories
    }

    /// The newest history.
    pub fn current(&self) -> Option<History> {
        self.histories.last().copied()
    }

    /// The history that has the last batch before a position. A follower whose log ends there names
    /// it to its primary.
    pub fn at(&self, end: Position) -> Option<History> {
        let begun = self.histories.iter().rev().find(|history| history.start < end);
        begun.or(self.histories.first().filter(|first| first.start <= end)).copied()
    }

    /// Whether a log that has this history up to `position` is a beginning of the log with this
    /// lineage. The caller checks that the log reaches that far.
    pub fn covers(&self, history: u64, position: Position) -> bool {
        let Some(at) = self.histories.iter().position(|one| one.id == history) else {
            return false;
        };
        let next = self.histories.get(at + 1);
        self.histories[at].start <= position && next.is_none_or(|next| position <= next.start)
    }

    /// Begins a history at the end of the log. Those without a batch are dropped, and the oldest if
    /// there are too many. The first one includes what the log had before it.
    pub fn begin(&mut self, term: u64, end: Position) -> History {
        // A random number: the hasher's seeds come from the system.
        let id = RandomState::new().hash_one((term, end));
        self.histories.retain(|history| history.start < end);
        let start = if self.histories.is_empty() { Position(0) } else { end };
        if self.histories.len() == MAX_HISTORIES {
            self.histories.remove(0);
        }
        let history = History { id, term, start };
        self.histories.push(history);
        history
    }

    /// Drops histories that begin beyond the end of the log.
    pub fn fit(&mut self, end: Position) {
        self.histories.retain(|history| history.start <= end);
    }
}

impl fmt::Display for Lineage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut body = format!("{FIRST_LINE}\n");
        for History { id, term, start: Position(position) } in &self.histories {
            body += &format!("history {id:016x} term {term} position {position}\n");
        }
        formatter.write_str(&with_end(body))
    }
}

impl FromStr for Lineage {
    type Err = String;

    fn from_str(text: &str) -> Result<Lineage, String> {
        let mut lines = checked_body(text)?.lines();
        if lines.next() != Some(FIRST_LINE) {
            return Err(format!("the first line is not `{FIRST_LINE}`"));
        }
        let histories = lines
            .map(|line| history(line).ok_or_else(|| format!("the line `{line}` is not known")))
            .collect::<Result<Vec<History>, String>>()?;
        if histories.len() > MAX_HISTORIES {
            return Err(format!("there are more than {MAX_HISTORIES} histories"));
        }
        if !histories.is_sorted_by_key(|history| history.start) {
            return Err("the histories are not in their order".to_owned());
        }
        Ok(Lineage { histories })
    }
}

fn history(line: &str) -> Option<History> {
    let words: Vec<&str> = line.split(' ').collect();
    let ["history", id, "term", term, "position", start] = words[..] else {
        return None;
    };
    let start = Position(decimal(start)?);
    Some(History { id: hexadecimal(id)?, term: decimal(term)?, start })
}

impl Journal {
    /// The lineage of this log.
    pub fn lineage(&self) -> Lineage {
        self.shared.lineage().clone()
    }

    /// Begins a history at the end of the log, durably. A server does this whenever it becomes
    /// primary, and at every start as primary, because the end of the log may have been cut off.
    /// Nothing may be appended meanwhile.
    ///
    /// # Errors
    ///
    /// The disk has failed, and the caller may not append as primary.
    pub fn begin_history(&self, term: u64) -> Result<History, LineageError> {
        let mut writer = self.shared.lineage_writer();
        let mut next = self.lineage();
        let history = next.begin(term, self.end());
        self.shared.replace_lineage(&mut writer, next)?;
        Ok(history)
    }

    /// Makes this the lineage, durably: that of the primary, before the log gets a batch of it. The
    /// disk is not used if the file has it already.
    ///
    /// # Errors
    ///
    /// The disk has failed, and the caller may not append batches of that primary.
    pub fn adopt_lineage(&self, adopted: &Lineage) -> Result<(), LineageError> {
        let mut writer = self.shared.lineage_writer();
        if *writer && *self.shared.lineage() == *adopted {
            return Ok(());
        }
        self.shared.replace_lineage(&mut writer, adopted.clone())
    }
}

impl Shared {
    /// The lineage, locked for a moment: nobody waits for the disk meanwhile.
    pub(crate) fn lineage(&self) -> MutexGuard<'_, Lineage> {
        self.lineage.lock().expect("no holder of the lock panics")
    }

    /// The right to replace the lineage.
    pub(crate) fn lineage_writer(&self) -> MutexGuard<'_, bool> {
        self.lineage_writer.lock().expect("no holder of the lock panics")
    }

    pub(crate) fn replace_lineage(
        &self,
        is_stored: &mut MutexGuard<'_, bool>,
        next: Lineage,
    ) -> Result<(), LineageError> {
        // Until it was stored once, the file may have histories that were never reached.
        **is_stored = false;
        let text = next.to_string();
        let stored = self.folder.replace(NEW_LINEAGE, LINEAGE, text.as_bytes());
        stored.map_err(|Unstored { error, .. }| LineageError {
            file: self.folder.file(LINEAGE),
            reason: words(&error),
        })?;
        *self.lineage() = next;
        **is_stored = true;
        Ok(())
    }
}

/// The lineage of a folder whose log ends at `end`: empty without a file. The second is the reason
/// why a file that exists is not used.
pub(crate) fn read_lineage(folder: &Folder, end: Position) -> (Lineage, Option<String>) {
    let text = folder.read_text(LINEAGE, MAX_LINEAGE_BYTES);
    let lineage = match text {
        Ok(None) => Ok(Lineage::default()),
        Ok(Some(text)) => text.and_then(|text| text.parse::<Lineage>()),
        Err(error) => Err(words(&error)),
    };
    match lineage {
        Ok(mut lineage) => {
            lineage.fit(end);
            (lineage, None)
        }
        Err(reason) => (Lineage::default(), Some(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Histories that begin at these positions.
    fn sample(starts: &[u64]) -> Lineage {
        let mut lineage = Lineage::default();
        for (term, &start) in starts.iter().enumerate() {
            lineage.begin(term as u64, Position(start));
        }
        lineage
    }

    fn id(lineage: &Lineage, at: usize) -> u64 {
        lineage.histories()[at].id
    }

    #[test]
    fn a_written_lineage_is_read_again() {
        for starts in [&[][..], &[0], &[0, 100, 450]] {
            let lineage = sample(starts);
            assert_eq!(lineage.to_string().parse(), Ok(lineage));
        }
    }

    #[test]
    fn every_changed_letter_is_noticed() {
        let text = sample(&[0, 100]).to_string();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).expect("one bit of ASCII");
            assert!(changed.parse::<Lineage>().is_err(), "{changed}");
            assert!(text[..at].parse::<Lineage>().is_err(), "{at} bytes");
        }
    }

    #[test]
    fn other_lines_and_orders_are_refused() {
        let line = |start| format!("history {start:016x} term 1 position {start}\n");
        let text = |lines: &[String]| with_end(format!("{FIRST_LINE}\n{}", lines.concat()));
        assert!(text(&[line(1), line(2)]).parse::<Lineage>().is_ok());
        assert!(text(&[line(2), line(1)]).parse::<Lineage>().is_err());
        assert!(text(&["future 1\n".to_owned()]).parse::<Lineage>().is_err());
        let many: Vec<String> = (0..=MAX_HISTORIES as u64).map(line).collect();
        assert!(text(&many[1..]).parse::<Lineage>().is_ok());
        assert!(text(&many).parse::<Lineage>().is_err());
    }

    #[test]
    fn a_history_is_covered_up_to_the_start_of_the_next() {
        let lineage = sample(&[0, 100, 450]);
        assert!(lineage.covers(id(&lineage, 1), Position(100)));
        assert!(lineage.covers(id(&lineage, 1), Position(450)));
        assert!(!lineage.covers(id(&lineage, 1), Position(451)));
        assert!(!lineage.covers(id(&lineage, 1), Position(99)));
        assert!(lineage.covers(id(&lineage, 2), Position(10_000)));
        assert!(!lineage.covers(id(&lineage, 2) ^ 1, Position(10_000)));
    }

    #[test]
    fn a_log_names_the_history_of_its_last_batch() {
        let lineage = sample(&[0, 100, 450]);
        let at = |end| lineage.at(Position(end)).map(|history| history.id);
        assert_eq!(at(0), Some(id(&lineage, 0)));
        assert_eq!(at(100), Some(id(&lineage, 0)));
        assert_eq!(at(101), Some(id(&lineage, 1)));
        assert_eq!(at(451), Some(id(&lineage, 2)));
        assert_eq!(Lineage::default().at(Position(5)), None);
    }

    #[test]
    fn starts_without_a_change_leave_no_histories() {
        let mut lineage = sample(&[0, 100, 100, 100]);
        assert_eq!(lineage.histories().len(), 2);
        lineage.fit(Position(99));
        assert_eq!(lineage.histories().len(), 1);
        for start in 1..200 {
            lineage.begin(1, Position(start));
        }
        assert_eq!(lineage.histories().len(), MAX_HISTORIES);
        assert_eq!(lineage.current().map(|history| history.start), Some(Position(199)));
    }

    #[test]
    fn the_first_history_includes_what_was_there() {
        let lineage = sample(&[700]);
        assert_eq!(lineage.at(Position(300)), lineage.current());
    }
}
