// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages on invalid copies, between workers and to clients.

use std::sync::Arc;

use freeport_kv_protocol::resp::Writer;

/// Channel of the messages for clients of version 2.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// Copies that are invalid.
#[derive(Debug, PartialEq, Eq)]
pub enum Invalidated {
    /// Those of keys; with each key, the client that changed it, or 0.
    Keys(Vec<(Arc<[u8]>, u64)>),
    /// All.
    All,
}

/// A message for a client.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The invalid copies.
    pub invalidated: Arc<Invalidated>,
    /// Why the client gets it.
    pub reason: Reason,
}

/// Why a client gets a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has read the key.
    Read,
    /// It has named a prefix of the keys.
    Prefix,
    /// All copies of all clients are invalid.
    Flush,
    /// Another client, whose copies these are, wants it to get the message.
    Redirection,
}

impl Invalidated {
    /// Bytes that it takes.
    pub fn bytes(&self) -> usize {
        let keys = match self {
            Self::Keys(keys) => &keys[..],
            Self::All => &[],
        };
        let names: usize = keys.iter().map(|(key, _)| key.len()).sum();
        size_of::<Self>() + size_of_val(keys) + names
    }

    /// The same without the keys that a client has changed itself; none: nothing is left.
    pub fn without(self: &Arc<Self>, client: u64) -> Option<Arc<Self>> {
        let Self::Keys(keys) = &**self else { return Some(self.clone()) };
        let is_other = |key: &&(Arc<[u8]>, u64)| key.1 != client;
        match keys.iter().filter(is_other).count() {
            0 => None,
            count if count == keys.len() => Some(self.clone()),
            _ => Some(Arc::new(Self::Keys(keys.iter().filter(is_other).cloned().collect()))),
        }
    }

    /// Writes the message of version 3.
    pub fn write_push(&self, reply: &mut Writer<'_>) {
        reply.push(2);
        reply.bulk(b"invalidate");
        self.write(reply);
    }

    /// Writes the message of version 2, which looks like one of a channel.
    pub fn write_message(&self, reply: &mut Writer<'_>) {
        reply.array(3);
        reply.bulk(b"message");
        reply.bulk(CHANNEL);
        self.write(reply);
    }

    fn write(&self, reply: &mut Writer<'_>) {
        match self {
            Self::All => reply.null(),
            Self::Keys(keys) => {
                reply.array(keys.len());
                keys.iter().for_each(|(key, _)| reply.bulk(key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use freeport_kv_protocol::resp::Version;

    use super::*;

    fn keys(pairs: &[(&[u8], u64)]) -> Arc<Invalidated> {
        Arc::new(Invalidated::Keys(pairs.iter().map(|(key, by)| ((*key).into(), *by)).collect()))
    }

    #[test]
    fn messages_have_two_forms() {
        let mut output = vec![];
        keys(&[(b"a", 1), (b"b", 2)]).write_push(&mut Writer::new(&mut output, Version::Three));
        assert_eq!(output, b">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n");
        output.clear();
        Invalidated::All.write_message(&mut Writer::new(&mut output, Version::Two));
        let channel = "$20\r\n__redis__:invalidate\r\n";
        let expected = format!("*3\r\n$7\r\nmessage\r\n{channel}$-1\r\n");
        assert_eq!(String::from_utf8_lossy(&output), expected);
    }

    #[test]
    fn own_changes_can_be_left_out() {
        let both = keys(&[(b"a", 1), (b"b", 2)]);
        assert_eq!(both.without(2), Some(keys(&[(b"a", 1)])));
        assert_eq!(both.without(3).as_ref(), Some(&both));
        assert_eq!(keys(&[(b"a", 1)]).without(1), None);
        assert!(Arc::new(Invalidated::All).without(1).is_some());
    }
}
