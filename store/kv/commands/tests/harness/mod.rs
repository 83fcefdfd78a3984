// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands executed here, and beside them by an installed redis-server: replies have to be the
//! same bytes.

mod beside;
mod events;
mod local;
mod numbers;
mod redis;
mod templates;

use freeport_kv_commands::Class;
use freeport_kv_protocol::resp::{Value, ValueLimits, ValueProgress, ValueReader, Version};
use freeport_testbed::{seed, skip};

pub use beside::{Beside, are_same};
pub use events::{Listener, but_expiries};
pub use local::{Local, fill, scanned};
pub use redis::Redis;
pub use templates::Templates;

/// Both sides.
pub struct Compared {
    pub ours: Local,
    pub redis: Redis,
}

impl Compared {
    /// Calls `run` with two empty stores and random numbers for each of some seeds. Skips with a
    /// message if no redis-server is installed.
    pub fn for_seeds(seeds: u64, run: impl Fn(&mut Self, &mut fastrand::Rng)) {
        let Some(redis) = Redis::start() else {
            return skip("redis-server is not installed");
        };
        let mut compared = Self { ours: Local::new(), redis };
        let first = seed();
        for seed in first..first + seeds {
            // A failure names the seed.
            println!("seed {seed}");
            compared.ours = Local::new();
            compared.redis.call(&[b"FLUSHALL"]);
            run(&mut compared, &mut fastrand::Rng::with_seed(seed));
        }
    }

    /// As [`Compared::for_seeds`], once.
    pub fn once(run: impl Fn(&mut Self)) {
        Self::for_seeds(1, |compared, _| run(compared));
    }

    /// Replies in another version of the protocol.
    pub fn use_version(&mut self, version: Version) {
        self.ours.session.version = version;
        let number: &[u8] = if version == Version::Three { b"3" } else { b"2" };
        self.redis.call(&[b"HELLO", number]);
    }

    /// Selects a database on both sides.
    pub fn select(&mut self, number: u16) {
        self.ours.session.database = number;
        self.redis.call(&[b"SELECT", number.to_string().as_bytes()]);
    }

    /// A listener to the events of the server, new keys among them. Here the same events are noted
    /// from now on.
    pub fn listener(&mut self) -> Listener {
        let effects = &mut self.ours.effects;
        effects.listened |= Class::New as u16;
        effects.events.clear();
        Listener::new(&mut self.redis)
    }

    /// The replies of both to a command whose arguments are separated by single spaces are the same
    /// bytes. Returns the reply.
    #[track_caller]
    pub fn same(&mut self, line: &str) -> Value {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.same_arguments(&arguments)
    }

    /// As [`Compared::same`], for arguments of any bytes.
    #[track_caller]
    pub fn same_arguments(&mut self, arguments: &[&[u8]]) -> Value {
        let (ours, theirs) = self.both(arguments);
        assert!(
            ours == theirs,
            "{}\n ours:  {}\n redis: {}",
            shown(arguments),
            ours.escape_ascii(),
            theirs.escape_ascii()
        );
        parsed(&ours)
    }

    /// Both reply with the same elements, in any order.
    #[track_caller]
    pub fn same_in_any_order(&mut self, line: &str) -> Value {
        let arguments: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let (ours, theirs) = self.both(&arguments);
        let (ours, theirs) = (parsed(&ours), parsed(&theirs));
        assert_eq!(sorted(&ours), sorted(&theirs), "{line}");
        ours
    }

    /// The replies of both, as bytes.
    pub fn both(&mut self, arguments: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        (self.ours.call(arguments), self.redis.call(arguments))
    }
}

/// A reply that was received as a whole.
pub fn parsed(reply: &[u8]) -> Value {
    match ValueReader::new(ValueLimits::default()).read(reply) {
        Ok(ValueProgress::Complete { value, bytes }) if bytes == reply.len() => value,
        other => panic!("{}: {other:?}", reply.escape_ascii()),
    }
}

/// Elements of a reply in an order that depends on them alone.
pub fn sorted(value: &Value) -> Vec<String> {
    let mut elements: Vec<String> = match value {
        Value::Array(values) | Value::Set(values) => {
            values.iter().map(|value| format!("{value:?}")).collect()
        }
        Value::Map(entries) => entries.iter().map(|entry| format!("{entry:?}")).collect(),
        other => vec![format!("{other:?}")],
    };
    elements.sort();
    elements
}

pub fn shown(arguments: &[&[u8]]) -> String {
    let words: Vec<String> =
        arguments.iter().map(|argument| argument.escape_ascii().to_string()).collect();
    words.join(" ")
}
