// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A command: its properties, and the function that executes it.

use std::ops::BitOr;

use crate::arguments::is;
use crate::call::Call;
use crate::error::Error;
use crate::keys::Keys;

/// Executes a command on values.
pub type Run = fn(&mut Call<'_>) -> Result<(), Error>;

/// A command on values. A server's own commands have another kind of function.
#[derive(Clone, Copy, Debug)]
pub struct Command<R = Run> {
    /// Properties.
    pub spec: Spec,
    /// The function.
    pub run: R,
}

/// Properties of a command.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name in lower case.
    pub name: &'static str,
    /// Number of arguments with the name; a negative one is the least number.
    pub arity: i32,
    /// Flags.
    pub flags: Flags,
    /// Positions of keys.
    pub keys: Keys,
    /// The group that the documentation has it in.
    pub group: Group,
    /// Number in its table, below the number of commands there: where a server counts its calls.
    pub number: u16,
    /// Properties of its subcommands, as `COMMAND` lists them: whether `XGROUP` writes depends on
    /// its second word.
    pub subcommands: &'static [Spec],
}

/// Set of properties of a command, named as `COMMAND` prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u32);

/// Groups of commands, as the documentation of Redis has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Keys of any type.
    Generic,
    /// Strings and counters.
    String,
    /// Bits of strings.
    Bitmap,
    /// Hashes.
    Hash,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Places on earth.
    Geo,
    /// Counters of different values.
    HyperLogLog,
    /// Streams.
    Stream,
    /// Publish and subscribe.
    PubSub,
    /// Transactions.
    Transactions,
    /// Scripts and functions.
    Scripting,
    /// The connection.
    Connection,
    /// The server.
    Server,
    /// Operations of KV-Direct.
    Vector,
}

impl Group {
    /// Name, as the category of access control has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "keyspace",
            Self::String => "string",
            Self::Bitmap => "bitmap",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sortedset",
            Self::Geo => "geo",
            Self::HyperLogLog => "hyperloglog",
            Self::Stream => "stream",
            Self::PubSub => "pubsub",
            Self::Transactions => "transaction",
            Self::Scripting => "scripting",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Vector => "vector",
        }
    }
}

impl Flags {
    /// No property.
    pub const NONE: Self = Self(0);
    /// Changes values.
    pub const WRITE: Self = Self(1);
    /// Reads values.
    pub const READ: Self = Self(1 << 1);
    /// May need more memory, and is refused when none is left.
    pub const GROWS: Self = Self(1 << 2);
    /// Takes constant or logarithmic time.
    pub const FAST: Self = Self(1 << 3);
    /// May wait for a key.
    pub const BLOCKING: Self = Self(1 << 4);
    /// For operators.
    pub const ADMIN: Self = Self(1 << 5);
    /// Belongs to publish and subscribe.
    pub const PUBSUB: Self = Self(1 << 6);
    /// Not allowed in scripts.
    pub const NO_SCRIPT: Self = Self(1 << 7);
    /// Not allowed in transactions.
    pub const NO_MULTI: Self = Self(1 << 8);
    /// Allowed before authentication.
    pub const NO_AUTH: Self = Self(1 << 9);
    /// Allowed while data is loaded.
    pub const LOADING: Self = Self(1 << 10);
    /// Allowed on a replica whose data is stale.
    pub const STALE: Self = Self(1 << 11);
    /// Keys are found by a function.
    pub const MOVABLE_KEYS: Self = Self(1 << 12);
    /// Allowed while a script is too slow.
    pub const ALLOW_BUSY: Self = Self(1 << 13);
    /// Not shown to `MONITOR` and not in the slow log.
    pub const SKIP_MONITOR: Self = Self(1 << 14);

    /// Writes, and counts the keys that it looks up as a read does.
    pub const COUNTED: Self = Self(1 << 15);

    const NAMES: [(Self, &'static str); 15] = [
        (Self::WRITE, "write"),
        (Self::READ, "readonly"),
        (Self::GROWS, "denyoom"),
        (Self::ADMIN, "admin"),
        (Self::PUBSUB, "pubsub"),
        (Self::NO_SCRIPT, "noscript"),
        (Self::BLOCKING, "blocking"),
        (Self::LOADING, "loading"),
        (Self::STALE, "stale"),
        (Self::SKIP_MONITOR, "skip_monitor"),
        (Self::FAST, "fast"),
        (Self::NO_AUTH, "no_auth"),
        (Self::NO_MULTI, "no_multi"),
        (Self::MOVABLE_KEYS, "movablekeys"),
        (Self::ALLOW_BUSY, "allow_busy"),
    ];

    /// Has all properties of `others`.
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The properties of both.
    #[must_use]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Names of the properties.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, others: Self) -> Self {
        self.with(others)
    }
}

impl Spec {
    /// The number of arguments is right.
    ///
    /// # Errors
    /// It is not.
    pub fn check_arity(&self, arguments: usize) -> Result<(), Error> {
        let wanted = self.arity.unsigned_abs() as usize;
        let is_right = if self.arity < 0 { arguments >= wanted } else { arguments == wanted };
        if is_right { Ok(()) } else { Err(Error::arity(self.name)) }
    }

    /// Properties of a call with these arguments: of the subcommand that they name, if the command
    /// has one of this name with properties of its own.
    pub fn of(&self, arguments: &[&[u8]]) -> &Self {
        let Some(word) = arguments.get(1) else { return self };
        self.subcommands.iter().find(|part| is(word, part.name)).unwrap_or(self)
    }
}

impl<R> Command<R> {
    /// A command.
    pub const fn new(
        (name, arity): (&'static str, i32),
        group: Group,
        flags: Flags,
        keys: Keys,
        run: R,
    ) -> Self {
        Self { spec: Spec { name, arity, flags, keys, group, subcommands: &[], number: 0 }, run }
    }

    /// The command with properties of its subcommands.
    #[must_use]
    pub const fn with_subcommands(mut self, subcommands: &'static [Spec]) -> Self {
        self.spec.subcommands = subcommands;
        self
    }
}

impl Command {
    /// Executes the command. The number of arguments has been checked. An error is the reply, in
    /// place of what had been written. Returns whether it succeeded.
    #[inline]
    pub fn execute(&self, call: &mut Call<'_>) -> bool {
        let start = call.reply.len();
        let result = (self.run)(call);
        call.finish_lookups(&self.spec);
        match result {
            Ok(()) => {
                call.database.effects.tell_all_made();
                true
            }
            Err(error) => {
                call.database.effects.made.clear();
                call.reply.truncate(start);
                call.reply.error(error.text());
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arity_is_exact_or_a_least_number() {
        let spec = |arity| Spec {
            name: "x",
            arity,
            flags: Flags::NONE,
            keys: Keys::None,
            group: Group::Server,
            number: 0,
            subcommands: &[],
        };
        assert!(spec(2).check_arity(2).is_ok());
        assert!(spec(-2).check_arity(9).is_ok());
        let error = spec(-3).check_arity(2).expect_err("one is missing");
        assert_eq!(error.text(), "ERR wrong number of arguments for 'x' command");
        assert!(spec(2).check_arity(3).is_err());
    }

    #[test]
    fn a_subcommand_has_its_own_properties() {
        const PART: Spec = Spec {
            name: "part",
            arity: 3,
            flags: Flags::WRITE,
            keys: Keys::None,
            group: Group::Server,
            subcommands: &[],
            number: 0,
        };
        let whole = Spec { name: "whole", flags: Flags::NONE, subcommands: &[PART], ..PART };
        assert_eq!(whole.of(&[b"whole", b"PART", b"x"]).flags, Flags::WRITE);
        assert_eq!(whole.of(&[b"whole", b"other"]).flags, Flags::NONE);
        assert_eq!(whole.of(&[b"whole"]).name, "whole");
    }

    #[test]
    fn flags_have_names() {
        let flags = Flags::WRITE | Flags::GROWS | Flags::FAST;
        assert_eq!(flags.names().collect::<Vec<_>>(), ["write", "denyoom", "fast"]);
    }
}
