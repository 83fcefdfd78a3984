// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What all workers of a server know. Nothing here is on the path of an operation on values.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::channels::Channels;
use crate::mail::{Mailbox, Message};
use crate::options::Options;
use crate::scripting::Library;

/// State of a server.
#[derive(Debug)]
pub struct Shared {
    /// Options that it was started with.
    pub options: Options,
    /// A mailbox for each worker.
    pub mailboxes: Vec<Mailbox>,
    /// Channels of publish and subscribe.
    pub channels: Channels,
    /// Scripts and functions.
    pub library: Library,
    /// Time of the start.
    pub started: Instant,
    /// The same time in seconds since 1970.
    pub started_s: u64,
    /// Number of connected clients.
    pub clients: AtomicUsize,
    last_client: AtomicU64,
    is_stopping: AtomicBool,
}

impl Shared {
    /// State at the start.
    pub fn new(options: Options, mailboxes: Vec<Mailbox>) -> Self {
        Self {
            options,
            mailboxes,
            channels: Channels::default(),
            library: Library::default(),
            started: Instant::now(),
            started_s: now_ms() / 1000,
            clients: AtomicUsize::new(0),
            last_client: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Number of a new client.
    pub fn next_client(&self) -> u64 {
        self.last_client.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The workers end.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Makes all workers end.
    pub fn stop(&self) {
        if !self.is_stopping.swap(true, Ordering::Relaxed) {
            self.mailboxes.iter().for_each(|mailbox| mailbox.send(Message::Stop));
        }
    }
}

/// The time in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
