// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A crate as rooms and files, and the room of each name in the root of the crate.

use crate::tidy::{File, Tree};
use std::collections::BTreeMap;

/// A crate.
pub struct Crate<'t> {
    /// Each room with the first file found in it.
    pub rooms: BTreeMap<&'t str, &'t File>,
    /// Files of rooms, without tests.
    pub sources: Vec<Source<'t>>,
    /// Names re-exported by the root, with the first part of their paths.
    reexports: BTreeMap<String, String>,
}

/// A file of a room.
pub struct Source<'t> {
    /// The file.
    pub file: &'t File,
    /// Room of the file.
    pub room: &'t str,
    /// Number of modules from the root of the crate to the file's module: 1 for a room's own file.
    pub depth: usize,
}

/// Origin of an item named at the root of the crate.
#[derive(PartialEq, Eq, Debug)]
pub enum Origin<'c> {
    /// A room.
    Room(&'c str),
    /// Another crate.
    Outside,
    /// The root defines it, or re-exports it by a glob.
    Root,
}

impl<'t> Crate<'t> {
    /// Reads the crate in `folder`; `None` if it has no root.
    pub fn read(tree: &'t Tree, folder: &str) -> Option<Self> {
        let root = ["lib.rs", "main.rs"].iter().find_map(|it| {
            let path = format!("{folder}/src/{it}");
            tree.file(&path)
        })?;
        let top = format!("{folder}/src/");
        let below = tree.files.iter().filter_map(|file| {
            let path = file.path.strip_prefix(&top)?.strip_suffix(".rs")?;
            let path: Vec<&str> = path.trim_end_matches("/mod").split('/').collect();
            let is_root = matches!(path[..], ["lib" | "main"] | ["bin", ..]);
            (!is_root).then_some((file, path))
        });
        let files: Vec<(&File, Vec<&str>)> = below.collect();
        let mut tests = test_modules(root, &[]);
        for (file, path) in &files {
            tests.extend(test_modules(file, path));
        }
        let (mut rooms, mut sources) = (BTreeMap::new(), vec![]);
        for (file, path) in &files {
            let is_test = path.contains(&"tests")
                || tests.iter().any(|test| path.iter().take(test.len()).eq(test.iter()));
            if !is_test {
                rooms.entry(path[0]).or_insert(*file);
                sources.push(Source { file, room: path[0], depth: path.len() });
            }
        }
        let reexports = reexports(&root.text);
        Some(Self { rooms, sources, reexports })
    }

    /// Returns the origin of `crate::name`.
    pub fn origin(&self, name: &str) -> Origin<'_> {
        if let Some((room, _)) = self.rooms.get_key_value(name) {
            return Origin::Room(room);
        }
        match self.reexports.get(name) {
            Some(first) => match self.rooms.get_key_value(first.as_str()) {
                Some((room, _)) => Origin::Room(room),
                None => Origin::Outside,
            },
            None => self.room_of_macro(name),
        }
    }

    /// Returns the room with the macro of this name, which `#[macro_export]` or `use` put into the
    /// root.
    fn room_of_macro(&self, name: &str) -> Origin<'_> {
        let definition = format!("macro_rules! {name} ");
        let found = self.sources.iter().find(|source| source.file.text.contains(&definition));
        found.map_or(Origin::Root, |source| Origin::Room(source.room))
    }
}

/// Returns the paths of modules that a file declares for tests only.
fn test_modules<'t>(file: &'t File, path: &[&'t str]) -> Vec<Vec<&'t str>> {
    let mut lines = file.text.lines().map(str::trim);
    let mut found = vec![];
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let declared = lines.by_ref().find(|line| !line.starts_with("#["));
            let name = declared.and_then(|it| it.strip_suffix(';')?.split_once("mod "));
            found.extend(name.map(|(_, name)| [path, &[name]].concat()));
        }
    }
    found
}

/// Returns the names in `use` declarations of the root, with the first part of their paths. Names
/// imported by a glob have no entry.
fn reexports(root: &str) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    let mut rest = root;
    while let Some(at) = rest.find("use ") {
        let is_declaration = rest[..at].rsplit('\n').next().is_some_and(|before| {
            before.is_empty() || (before.starts_with("pub") && !before.contains("//"))
        });
        rest = &rest[at + "use ".len()..];
        let Some(end) = rest.find(';').filter(|_| is_declaration) else { continue };
        let path = rest[..end].trim_start_matches("crate::").trim_start_matches("self::");
        let first = path.split("::").next().unwrap_or(path);
        for part in path.split(['{', '}', ',']) {
            let last = part.rsplit("::").next().unwrap_or(part);
            let name = last.rsplit(" as ").next().unwrap_or(last).trim();
            if !name.is_empty() && name != "*" {
                names.insert(name.to_owned(), first.trim().to_owned());
            }
        }
    }
    names
}
