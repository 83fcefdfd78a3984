// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All clients of Redis, of all workers, as `CLIENT` shows them.
//!
//! Each client has a record, which its worker updates once a turn by plain stores. Others read it
//! without asking the worker. Only names, which change rarely, are under a lock.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::DEFAULT;

/// Properties of a client, as bits of [`ClientRecord::flags`].
pub mod flag {
    /// It sees all commands.
    pub const MONITOR: u32 = 1;
    /// It listens to a channel.
    pub const LISTENS: u32 = 1 << 1;
    /// It has begun a transaction.
    pub const MULTI: u32 = 1 << 2;
    /// It waits for a key.
    pub const BLOCKED: u32 = 1 << 3;
    /// A key that it watches has changed.
    pub const DIRTY: u32 = 1 << 4;
    /// It is disconnected when it has got its replies.
    pub const CLOSING: u32 = 1 << 5;
    /// It is connected by a Unix socket.
    pub const UNIX: u32 = 1 << 6;
    /// It asked not to be disconnected when memory is short.
    pub const NO_EVICT: u32 = 1 << 7;
    /// Its commands do not count as uses of keys.
    pub const NO_TOUCH: u32 = 1 << 8;
    /// It wants to know when copies that it keeps become invalid.
    pub const TRACKS: u32 = 1 << 9;
    /// The client that should have got such a message for it was gone.
    pub const BROKEN: u32 = 1 << 10;
    /// It keeps copies of all keys with certain prefixes.
    pub const BROADCAST: u32 = 1 << 11;
    /// It reads from replicas of a cluster.
    pub const READ_ONLY: u32 = 1 << 12;

    /// Letters of `CLIENT LIST`.
    pub const LETTERS: [(u32, char); 13] = [
        (MONITOR, 'O'),
        (LISTENS, 'P'),
        (MULTI, 'x'),
        (BLOCKED, 'b'),
        (TRACKS, 't'),
        (BROKEN, 'R'),
        (BROADCAST, 'B'),
        (DIRTY, 'd'),
        (CLOSING, 'c'),
        (UNIX, 'U'),
        (READ_ONLY, 'r'),
        (NO_EVICT, 'e'),
        (NO_TOUCH, 'T'),
    ];
}

/// The constant properties of a connection.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Number of the client.
    pub id: u64,
    /// Its worker.
    pub worker: usize,
    /// Address of the client.
    pub address: String,
    /// Address that it connected to.
    pub local: String,
    /// Number of the socket.
    pub descriptor: i32,
    /// It is connected by a Unix socket.
    pub is_unix: bool,
    /// It is connected by TLS.
    pub is_encrypted: bool,
    /// It speaks the batched protocol.
    pub is_batched: bool,
    /// When it connected, in milliseconds since 1970.
    pub connected_ms: u64,
}

/// Names that a client has given, and that of its user.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// `CLIENT SETNAME`.
    pub name: Vec<u8>,
    /// Name of the client library.
    pub library: Vec<u8>,
    /// Version of the client library.
    pub library_version: Vec<u8>,
    /// The user that it acts for.
    pub user: Vec<u8>,
}

/// The public state of a client.
#[derive(Debug, Default)]
pub struct ClientRecord {
    /// Its constant properties.
    pub origin: Origin,
    /// When it sent something last, in milliseconds since 1970.
    pub active_ms: AtomicU64,
    /// Its properties.
    pub flags: AtomicU32,
    /// The selected database.
    pub database: AtomicU32,
    /// Numbers of channels, patterns and sharded channels that it listens to.
    pub subscriptions: [AtomicU32; 3],
    /// Number of queued commands and one more, or 0 outside a transaction.
    pub queued: AtomicU32,
    /// The client that gets its messages on invalid copies and one more, or 0 if it tracks none.
    pub redirect: AtomicU64,
    /// Bytes that were received and not yet executed.
    pub input_bytes: AtomicU64,
    /// Bytes that were not yet sent.
    pub output_bytes: AtomicU64,
    /// Number of the last command and one more, or 0 before the first.
    pub command: AtomicU32,
    /// Version of the protocol.
    pub version: AtomicU32,
    names: Mutex<Names>,
}

/// Kinds of clients, by which they are listed and disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// It sends commands.
    Normal,
    /// It listens to channels.
    PubSub,
    /// The server that this one copies; there is none.
    Master,
    /// A copy of this server; there is none.
    Replica,
}

/// All clients, by number.
#[derive(Debug, Default)]
pub struct Clients {
    records: Mutex<BTreeMap<u64, Arc<ClientRecord>>>,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<ClientRecord>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has connected.
    pub fn insert(&self, origin: Origin) -> Arc<ClientRecord> {
        let record = Arc::new(ClientRecord::new(origin));
        self.lock().insert(record.origin.id, record.clone());
        record
    }

    /// A client has gone.
    pub fn remove(&self, id: u64) {
        self.lock().remove(&id);
    }

    /// A client.
    pub fn get(&self, id: u64) -> Option<Arc<ClientRecord>> {
        self.lock().get(&id).cloned()
    }

    /// All clients in the order in which they connected.
    pub fn all(&self) -> Vec<Arc<ClientRecord>> {
        self.lock().values().cloned().collect()
    }
}

impl ClientKind {
    /// The kind of a word.
    pub fn parse(word: &[u8]) -> Option<Self> {
        match word.to_ascii_lowercase().as_slice() {
            b"normal" => Some(Self::Normal),
            b"pubsub" => Some(Self::PubSub),
            b"master" => Some(Self::Master),
            b"replica" | b"slave" => Some(Self::Replica),
            _ => None,
        }
    }
}

impl ClientRecord {
    /// The state of a client that has just connected.
    pub fn new(origin: Origin) -> Self {
        Self {
            active_ms: AtomicU64::new(origin.connected_ms),
            version: AtomicU32::new(2),
            flags: AtomicU32::new(if origin.is_unix { flag::UNIX } else { 0 }),
            origin,
            names: Mutex::new(Names { user: DEFAULT.to_vec(), ..Names::default() }),
            ..Self::default()
        }
    }

    /// Its names.
    pub fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It has a property.
    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Its kind.
    pub fn kind(&self) -> ClientKind {
        let is_monitor = self.has(flag::MONITOR);
        match self.has(flag::LISTENS) && !is_monitor {
            true => ClientKind::PubSub,
            false => ClientKind::Normal,
        }
    }

    /// The line of `CLIENT LIST`, without its end. Fields without a meaning here are 0, because
    /// programs look for it.
    pub fn line(&self, command: &str, now_ms: u64) -> String {
        let Origin { id, address, local, descriptor, connected_ms, .. } = &self.origin;
        let seconds = |since: u64| now_ms.saturating_sub(since) / 1_000;
        let small = |value: &AtomicU32| value.load(Ordering::Relaxed);
        let large = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let names = self.names().clone();
        let mut line = format!(
            "id={id} addr={address} laddr={local} fd={descriptor} name={} age={} idle={} flags={}",
            text(&names.name),
            seconds(*connected_ms),
            seconds(large(&self.active_ms)),
            self.letters()
        );
        let [channels, patterns, sharded] = &self.subscriptions;
        let (input, output) = (large(&self.input_bytes), large(&self.output_bytes));
        // Writing to a text does not fail.
        let _ = write!(
            line,
            " db={} sub={} psub={} ssub={} multi={} qbuf={input} qbuf-free=0 argv-mem=0 \
             multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem={output} tot-mem={} events=r cmd={command} \
             user={} redir={} resp={} lib-name={} lib-ver={}",
            small(&self.database),
            small(channels),
            small(patterns),
            small(sharded),
            i64::from(small(&self.queued)) - 1,
            input + output,
            text(&names.user),
            large(&self.redirect) as i64 - 1,
            if self.origin.is_batched { 0 } else { small(&self.version) },
            text(&names.library),
            text(&names.library_version),
        );
        line
    }

    fn letters(&self) -> String {
        let flags = self.flags.load(Ordering::Relaxed);
        let letters: String =
            flag::LETTERS.iter().filter(|(one, _)| flags & one != 0).map(|(_, it)| it).collect();
        if letters.is_empty() { "N".into() } else { letters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_a_line() {
        let clients = Clients::default();
        let origin = Origin {
            id: 7,
            address: "127.0.0.1:5".into(),
            local: "127.0.0.1:6".into(),
            descriptor: 9,
            connected_ms: 10_000,
            ..Origin::default()
        };
        let record = clients.insert(origin);
        record.names().name = b"me".to_vec();
        record.active_ms.store(12_000, Ordering::Relaxed);
        assert_eq!(
            record.line("client|list", 15_500),
            "id=7 addr=127.0.0.1:5 laddr=127.0.0.1:6 fd=9 name=me age=5 idle=3 flags=N db=0 sub=0 \
             psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 \
             obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=client|list user=default redir=-1 resp=2 \
             lib-name= lib-ver="
        );
        clients.remove(7);
        assert!(clients.get(7).is_none() && clients.all().is_empty());
    }

    #[test]
    fn properties_are_letters() {
        let record = Clients::default().insert(Origin { is_unix: true, ..Origin::default() });
        record.flags.fetch_or(flag::MULTI | flag::LISTENS, Ordering::Relaxed);
        assert_eq!((record.letters(), record.kind()), ("PxU".into(), ClientKind::PubSub));
        assert_eq!(ClientKind::parse(b"SLAVE"), Some(ClientKind::Replica));
        assert_eq!(ClientKind::parse(b"x"), None);
    }
}
