// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages between workers. A worker that sleeps is woken; one that works looks into its mailbox
//! at each turn, so that no system call is needed.
//!
//! A mailbox takes every message, so that no worker ever waits for another one's mailbox. What
//! bounds the number of messages in it, while its worker does not look:
//!
//! | message | bound |
//! |---|---|
//! | `Accepted` | the maximum number of clients |
//! | `Borrow`, `Lent`, `Returned` | one of each for a worker, which has one loan in progress |
//! | `Execute`, `Executed` | one for a client and worker, with the requests that are read at once |
//! | `Moved` | the maximum number of clients |
//! | `ExecuteBatch`, `ExecutedBatch` | one for a client and worker; 1,024 for a socket of UDP |
//! | `Ready` | one for a wait and key, until the worker has looked at the key |
//! | `Forget` | the keys that a client has watched or waited for |
//! | `Deliver` | [`DELIVERIES_BYTES_MAX`] |
//! | `Run` | one of each thread that sends errands, which wait for them |
//! | `Import` | the units that an importer has sent, whose bytes it limits |
//! | `FollowUsers` | the changes of users that clients have made |
//! | `FollowRoutes` | the changes of the slot map |
//! | `Count`, `Settle` | one for a thread that asks |
//! | `Stop` | one |
//!
//! A client that was forgotten can watch or wait again only by a loan of the shard, which is behind
//! the message. Published messages and invalidations beyond the limit are lost and counted, and
//! their receivers are disconnected, as those are that read too slowly.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use freeport_kv_commands::Shard;
use mio::Waker;

use crate::census::Census;
use crate::channels::Delivery;
use crate::listener::{Protocol, Stream};
use crate::worker::{BatchParcel, Errand, Forgotten, Import, Parcel};

/// Bytes of published messages that are on their way to a worker at most, unless it is only one.
pub const DELIVERIES_BYTES_MAX: usize = 64 << 20;

/// A message to a worker.
#[derive(Debug)]
pub enum Message {
    /// A client has connected.
    Accepted {
        /// Its socket.
        stream: Stream,
        /// Its protocol.
        protocol: Protocol,
        /// Its address as text.
        address: String,
    },
    /// A worker wants to borrow the receiver's shard.
    Borrow {
        /// The worker.
        worker: usize,
    },
    /// The receiver borrows a shard.
    Lent {
        /// Number of the shard.
        number: usize,
        /// The shard.
        shard: Box<Shard>,
    },
    /// The receiver gets its own shard back.
    Returned {
        /// The shard.
        shard: Box<Shard>,
    },
    /// A key was changed that a blocked client of the receiver waits for.
    Ready {
        /// The client.
        client: u64,
    },
    /// The receiver executes commands on its shard.
    Execute {
        /// The commands.
        parcel: Box<Parcel>,
    },
    /// Commands that the receiver had sent were executed.
    Executed {
        /// The worker that executed them.
        number: usize,
        /// The replies.
        parcel: Box<Parcel>,
    },
    /// A client that was served elsewhere is served by the receiver: one of the batched protocol
    /// that wants it, or one that came while the server read its folder.
    Moved {
        /// Its socket, which no worker watches at present.
        stream: Stream,
        /// Its protocol.
        protocol: Protocol,
        /// Its address as text.
        address: String,
        /// Bytes that were received and not answered.
        input: Vec<u8>,
    },
    /// The receiver executes operations of the batched protocol on its shard.
    ExecuteBatch {
        /// The operations.
        parcel: Box<BatchParcel>,
    },
    /// Operations that the receiver had sent were executed.
    ExecutedBatch {
        /// The worker that executed them.
        number: usize,
        /// The replies.
        parcel: Box<BatchParcel>,
    },
    /// Clients of the receiver get a message.
    Deliver {
        /// The message.
        delivery: Delivery,
    },
    /// A client of the receiver is disconnected.
    Disconnect {
        /// The client.
        client: u64,
    },
    /// A client of the receiver need not wait for a key any more.
    Unblock {
        /// The client.
        client: u64,
        /// Whether its reply is an error.
        is_error: bool,
    },
    /// A client of the receiver that monitors sees a command.
    Show {
        /// The client.
        client: u64,
        /// The line with the command.
        line: Arc<[u8]>,
    },
    /// The receiver's shard forgets something of a client.
    Forget {
        /// Database and key.
        place: (u16, Vec<u8>),
        /// The thing to forget.
        what: Forgotten,
    },
    /// The receiver runs an errand while it holds all shards.
    Run {
        /// The errand.
        errand: Errand,
    },
    /// Users have changed.
    FollowUsers,
    /// The receiver counts what it holds.
    Count {
        /// Where the answer goes.
        census: Sender<Census>,
    },
    /// The receiver executes and records units of another shard.
    Import {
        /// The units.
        import: Box<Import>,
    },
    /// The routes of the cluster have changed: what waited for that is looked at again.
    FollowRoutes,
    /// The receiver follows the present routes of the cluster, and drops the sender when it has
    /// executed what it had taken up before.
    Settle {
        /// Dropped as an answer.
        done: Sender<()>,
    },
    /// The server stops.
    Stop,
}

/// The place where messages for a worker arrive.
#[derive(Debug)]
pub struct Mailbox {
    sender: Sender<Message>,
    is_asleep: AtomicBool,
    waker: Waker,
    /// Bytes of published messages on their way.
    message_bytes: AtomicUsize,
    /// Clients that a message was lost for, and that have to be disconnected.
    behind: Mutex<BTreeSet<u64>>,
    has_behind: AtomicBool,
    lost_messages: AtomicU64,
    /// Clients of the worker wait for the append log.
    awaits_log: AtomicBool,
    /// The log has advanced, and the worker has not looked at it since.
    has_advanced: AtomicBool,
}

impl Mailbox {
    /// A mailbox of the worker that the waker wakes.
    pub fn new(waker: Waker) -> (Self, Receiver<Message>) {
        let (sender, receiver) = channel();
        let mailbox = Self {
            sender,
            is_asleep: AtomicBool::new(false),
            waker,
            message_bytes: AtomicUsize::new(0),
            behind: Mutex::default(),
            has_behind: AtomicBool::new(false),
            lost_messages: AtomicU64::new(0),
            awaits_log: AtomicBool::new(false),
            has_advanced: AtomicBool::new(false),
        };
        (mailbox, receiver)
    }

    /// Sends a message. A worker that has ended loses it.
    pub fn send(&self, message: Message) {
        if self.sender.send(message).is_ok() {
            self.rouse();
        }
    }

    /// Wakes the worker, if it sleeps.
    pub fn rouse(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            // The descriptor exists while the mailbox does.
            let _ = self.waker.wake();
        }
    }

    /// Returns a published message that may be sent to the worker. There is no room for others:
    /// their receivers are disconnected.
    pub fn admit(&self, delivery: Delivery) -> Option<Delivery> {
        let bytes = delivery.bytes();
        let before = self.message_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before == 0 || before.saturating_add(bytes) <= DELIVERIES_BYTES_MAX {
            return Some(delivery);
        }
        self.delivered(&delivery);
        self.lost_messages.fetch_add(1, Ordering::Relaxed);
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).extend(delivery.clients);
        self.has_behind.store(true, Ordering::Release);
        self.rouse();
        None
    }

    /// A published message has left the mailbox.
    pub fn delivered(&self, delivery: &Delivery) {
        self.message_bytes.fetch_sub(delivery.bytes(), Ordering::Relaxed);
    }

    /// Takes the clients that a published message was lost for.
    pub fn take_behind(&self) -> BTreeSet<u64> {
        if !self.has_behind.swap(false, Ordering::Acquire) {
            return BTreeSet::new();
        }
        std::mem::take(&mut *self.behind.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes of published messages on their way.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes.load(Ordering::Relaxed)
    }

    /// Number of published messages that were lost.
    pub fn lost_messages(&self) -> u64 {
        self.lost_messages.load(Ordering::Relaxed)
    }

    /// The append log has advanced, or works again.
    pub fn log_has_advanced(&self) {
        self.has_advanced.store(true, Ordering::SeqCst);
        if self.awaits_log.load(Ordering::SeqCst) {
            self.rouse();
        }
    }

    /// The worker, which is going to sleep, says whether it waits for the log. Returns whether the
    /// log has advanced since the last call.
    pub fn await_log(&self, is_awaited: bool) -> bool {
        self.awaits_log.store(is_awaited, Ordering::SeqCst);
        self.has_advanced.swap(false, Ordering::SeqCst)
    }

    /// The worker is going to sleep; it has to look into its mailbox once more afterwards.
    pub fn fall_asleep(&self) {
        self.is_asleep.store(true, Ordering::SeqCst);
    }

    /// The worker is awake.
    pub fn wake_up(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mio::{Poll, Token};

    use super::*;
    use crate::channels::{Content, Kind, Published};

    fn delivery(bytes: usize, clients: Vec<u64>) -> Delivery {
        let published = Published {
            kind: Kind::Channel,
            pattern: vec![],
            channel: b"news".to_vec(),
            payload: vec![0; bytes],
        };
        Delivery { content: Content::Published(Arc::new(published)), clients }
    }

    #[test]
    fn published_messages_beyond_the_limit_are_lost() {
        let poll = Poll::new().expect("the system has events");
        let waker = Waker::new(poll.registry(), Token(0)).expect("a waker");
        let (mailbox, _receiver) = Mailbox::new(waker);
        // One of any size is taken.
        let first = mailbox.admit(delivery(DELIVERIES_BYTES_MAX, vec![1])).expect("it is alone");
        assert!(mailbox.take_behind().is_empty());
        assert!(mailbox.admit(delivery(1, vec![3, 2])).is_none());
        assert!(mailbox.admit(delivery(1, vec![2])).is_none());
        assert_eq!(mailbox.lost_messages(), 2);
        assert_eq!(mailbox.take_behind(), BTreeSet::from([2, 3]));
        mailbox.delivered(&first);
        assert_eq!(mailbox.message_bytes(), 0);
        assert!(mailbox.admit(delivery(1, vec![2])).is_some());
    }
}
