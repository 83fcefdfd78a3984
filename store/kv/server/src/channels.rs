// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channels of publish and subscribe, and the clients that listen to them, of all workers.
//!
//! A publisher reads the table, and sends every worker that has listeners one message with their
//! numbers. The lock is held only for the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use freeport_kv_protocol::resp::Writer;
use freeport_kv_types::pattern::matches;

use crate::tracking::Notice;

/// Kinds of names that a client listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A channel.
    Channel,
    /// All channels whose names match a pattern.
    Pattern,
    /// A channel of a hash slot.
    Sharded,
}

/// A client that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    worker: u16,
    client: u64,
}

/// Names that clients listen to.
type Names = BTreeMap<Vec<u8>, Vec<Listener>>;

/// All channels.
#[derive(Debug, Default)]
pub struct Channels {
    tables: RwLock<[Names; 3]>,
}

/// A message that was published.
#[derive(Debug)]
pub struct Published {
    /// Kind of the channel, and the pattern that its name matches.
    pub kind: Kind,
    /// The pattern, if it is one.
    pub pattern: Vec<u8>,
    /// The channel.
    pub channel: Vec<u8>,
    /// The message.
    pub payload: Vec<u8>,
}

/// A message for clients of one worker.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The message.
    pub content: Content,
    /// Its receivers.
    pub clients: Vec<u64>,
}

/// Messages that clients get without a request.
#[derive(Clone, Debug)]
pub enum Content {
    /// One of a channel.
    Published(Arc<Published>),
    /// Copies of theirs are invalid.
    Invalidated(Notice),
}

impl Delivery {
    /// Bytes that it takes while it is on its way.
    pub fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Published(published) => published.bytes(),
            Content::Invalidated(notice) => notice.invalidated.bytes(),
        };
        size_of::<Self>() + content + size_of_val(&self.clients[..])
    }
}

impl Kind {
    /// The word before a message.
    fn word(self) -> &'static [u8] {
        match self {
            Self::Channel => b"message",
            Self::Pattern => b"pmessage",
            Self::Sharded => b"smessage",
        }
    }
}

impl Channels {
    /// A client listens. Returns false if it did already.
    pub fn subscribe(&self, kind: Kind, name: &[u8], worker: usize, client: u64) -> bool {
        let listener = Listener { worker: worker as u16, client };
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let listeners = tables[kind as usize].entry(name.to_vec()).or_default();
        let is_new = !listeners.contains(&listener);
        if is_new {
            listeners.push(listener);
        }
        is_new
    }

    /// A client listens no more.
    pub fn unsubscribe(&self, kind: Kind, name: &[u8], client: u64) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let table = &mut tables[kind as usize];
        if let Some(listeners) = table.get_mut(name) {
            listeners.retain(|listener| listener.client != client);
            if listeners.is_empty() {
                table.remove(name);
            }
        }
    }

    /// Calls `deliver` for each worker with receivers of a message. Returns the number of
    /// receivers.
    pub fn publish(
        &self,
        kind: Kind,
        channel: &[u8],
        payload: &[u8],
        mut deliver: impl FnMut(usize, Delivery),
    ) -> usize {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let mut receivers = 0;
        let mut send = |kind, pattern: &[u8], listeners: &[Listener]| {
            let published = Arc::new(Published {
                kind,
                pattern: pattern.to_vec(),
                channel: channel.to_vec(),
                payload: payload.to_vec(),
            });
            receivers += listeners.len();
            let mut by_worker: HashMap<u16, Vec<u64>> = HashMap::new();
            for listener in listeners {
                by_worker.entry(listener.worker).or_default().push(listener.client);
            }
            for (worker, clients) in by_worker {
                let content = Content::Published(published.clone());
                deliver(usize::from(worker), Delivery { content, clients });
            }
        };
        if let Some(listeners) = tables[kind as usize].get(channel) {
            send(kind, b"", listeners);
        }
        if kind == Kind::Channel {
            for (pattern, listeners) in &tables[Kind::Pattern as usize] {
                if matches(pattern, channel) {
                    send(Kind::Pattern, pattern, listeners);
                }
            }
        }
        receivers
    }

    /// Names that clients listen to and that match a pattern, if one is given.
    pub fn names(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Vec<u8>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let is_wanted = |name: &&Vec<u8>| pattern.is_none_or(|pattern| matches(pattern, name));
        tables[kind as usize].keys().filter(is_wanted).cloned().collect()
    }

    /// Number of clients that listen to a name.
    pub fn listeners(&self, kind: Kind, name: &[u8]) -> usize {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables[kind as usize].get(name).map_or(0, Vec::len)
    }

    /// Number of different names that clients listen to.
    pub fn count(&self, kind: Kind) -> usize {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables[kind as usize].len()
    }
}

impl Published {
    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.pattern.len() + self.channel.len() + self.payload.len()
    }

    /// Writes the message as a client receives it.
    pub fn write(&self, reply: &mut Writer<'_>) {
        let is_pattern = self.kind == Kind::Pattern;
        reply.push(if is_pattern { 4 } else { 3 });
        reply.bulk(self.kind.word());
        if is_pattern {
            reply.bulk(&self.pattern);
        }
        reply.bulk(&self.channel);
        reply.bulk(&self.payload);
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::resp::Version;

    use super::*;

    #[test]
    fn a_message_goes_to_each_worker_with_listeners() {
        let channels = Channels::default();
        for (worker, client) in [(0, 1), (1, 2), (0, 3)] {
            assert!(channels.subscribe(Kind::Channel, b"news", worker, client));
        }
        assert!(!channels.subscribe(Kind::Channel, b"news", 0, 1));
        channels.subscribe(Kind::Pattern, b"n*", 1, 2);
        channels.subscribe(Kind::Sharded, b"news", 1, 9);
        let mut seen = vec![];
        let receivers = channels.publish(Kind::Channel, b"news", b"text", |worker, delivery| {
            let Content::Published(published) = delivery.content else { return };
            seen.push((worker, published.kind, delivery.clients));
        });
        seen.sort_by_key(|(worker, kind, _)| (*kind, *worker));
        let (channel, pattern) = (Kind::Channel, Kind::Pattern);
        assert_eq!(receivers, 4);
        assert_eq!(seen, [(0, channel, vec![1, 3]), (1, channel, vec![2]), (1, pattern, vec![2])]);
    }

    #[test]
    fn names_are_forgotten_with_their_last_listener() {
        let channels = Channels::default();
        channels.subscribe(Kind::Channel, b"one", 0, 1);
        channels.subscribe(Kind::Channel, b"two", 0, 1);
        assert_eq!(channels.names(Kind::Channel, Some(b"t*")), [b"two"]);
        assert_eq!(channels.listeners(Kind::Channel, b"one"), 1);
        channels.unsubscribe(Kind::Channel, b"one", 1);
        channels.unsubscribe(Kind::Channel, b"none", 1);
        assert_eq!(channels.names(Kind::Channel, None), [b"two"]);
        assert_eq!((channels.count(Kind::Channel), channels.count(Kind::Pattern)), (1, 0));
    }

    #[test]
    fn a_message_of_a_pattern_names_it() {
        let published = Published {
            kind: Kind::Pattern,
            pattern: b"n*".to_vec(),
            channel: b"news".to_vec(),
            payload: b"x".to_vec(),
        };
        let mut output = vec![];
        published.write(&mut Writer::new(&mut output, Version::Three));
        assert_eq!(output, b">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n$1\r\nx\r\n");
    }
}
