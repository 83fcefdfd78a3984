// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of Redis: what its connection has agreed with the server, and what it waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freeport_kv_commands::{Block, Error, Flags, Session, Spec};
use freeport_kv_protocol::resp::reply::shared;
use freeport_kv_protocol::resp::{Version, Writer};

use crate::access::Login;
use crate::channels::Kind;
use crate::clients::ClientRecord;
use crate::replication::Request;
use crate::tracking::Tracking;
use crate::worker::Gathering;

/// Arguments that outlive the bytes that they were received in.
pub type Arguments = Vec<Vec<u8>>;

/// A client of Redis.
#[derive(Debug)]
pub struct Client {
    /// State that commands on values need.
    pub session: Session,
    /// The transaction that `MULTI` has begun.
    pub transaction: Option<Transaction>,
    /// Keys of `WATCH`.
    pub watch: Watch,
    /// The command that waits; it sends nothing meanwhile.
    pub blocked: Option<Blocked>,
    /// Channels that it listens to.
    pub subscriptions: Vec<(Kind, Vec<u8>)>,
    /// A message was written to it, and it has a turn to come.
    pub is_told: bool,
    /// It waits for shards, and its next request was not taken from its input.
    pub is_suspended: bool,
    /// Its request waits for the end of a pause.
    pub is_paused: bool,
    /// Requests that other workers execute; it is suspended meanwhile.
    pub gathering: Option<Box<Gathering>>,
    /// It is a replica that has asked for the log: the connection leaves its worker.
    pub following: Option<Box<Request>>,
    /// The connection ends when all replies are sent.
    pub is_closing: bool,
    /// Its record, which others read.
    pub record: Arc<ClientRecord>,
    /// The user that it acts for.
    pub login: Login,
    /// It has given a password, or need not.
    pub is_authenticated: bool,
    /// It has not, or its user may not do everything: what it sends has to be checked.
    pub is_checked: bool,
    /// Which replies it wants.
    pub replies: Replies,
    /// It reads from replicas (`READONLY`).
    pub is_readonly: bool,
    /// It sees the commands of all clients.
    pub is_monitor: bool,
    /// It asked not to be disconnected when memory is short.
    pub is_no_evict: bool,
    /// How it tracks the keys of which it keeps copies, if it does.
    pub tracking: Option<Box<Tracking>>,
    /// `CLIENT CACHING` has decided whether its next command counts for that.
    pub is_caching_decided: bool,
    /// Number of the last command and one more, or 0 before the first.
    pub last_command: u32,
    /// Version of the parameters that limit its requests, and whether it had authenticated.
    pub limited: (u64, bool),
}

/// Which replies a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// All.
    On,
    /// None.
    Off,
    /// All but the next one.
    Skip,
}

/// Commands that `EXEC` executes.
#[derive(Debug, Default)]
pub struct Transaction {
    /// The commands with their arguments, all of the right number.
    pub queued: Vec<Arguments>,
    /// A command was refused, and `EXEC` will be.
    pub is_refused: bool,
}

/// Keys that must not change before `EXEC`.
#[derive(Debug, Default)]
pub struct Watch {
    /// Set by the shards when one of them changes.
    pub flag: Arc<AtomicBool>,
    /// Databases and keys, and whether there was a value.
    pub keys: Vec<(u16, Vec<u8>, bool)>,
}

/// A command that waits for keys.
#[derive(Debug)]
pub struct Blocked {
    /// Its arguments.
    pub arguments: Arguments,
    /// Keys and end of the wait.
    pub block: Block,
}

impl Client {
    /// A client that has just connected.
    pub fn new(record: Arc<ClientRecord>, login: Login) -> Self {
        let is_authenticated = login.has_logged_in;
        Self {
            session: Session::new(record.origin.id),
            transaction: None,
            watch: Watch::default(),
            blocked: None,
            subscriptions: vec![],
            is_told: false,
            is_suspended: false,
            is_paused: false,
            gathering: None,
            following: None,
            is_closing: false,
            record,
            is_authenticated,
            is_checked: !is_authenticated || !login.user.is_unrestricted,
            login,
            replies: Replies::On,
            is_readonly: false,
            is_monitor: false,
            is_no_evict: false,
            tracking: None,
            is_caching_decided: false,
            last_command: 0,
            limited: (0, true),
        }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.session.client
    }

    /// A command waits for `EXEC`.
    pub fn queues(&self, spec: &Spec) -> bool {
        const AT_ONCE: [&str; 6] = ["exec", "discard", "multi", "watch", "quit", "reset"];
        self.transaction.is_some() && !AT_ONCE.contains(&spec.name)
    }

    /// Queues a command for `EXEC`.
    pub fn queue(&mut self, spec: &Spec, arguments: &[&[u8]], output: &mut Vec<u8>) {
        let Some(transaction) = &mut self.transaction else { return };
        if spec.flags.has(Flags::NO_MULTI) {
            transaction.is_refused = true;
            let text = "ERR Command not allowed inside a transaction";
            return Writer::new(output, self.session.version).error(text);
        }
        transaction.queued.push(arguments.iter().map(|argument| argument.to_vec()).collect());
        output.extend_from_slice(shared::QUEUED);
    }

    /// It is a client of version 2 that listens. It can send few commands, because it cannot tell
    /// replies from messages.
    pub fn is_restricted(&self) -> bool {
        !self.subscriptions.is_empty() && self.session.version == Version::Two
    }

    /// Checks that it may send a command; see [`Client::is_restricted`].
    ///
    /// # Errors
    /// The command is none of them.
    pub fn check_listening(&self, spec: &Spec) -> Result<(), Error> {
        const ALLOWED: [&str; 9] = [
            "subscribe",
            "unsubscribe",
            "psubscribe",
            "punsubscribe",
            "ssubscribe",
            "sunsubscribe",
            "ping",
            "quit",
            "reset",
        ];
        if !self.is_restricted() || ALLOWED.contains(&spec.name) {
            return Ok(());
        }
        Err(Error::new(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context",
            spec.name
        )))
    }

    /// A command was refused: `EXEC` will be too.
    pub fn refuse_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.is_refused = true;
        }
    }

    /// It takes requests now.
    pub fn is_ready(&self) -> bool {
        let waits = self.is_suspended || self.is_closing || self.following.is_some();
        self.blocked.is_none() && !waits
    }
}

impl Watch {
    /// Some key has changed.
    pub fn has_changed(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl Blocked {
    /// The keys that it waits for.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.block.keys.iter().map(|at| &self.arguments[*at][..])
    }
}

/// Slices of arguments, as commands take them.
pub fn slices(arguments: &[Vec<u8>]) -> smallvec::SmallVec<[&[u8]; 16]> {
    arguments.iter().map(Vec::as_slice).collect()
}
