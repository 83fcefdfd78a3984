// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All commands and subcommands as access control sees them: by number, with their categories, and
//! with what they do to keys and channels.

use std::collections::HashMap;

use freeport_kv_commands::{Access, Error, Flags, Keys, Spec, Table, Uses};
use smallvec::SmallVec;

use crate::commands::{CATEGORIES, categories, key_positions};

/// A command or subcommand.
#[derive(Debug)]
pub struct Entry {
    /// Its number: below [`Catalog::len`].
    pub number: usize,
    /// Name, such as `get` or `client|list`.
    pub name: String,
    /// Number of arguments, as [`Spec::arity`] has it.
    pub arity: i32,
    /// Everyone may send it, also before authentication.
    pub is_open: bool,
    /// The arguments that are names of channels.
    pub channels: Channels,
    /// The command that it is a subcommand of.
    pub parent: Option<usize>,
    /// Numbers of its subcommands.
    pub subcommands: std::ops::Range<usize>,
    /// Its categories, as bits by their order in [`CATEGORIES`].
    categories: u32,
    keys: Keys,
    uses: Uses,
}

/// Arguments of a command that are names of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channels {
    /// None.
    None,
    /// The first one.
    First,
    /// All.
    All,
    /// All, and they are patterns.
    Patterns,
}

/// A key of a call: its position among the arguments, and its use.
pub type KeyUses = SmallVec<[(usize, Access); 8]>;

/// All commands and subcommands.
#[derive(Debug)]
pub struct Catalog {
    entries: Vec<Entry>,
    /// Numbers by name in lower case.
    by_name: HashMap<String, usize>,
}

impl Catalog {
    /// The catalog of a table. A command has the number that it has in the table; subcommands
    /// follow.
    pub fn new<R: Copy>(table: &Table<R>) -> Self {
        let mut commands: Vec<&Spec> = table.iter().map(|command| &command.spec).collect();
        commands.sort_by_key(|spec| spec.number);
        let mut entries: Vec<Entry> =
            commands.iter().map(|spec| Entry::new(spec.name.into(), spec, None)).collect();
        for spec in commands {
            let (parent, first) = (usize::from(spec.number), entries.len());
            for part in spec.subcommands {
                let name = format!("{}|{}", spec.name, part.name);
                entries.push(Entry::new(name, part, Some(parent)));
            }
            entries[parent].subcommands = first..entries.len();
        }
        entries.iter_mut().enumerate().for_each(|(number, entry)| entry.number = number);
        let by_name = entries.iter().map(|entry| (entry.name.clone(), entry.number)).collect();
        Self { entries, by_name }
    }

    /// Number of commands and subcommands.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Name of the entry of a number.
    pub fn name(&self, number: usize) -> Option<&str> {
        self.entries.get(number).map(|entry| &entry.name[..])
    }

    /// The entry of a call: of the subcommand, if the call names one.
    pub fn of(&self, spec: &Spec, arguments: &[&[u8]]) -> &Entry {
        let command = &self.entries[usize::from(spec.number)];
        let Some(word) = arguments.get(1).filter(|_| !spec.subcommands.is_empty()) else {
            return command;
        };
        let is_it = |part: &Spec| word.eq_ignore_ascii_case(part.name.as_bytes());
        match spec.subcommands.iter().position(is_it) {
            Some(at) => &self.entries[command.subcommands.start + at],
            None => command,
        }
    }

    /// The entry of a name such as `get` or `client|list`, in any case.
    pub fn find(&self, name: &[u8]) -> Option<&Entry> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.by_name.get(&name).map(|number| &self.entries[*number])
    }

    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// All entries of a category, by its name in any case. None: there is no such category.
    pub fn category(&self, name: &[u8]) -> Option<impl Iterator<Item = &Entry>> {
        let is_it = |one: &&str| one.as_bytes().eq_ignore_ascii_case(name);
        let at = CATEGORIES.iter().position(is_it)?;
        Some(self.entries.iter().filter(move |entry| entry.categories & 1 << at != 0))
    }
}

impl Entry {
    fn new(name: String, spec: &Spec, parent: Option<usize>) -> Self {
        let named = categories(spec, name.split('|').next().unwrap_or_default());
        let bits = CATEGORIES.iter().enumerate().filter(|(_, one)| named.contains(one));
        Self {
            number: 0,
            arity: spec.arity,
            is_open: spec.flags.has(Flags::NO_AUTH),
            channels: Channels::of(&name),
            parent,
            subcommands: 0..0,
            categories: bits.fold(0, |bits, (at, _)| bits | 1 << at),
            keys: key_positions(spec),
            uses: Uses::of(&name, spec.flags),
            name,
        }
    }

    /// Calls of it may name keys.
    pub fn has_keys(&self) -> bool {
        !matches!(self.keys, Keys::None | Keys::All | Keys::AllFor(_))
    }

    /// Finds the keys of a call.
    ///
    /// # Errors
    /// The number of keys is above that of the arguments. Those that exist are found; the command
    /// itself refuses the call.
    pub fn find_keys(&self, arguments: &[&[u8]], found: &mut KeyUses) -> Result<(), Error> {
        self.keys.visit(arguments, |at| {
            found.push((at, self.uses.at(found.len(), arguments)));
        })
    }
}

impl Channels {
    fn of(name: &str) -> Self {
        match name {
            "publish" | "spublish" => Self::First,
            "subscribe" | "ssubscribe" => Self::All,
            "psubscribe" => Self::Patterns,
            _ => Self::None,
        }
    }

    /// The names among the arguments of a call, with their positions.
    pub fn positions(self, arguments: &[&[u8]]) -> std::ops::Range<usize> {
        match self {
            Self::None => 0..0,
            Self::First => 1..2.min(arguments.len()),
            Self::All | Self::Patterns => 1..arguments.len(),
        }
    }
}
