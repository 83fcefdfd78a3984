// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Report of a replacement, with what was kept and what was not: for people, and as JSON.

use serde_json::{Value, json};
use std::fmt;

/// Outcome for the old graph's state and packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replacement {
    /// Variables that kept their values, as `instance.variable`.
    pub variables: Vec<String>,
    /// Tables that kept their entries, as far as there was room.
    pub tables: Vec<KeptTable>,
    /// Variables and tables of the new graph that start with their initial values.
    pub new: Vec<String>,
    /// Variables and tables of the old graph that were not kept.
    pub not_kept: Vec<NotKept>,
    /// Frames that waited at endpoints.
    pub frames: Vec<Moved>,
    /// Items that waited in channels.
    pub items: Vec<Moved>,
    /// Instances whose handler was suspended inside a firing, which is abandoned.
    pub suspended: Vec<String>,
}

/// A table that kept its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptTable {
    /// Name as `instance.table`.
    pub path: String,
    /// Entries that were kept.
    pub entries: u64,
    /// Entries that did not fit.
    pub lost: u64,
}

/// A variable or table that could not be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotKept {
    /// Name as `instance.variable`.
    pub path: String,
    /// Reason.
    pub reason: Reason,
}

/// Reason why a variable or table could not be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The new graph has no instance of that name.
    NoInstance,
    /// The instance has no variable or table of that name.
    NoName,
    /// The types differ.
    OtherType {
        /// Type in the old graph.
        was: String,
        /// Type in the new graph.
        is: String,
    },
    /// It has the same number of bits, with another meaning.
    OtherLayout,
}

/// Frames or items that waited at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The endpoint or the channel.
    pub name: String,
    /// Number that waits at the same place in the new graph.
    pub carried: u64,
    /// Number that is lost, because there is no such place, or no room.
    pub lost: u64,
}

impl Replacement {
    /// Returns whether packets or items are lost.
    pub fn loses(&self) -> bool {
        self.frames.iter().chain(&self.items).any(|moved| moved.lost > 0)
    }

    /// Returns the number of frames that wait in the new graph instead of the old one.
    pub fn frames_carried(&self) -> u64 {
        self.frames.iter().map(|moved| moved.carried).sum()
    }

    /// Returns the number of frames that are lost.
    pub fn frames_lost(&self) -> u64 {
        self.frames.iter().map(|moved| moved.lost).sum()
    }

    /// Describes the lost packets and items in words.
    pub fn losses(&self) -> String {
        let lost = |moved: &[Moved], what: &str, place: &str| -> Vec<String> {
            let lost = moved.iter().filter(|it| it.lost > 0);
            lost.map(|it| format!("{} {what} {place} {}", it.lost, it.name)).collect()
        };
        let all = [lost(&self.frames, "frames", "at"), lost(&self.items, "items", "in")].concat();
        match all.is_empty() {
            true => "nothing is lost".to_owned(),
            false => format!("there is no room for {}", all.join(", ")),
        }
    }

    /// Returns one object with a list for each kind of entry.
    pub fn json(&self) -> Value {
        let moved = |moved: &[Moved]| -> Value {
            let each = moved.iter();
            each.map(|it| json!({"name": it.name, "carried": it.carried, "lost": it.lost}))
                .collect()
        };
        let tables = self.tables.iter();
        let not_kept = self.not_kept.iter();
        json!({
            "variables": self.variables,
            "tables": tables
                .map(|it| json!({"path": it.path, "entries": it.entries, "lost": it.lost}))
                .collect::<Vec<_>>(),
            "new": self.new,
            "not_kept": not_kept
                .map(|it| json!({"path": it.path, "reason": it.reason.to_string()}))
                .collect::<Vec<_>>(),
            "frames": moved(&self.frames),
            "items": moved(&self.items),
            "suspended": self.suspended,
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInstance => write!(f, "the instance no longer exists"),
            Self::NoName => write!(f, "its instance no longer has anything of that name"),
            Self::OtherType { was, is } => write!(f, "it was {was} and is {is}"),
            Self::OtherLayout => write!(f, "its bits have another meaning"),
        }
    }
}

impl fmt::Display for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries: u64 = self.tables.iter().map(|table| table.entries).sum();
        let (variables, tables) = (self.variables.len(), self.tables.len());
        writeln!(f, "kept {variables} variables, {tables} tables with {entries} entries")?;
        for table in self.tables.iter().filter(|table| table.lost > 0) {
            let KeptTable { path, lost, .. } = table;
            writeln!(f, "{path} is too small now: {lost} entries are lost")?;
        }
        if !self.new.is_empty() {
            writeln!(f, "new: {}", self.new.join(", "))?;
        }
        for NotKept { path, reason } in &self.not_kept {
            writeln!(f, "{path} is not kept: {reason}")?;
        }
        for (moved, what) in [(&self.frames, "frames at"), (&self.items, "items in")] {
            for Moved { name, carried, lost } in moved {
                writeln!(f, "{what} {name}: {carried} carried over, {lost} lost")?;
            }
        }
        for instance in &self.suspended {
            writeln!(f, "{instance} was suspended inside a firing, which is abandoned")?;
        }
        Ok(())
    }
}
