// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a replacement kept, and what it could not keep: for people, and as JSON.

use serde_json::{Value, json};
use std::fmt;

/// What became of the old graph's state and packets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Replacement {
    /// Variables that kept their values, as `instance.variable`.
    pub variables: Vec<String>,
    /// Tables that kept their entries, as far as there is room.
    pub tables: Vec<KeptTable>,
    /// Variables and tables of the new graph that begin with their initial values.
    pub new: Vec<String>,
    /// Variables and tables of the old graph that are gone.
    pub not_kept: Vec<NotKept>,
    /// Frames that waited at endpoints.
    pub frames: Vec<Moved>,
    /// Items that waited in channels.
    pub items: Vec<Moved>,
    /// Instances whose handler was in the middle of a firing, which is given up.
    pub suspended: Vec<String>,
}

/// A table that kept its entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptTable {
    /// `instance.table`.
    pub path: String,
    /// Entries that it kept.
    pub entries: u64,
    /// Entries for which it has no room any more.
    pub lost: u64,
}

/// A variable or table that could not be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NotKept {
    /// `instance.variable`.
    pub path: String,
    /// Why.
    pub reason: Reason,
}

/// Why a variable or table could not be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The new graph has no instance of that name.
    NoInstance,
    /// The instance has nothing of that name.
    NoName,
    /// What it was and what it is.
    OtherType {
        /// In the old graph.
        was: String,
        /// In the new graph.
        is: String,
    },
    /// It has as many bits, with another meaning.
    OtherLayout,
}

/// Frames or items that waited somewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The endpoint or the channel.
    pub name: String,
    /// How many wait at the same place in the new graph.
    pub carried: u64,
    /// How many are lost, because there is no such place, or no room.
    pub lost: u64,
}

impl Replacement {
    /// Whether packets or items are lost.
    pub fn loses(&self) -> bool {
        self.frames.iter().chain(&self.items).any(|moved| moved.lost > 0)
    }

    /// Frames that wait in the new graph instead of the old one.
    pub fn frames_carried(&self) -> u64 {
        self.frames.iter().map(|moved| moved.carried).sum()
    }

    /// Frames that are lost.
    pub fn frames_lost(&self) -> u64 {
        self.frames.iter().map(|moved| moved.lost).sum()
    }

    /// What is lost of packets and items, in words.
    pub fn losses(&self) -> String {
        let lost = |moved: &[Moved], what: &str, place: &str| -> Vec<String> {
            let lost = moved.iter().filter(|it| it.lost > 0);
            lost.map(|it| format!("{} {what} {place} {}", it.lost, it.name)).collect()
        };
        let all = [lost(&self.frames, "frames", "at"), lost(&self.items, "items", "in")].concat();
        match all.is_empty() {
            true => "nothing is lost".to_owned(),
            false => format!("no place is left for {}", all.join(", ")),
        }
    }

    /// One object with a list for each kind of thing.
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
            Self::NoInstance => write!(f, "there is no such instance any more"),
            Self::NoName => write!(f, "its instance has nothing of that name any more"),
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
            writeln!(f, "{instance} was in the middle of a firing, which is given up")?;
        }
        Ok(())
    }
}
