// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands by name.

use crate::command::Command;

/// Longest name of a command.
const NAME_BYTES: usize = 32;

/// A table of commands, whose functions have type `R`. Names are found in any case.
///
/// Slots lie in one array, by a hash of the lengths and first letters; there are four times as many
/// as commands, so nearly every name is compared once.
#[derive(Clone, Debug)]
pub struct Table<R> {
    slots: Vec<Option<Command<R>>>,
    commands: usize,
}

impl<R: Copy> Table<R> {
    /// A table of commands. A later one replaces an earlier one of the same name.
    pub fn new(commands: impl IntoIterator<Item = Command<R>>) -> Self {
        let commands: Vec<_> = commands.into_iter().collect();
        let slots = (4 * commands.len()).next_power_of_two();
        let mut table = Self { slots: (0..slots).map(|_| None).collect(), commands: 0 };
        for mut command in commands {
            let name = command.spec.name.as_bytes();
            debug_assert!(name.len() <= NAME_BYTES && !name.iter().any(u8::is_ascii_uppercase));
            let (at, is_new) = match table.find(name) {
                Ok(at) => (at, false),
                Err(at) => (at, true),
            };
            let number = match &table.slots[at] {
                Some(replaced) => usize::from(replaced.spec.number),
                None => table.commands,
            };
            command.spec.number = u16::try_from(number).expect("a table has few commands");
            table.slots[at] = Some(command);
            table.commands += usize::from(is_new);
        }
        table
    }

    /// The command of a name in upper or lower case.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<&Command<R>> {
        if name.len() > NAME_BYTES {
            return None;
        }
        self.slots[self.find(name).ok()?].as_ref()
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands
    }

    /// There are no commands.
    pub fn is_empty(&self) -> bool {
        self.commands == 0
    }

    /// All commands, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Command<R>> {
        self.slots.iter().flatten()
    }

    /// Slot of a name, or the empty one where it would be.
    #[inline]
    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash(name) & mask;
        loop {
            match &self.slots[at] {
                None => return Err(at),
                Some(command) if command.spec.name.as_bytes().eq_ignore_ascii_case(name) => {
                    return Ok(at);
                }
                Some(_) => at = (at + 1) & mask,
            }
        }
    }
}

/// FNV-1a with letters in lower case; other bytes of names do not matter for its quality.
#[inline]
fn hash(name: &[u8]) -> usize {
    let hash = name.iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte | 0x20)).wrapping_mul(0x0100_0000_01B3)
    });
    (hash ^ hash >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Flags, Group};
    use crate::keys::Keys;

    const fn named(name: &'static str, run: u8) -> Command<u8> {
        Command::new((name, 1), Group::Server, Flags::NONE, Keys::None, run)
    }

    #[test]
    fn names_are_found_in_any_case() {
        let table = Table::new([named("get", 1), named("getex", 2), named("get", 3)]);
        assert_eq!(table.get(b"GeT").map(|command| command.run), Some(3));
        assert_eq!(table.get(b"GETEX").map(|command| command.run), Some(2));
        assert!(table.get(b"gets").is_none() && table.get(b"").is_none());
        assert!(table.get(&[b'x'; 1000]).is_none());
        assert_eq!((table.len(), table.iter().count()), (2, 2));
        let mut numbers: Vec<_> = table.iter().map(|command| command.spec.number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1]);
    }
}
