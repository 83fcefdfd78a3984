// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads the table of rooms. A line without indentation is the folder of a crate. Each indented
//! line below it is a room, as `room: rooms that it may import`. A room may import only rooms above
//! its own line, so a table cannot allow a circle.

use crate::tidy::{File, Finding};

/// The whole table.
#[derive(Default)]
pub struct Table {
    /// Crates in the order of the file.
    pub crates: Vec<CrateRooms>,
}

/// The rooms of a crate.
pub struct CrateRooms {
    /// Folder of the crate, from the top of the repository.
    pub folder: String,
    /// Line number in the table.
    pub line: usize,
    /// Rooms from the ground up.
    pub rooms: Vec<Room>,
}

/// A room and what it may import.
pub struct Room {
    /// Name of the module.
    pub name: String,
    /// Line number in the table.
    pub line: usize,
    /// Names of the rooms it may import.
    pub allowed: Vec<String>,
}

impl CrateRooms {
    /// Returns the room of this name.
    pub fn room(&self, name: &str) -> Option<&Room> {
        self.rooms.iter().find(|room| room.name == name)
    }
}

impl Table {
    /// Reads the table; also returns its mistakes.
    pub fn read(file: &File) -> (Self, Vec<Finding>) {
        let (mut table, mut findings) = (Self::default(), vec![]);
        for (at, text) in file.text.lines().enumerate() {
            let line = at + 1;
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            if !text.starts_with(' ') {
                let folder = text.trim_end().to_owned();
                table.crates.push(CrateRooms { folder, line, rooms: vec![] });
                continue;
            }
            let (Some(listed), Some((name, allowed))) =
                (table.crates.last_mut(), text.trim().split_once(':'))
            else {
                findings.push(file.finding(line, "write `room: rooms that it may import`"));
                continue;
            };
            if listed.room(name).is_some() {
                findings.push(file.finding(line, format!("`{name}` is listed twice")));
                continue;
            }
            let allowed: Vec<String> = allowed.split_whitespace().map(str::to_owned).collect();
            for other in allowed.iter().filter(|other| listed.room(other).is_none()) {
                let message = format!("`{name}` may only import rooms listed above it: `{other}`");
                findings.push(file.finding(line, message));
            }
            listed.rooms.push(Room { name: name.to_owned(), line, allowed });
        }
        (table, findings)
    }
}
