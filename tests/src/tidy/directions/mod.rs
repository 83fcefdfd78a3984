// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Imports inside of a crate point one way. A room is a module at the top of a crate, with all
//! files below it. `tests/rooms.txt` lists the rooms of a crate from the ground up, and for each
//! room the rooms that it may import.
//!
//! Tests are exempt: a file of tests, a module under `#[cfg(test)]`, and anything else under that
//! attribute. A test may drive its room from the rooms above, and no code depends on a test. The
//! root of a crate is exempt as well: it declares the rooms and re-exports their items. For this
//! reason a re-exported item counts as an import of its own room, and rooms may not import items
//! that the root defines.

mod imports;
mod sources;
mod table;

use super::{Finding, Tree};
use imports::imports;
use sources::{Crate, Origin, Source};
use table::{CrateRooms, Table};

/// The table of allowed directions.
const TABLE: &str = "tests/rooms.txt";

/// Every room imports only rooms that the table allows.
pub fn directions(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(TABLE) else {
        let message = "the table of rooms is missing".to_owned();
        return vec![Finding { path: TABLE.to_owned(), line: 0, message }];
    };
    let (table, mut findings) = Table::read(file);
    for listed in &table.crates {
        match Crate::read(tree, &listed.folder) {
            Some(found) => findings.extend(check(&found, listed)),
            None => {
                let message = format!("`{}` has no `src/lib.rs` or `src/main.rs`", listed.folder);
                findings.push(file.finding(listed.line, message));
            }
        }
    }
    findings
}

/// Compares a crate with its part of the table.
fn check(found: &Crate<'_>, listed: &CrateRooms) -> Vec<Finding> {
    let mut findings = vec![];
    for room in &listed.rooms {
        if !found.rooms.contains_key(room.name.as_str()) {
            let message = format!("`{}` has no room `{}`", listed.folder, room.name);
            findings.push(Finding { path: TABLE.to_owned(), line: room.line, message });
        }
    }
    for (room, file) in &found.rooms {
        if listed.room(room).is_none() {
            let message = format!("room `{room}` is not listed in {TABLE}: add it at its height");
            findings.push(file.finding(0, message));
        }
    }
    for source in &found.sources {
        if let Some(room) = listed.room(source.room) {
            findings.extend(check_source(found, source, &room.allowed));
        }
    }
    findings
}

/// The imports of one file that the table does not allow.
fn check_source(found: &Crate<'_>, source: &Source<'_>, allowed: &[String]) -> Vec<Finding> {
    let room = source.room;
    let mut findings = vec![];
    for import in imports(&source.file.text, source.depth) {
        let text = &import.text;
        let message = match found.origin(&import.name) {
            Origin::Room(target) if target == room || allowed.iter().any(|it| it == target) => {
                continue;
            }
            Origin::Outside => continue,
            Origin::Room(target) => {
                let allowed = match allowed {
                    [] => "no other room".to_owned(),
                    rooms => format!("only {}", rooms.join(", ")),
                };
                format!("`{text}`: `{room}` may not import `{target}`; {TABLE} allows {allowed}")
            }
            Origin::Root => format!(
                "`{text}`: the root of the crate lies above all rooms; import an item from a room"
            ),
        };
        findings.push(source.file.finding(import.line, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const ROOMS: &str = "# A comment.\na\n    ground:\n    middle: ground\n    top: middle\n";
    const ROOT: &str = "pub mod ground;\nmod middle;\npub mod top;\n\
        pub use ground::{Stone, deep::Clay as Loam};\npub use other_crate::Water;\n\
        pub fn of_the_root() {}\n";

    /// Findings of the rule in a sample crate, whose other files are clean.
    fn said(files: &[(&str, &str)]) -> Vec<String> {
        let mut all = vec![(TABLE, ROOMS), ("a/src/lib.rs", ROOT)];
        for empty in ["a/src/ground.rs", "a/src/middle/mod.rs", "a/src/top.rs"] {
            if files.iter().all(|(path, _)| *path != empty) {
                all.push((empty, ""));
            }
        }
        all.retain(|(path, _)| files.iter().all(|(given, _)| given != path));
        all.extend(files);
        directions(&Tree::of(&all)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_that_keeps_to_its_table_has_no_findings() {
        let middle = "use crate::ground::Stone;\nuse crate::{Loam, Water};\nuse self::inner::It;\n\
            use super::ground;\npub(in crate::middle) struct X;\n";
        let files = [("a/src/middle/mod.rs", middle), ("a/src/top.rs", "use crate::middle::X;\n")];
        assert_eq!(said(&files), [""; 0]);
    }

    #[test]
    fn a_forbidden_import_is_found_with_what_is_allowed() {
        let said_of_ground = said(&[("a/src/ground.rs", "\nuse crate::middle::{X, Y};\n")]);
        let message = "a/src/ground.rs:2: `crate::middle`: `ground` may not import `middle`; \
            tests/rooms.txt allows no other room";
        assert_eq!(said_of_ground, [message]);
        let said_of_top = said(&[("a/src/top.rs", "fn f() { crate::ground::g() }\n")]);
        let message = "a/src/top.rs:1: `crate::ground`: `top` may not import `ground`; \
            tests/rooms.txt allows only middle";
        assert_eq!(said_of_top, [message]);
    }

    #[test]
    fn imports_are_found_in_every_spelling() {
        let deep = "// crate::top in a comment\nuse crate::{\n    ground::Stone,\n    top::{\n\
            \x20       A, B,\n    },\n};\nuse super::super::top::A;\nuse super::{top};\n\
            mod inner {\n    use super::top;\n    use super::super::super::top::A;\n}\n\
            use super::super::top;\nmacro_rules! m { () => { $crate::top::A } }\n";
        let files = [("a/src/middle/deep.rs", deep)];
        let lines: Vec<String> = said(&files)
            .iter()
            .map(|it| it.split(": ").next().unwrap_or_default().to_owned())
            .collect();
        let place = |line: &u32| format!("a/src/middle/deep.rs:{line}");
        assert_eq!(lines, [4, 8, 12, 14, 15].iter().map(place).collect::<Vec<_>>());
    }

    #[test]
    fn items_of_the_root_are_those_of_their_rooms() {
        let files = [("a/src/top.rs", "use crate::{Loam, Water, of_the_root};\nuse crate::*;\n")];
        let message = "the root of the crate lies above all rooms; import an item from a room";
        let said = said(&files);
        assert!(said[0].contains("`top` may not import `ground`"), "{said:?}");
        assert_eq!(said[1], format!("a/src/top.rs:1: `crate::of_the_root`: {message}"));
        assert_eq!(said[2], format!("a/src/top.rs:2: `crate::*`: {message}"));
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn a_room_that_is_not_listed_is_found() {
        let loft = ("a/src/loft/mod.rs", "use crate::ground::Stone;\n");
        let message = "room `loft` is not listed in tests/rooms.txt: add it at its height";
        assert_eq!(said(&[loft]), [format!("a/src/loft/mod.rs:0: {message}")]);
    }

    #[test]
    fn tests_may_import_what_they_need() {
        let ground = "#[cfg(test)]\nuse crate::top::A;\nmod probe;\n#[cfg(test)]\nmod sample;\n\
            #[cfg(test)]\n#[allow(unused)]\nmod tests {\n    use crate::top::A;\n}\n\
            use crate::top::B;\n";
        let sample = ("a/src/ground/sample.rs", "use crate::top::A;\n");
        let below = ("a/src/ground/sample/below.rs", "use crate::top::A;\n");
        let tests = ("a/src/ground/tests.rs", "use crate::top::A;\n");
        let said = said(&[("a/src/ground.rs", ground), sample, below, tests]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("a/src/ground.rs:11: "), "{said:?}");
    }

    #[test]
    fn a_table_that_is_wrong_is_found() {
        let rooms = "a\n    ground: top\n    ground:\n    middle: ground cellar\n    top:\n\
            \x20   attic:\nb\n  c\n";
        let files = [
            (TABLE, rooms),
            ("a/src/lib.rs", ROOT),
            ("a/src/ground.rs", ""),
            ("a/src/middle.rs", ""),
            ("a/src/top.rs", ""),
        ];
        let lines = [2, 3, 4, 8, 6, 7].map(|line| format!("{TABLE}:{line}"));
        assert_eq!(found(directions, &files), lines);
        assert_eq!(found(directions, &[("a/src/lib.rs", "")]), [format!("{TABLE}:0")]);
    }
}
