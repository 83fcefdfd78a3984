// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages between workers. A worker that sleeps is woken; one that works looks into its mailbox
//! at each turn, so that no system call is needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use freeport_kv_commands::Shard;
use mio::Waker;

use crate::channels::Delivery;
use crate::listener::{Protocol, Stream};
use crate::worker::{Forgotten, Parcel};

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
        /// What it forgets.
        what: Forgotten,
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
}

impl Mailbox {
    /// A mailbox of the worker that the waker wakes.
    pub fn new(waker: Waker) -> (Self, Receiver<Message>) {
        let (sender, receiver) = channel();
        (Self { sender, is_asleep: AtomicBool::new(false), waker }, receiver)
    }

    /// Sends a message. A worker that has ended loses it.
    pub fn send(&self, message: Message) {
        if self.sender.send(message).is_ok() && self.is_asleep.swap(false, Ordering::SeqCst) {
            // The descriptor exists while the mailbox does.
            let _ = self.waker.wake();
        }
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
