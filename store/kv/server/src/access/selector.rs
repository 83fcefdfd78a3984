// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A set of rights: commands, keys and channels. A call is allowed if one selector of its user
//! allows all of it.

use std::collections::BTreeMap;

use freeport_kv_commands::Access;
use freeport_kv_types::pattern::matches;

use super::catalog::{Catalog, Channels, Entry, KeyUses};

/// A set of rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Commands and subcommands by their numbers, as bits.
    commands: Vec<u64>,
    /// The rules below refine `+@all`; otherwise `-@all`.
    begins_with_all: bool,
    /// Rules of commands in their order, such as `+get` and `-@dangerous`, as they are shown.
    rules: Vec<String>,
    /// First arguments that allow a command, by its number.
    first_words: BTreeMap<usize, Vec<Vec<u8>>>,
    all_keys: bool,
    keys: Vec<KeyPattern>,
    all_channels: bool,
    channels: Vec<Vec<u8>>,
}

/// Keys whose names match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPattern {
    /// The pattern.
    pub pattern: Vec<u8>,
    /// They may be read.
    pub reads: bool,
    /// They may be written.
    pub writes: bool,
}

/// The part of a call that a user has no right to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// Send the command.
    Command,
    /// Use a key as the command does.
    Key,
    /// Use a channel.
    Channel,
}

impl Selector {
    /// No rights, but for those on channels that a new one has.
    pub fn new(catalog: &Catalog, all_channels: bool) -> Self {
        Self {
            commands: vec![0; catalog.len().div_ceil(64)],
            begins_with_all: false,
            rules: vec![],
            first_words: BTreeMap::new(),
            all_keys: false,
            keys: vec![],
            all_channels,
            channels: vec![],
        }
    }

    /// Everything is allowed.
    pub fn is_unrestricted(&self, catalog: &Catalog) -> bool {
        self.all_keys && self.all_channels && (0..catalog.len()).all(|number| self.allows(number))
    }

    /// The command of a number is allowed with any arguments.
    fn allows(&self, number: usize) -> bool {
        self.commands[number / 64] & 1 << (number % 64) != 0
    }

    fn set_command(&mut self, number: usize, is_allowed: bool) {
        let bit = 1 << (number % 64);
        match is_allowed {
            true => self.commands[number / 64] |= bit,
            false => self.commands[number / 64] &= !bit,
        }
    }

    /// Allows or refuses everything that there is.
    pub fn set_all_commands(&mut self, is_allowed: bool) {
        self.commands.fill(if is_allowed { u64::MAX } else { 0 });
        self.begins_with_all = is_allowed;
        self.rules.clear();
        self.first_words.clear();
    }

    /// Allows or refuses a command with its subcommands, or one subcommand.
    pub fn set_commands(&mut self, entry: &Entry, is_allowed: bool) {
        self.set_command(entry.number, is_allowed);
        self.first_words.remove(&entry.number);
        entry.subcommands.clone().for_each(|number| self.set_command(number, is_allowed));
    }

    /// Allows a command if its first argument is a word.
    pub fn allow_first_word(&mut self, entry: &Entry, word: &[u8]) {
        let words = self.first_words.entry(entry.number).or_default();
        if !words.iter().any(|one| one.eq_ignore_ascii_case(word)) {
            words.push(word.to_vec());
        }
    }

    /// Notes a rule, which replaces earlier ones of the same command and of its subcommands.
    pub fn note_rule(&mut self, name: &str, is_allowed: bool) {
        let name = name.to_ascii_lowercase();
        self.rules.retain(|rule| {
            let rest = rule[1..].strip_prefix(&name);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        });
        self.rules.push(format!("{}{name}", if is_allowed { '+' } else { '-' }));
    }

    /// Has all keys, so that a pattern has no effect.
    pub fn has_all_keys(&self) -> bool {
        self.all_keys
    }

    /// Has all keys, or none.
    pub fn set_all_keys(&mut self, is_allowed: bool) {
        self.all_keys = is_allowed;
        self.keys.clear();
    }

    /// Adds a pattern of keys, or rights to one.
    pub fn add_keys(&mut self, added: KeyPattern) {
        match self.keys.iter_mut().find(|one| one.pattern == added.pattern) {
            Some(known) => {
                known.reads |= added.reads;
                known.writes |= added.writes;
            }
            None => self.keys.push(added),
        }
    }

    /// Has all channels, so that a pattern has no effect.
    pub fn has_all_channels(&self) -> bool {
        self.all_channels
    }

    /// Has all channels, or none.
    pub fn set_all_channels(&mut self, is_allowed: bool) {
        self.all_channels = is_allowed;
        self.channels.clear();
    }

    /// Adds a pattern of channels.
    pub fn add_channels(&mut self, pattern: &[u8]) {
        if !self.channels.iter().any(|one| one == pattern) {
            self.channels.push(pattern.to_vec());
        }
    }

    /// Checks a call. `keys` is filled when a selector needs it first.
    ///
    /// # Errors
    /// The part that is not allowed, and the position of its argument.
    pub fn check(
        &self,
        entry: &Entry,
        arguments: &[&[u8]],
        keys: &mut Option<KeyUses>,
    ) -> Result<(), (Denial, usize)> {
        if !entry.is_open && !self.allows(entry.number) && !self.allows_word(entry, arguments) {
            return Err((Denial::Command, 0));
        }
        if !self.all_keys && entry.has_keys() {
            let keys = keys.get_or_insert_with(|| {
                let mut found = KeyUses::new();
                // The command itself refuses a number of keys that is too large.
                let _ = entry.find_keys(arguments, &mut found);
                found
            });
            let denied = keys.iter().find(|(at, access)| !self.has_key(arguments[*at], *access));
            if let Some((at, _)) = denied {
                return Err((Denial::Key, *at));
            }
        }
        if !self.all_channels {
            let is_pattern = entry.channels == Channels::Patterns;
            for at in entry.channels.positions(arguments) {
                if !self.has_channel(arguments[at], is_pattern) {
                    return Err((Denial::Channel, at));
                }
            }
        }
        Ok(())
    }

    fn allows_word(&self, entry: &Entry, arguments: &[&[u8]]) -> bool {
        let (Some(words), Some(word)) = (self.first_words.get(&entry.number), arguments.get(1))
        else {
            return false;
        };
        words.iter().any(|one| one.eq_ignore_ascii_case(word))
    }

    fn has_key(&self, key: &[u8], access: Access) -> bool {
        self.all_keys
            || self.keys.iter().any(|one| one.grants(access) && matches(&one.pattern, key))
    }

    /// Every key may be read.
    pub fn reads_all_keys(&self) -> bool {
        self.all_keys || self.keys.iter().any(|one| one.reads && one.pattern == b"*")
    }

    /// A channel may be used. A pattern of channels has to be a right word for word.
    pub fn has_channel(&self, name: &[u8], is_pattern: bool) -> bool {
        let allows = |pattern: &Vec<u8>| match is_pattern {
            true => pattern == name,
            false => matches(pattern, name),
        };
        self.all_channels || self.channels.iter().any(allows)
    }

    /// Rules of commands, as they are shown.
    pub fn describe_commands(&self) -> String {
        let first = if self.begins_with_all { "+@all" } else { "-@all" };
        let rules = self.rules.iter().map(String::as_str);
        std::iter::once(first).chain(rules).collect::<Vec<_>>().join(" ")
    }

    /// Patterns of keys, as they are shown.
    pub fn describe_keys(&self) -> Vec<u8> {
        if self.all_keys {
            return b"~*".to_vec();
        }
        let patterns: Vec<Vec<u8>> = self.keys.iter().map(KeyPattern::describe).collect();
        patterns.join(&b' ')
    }

    /// Patterns of channels, as they are shown.
    pub fn describe_channels(&self) -> Vec<u8> {
        if self.all_channels {
            return b"&*".to_vec();
        }
        let patterns: Vec<Vec<u8>> =
            self.channels.iter().map(|one| [b"&", &one[..]].concat()).collect();
        patterns.join(&b' ')
    }

    /// All rules in their normal form.
    pub fn describe(&self) -> Vec<u8> {
        let mut words = vec![];
        let keys = self.describe_keys();
        if !keys.is_empty() {
            words.push(keys);
        }
        if !self.all_channels {
            words.push(b"resetchannels".to_vec());
        }
        let channels = self.describe_channels();
        if !channels.is_empty() {
            words.push(channels);
        }
        words.push(self.describe_commands().into_bytes());
        words.join(&b' ')
    }
}

impl KeyPattern {
    fn grants(&self, access: Access) -> bool {
        (self.reads || !access.reads) && (self.writes || !access.writes)
    }

    fn describe(&self) -> Vec<u8> {
        let prefix: &[u8] = match (self.reads, self.writes) {
            (true, true) => b"~",
            (true, false) => b"%R~",
            (false, _) => b"%W~",
        };
        [prefix, &self.pattern].concat()
    }
}
