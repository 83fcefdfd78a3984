// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a client tracks.

use std::collections::BTreeSet;

use freeport_kv_commands::arguments::is;
use freeport_kv_protocol::resp::{Version, Writer};

use super::{Invalidated, Notice, Reason};
use crate::client::Client;
use crate::shared::Shared;

/// Bytes of notices that are held back for a client at most. They wait for replies of other
/// workers, which are on their way.
const HELD_BYTES_MAX: usize = 32 << 20;

/// State of a client that tracks.
#[derive(Debug, Default)]
pub struct Tracking {
    /// Which keys count.
    pub mode: Mode,
    /// Changes by the client itself do not count.
    pub is_no_loop: bool,
    /// The client that gets the messages; 0: this one.
    pub redirect: u64,
    /// A message found that client gone.
    pub is_broken: bool,
    /// `CLIENT CACHING` has decided about the next command.
    pub is_decided: bool,
    /// Prefixes in broadcasting mode.
    pub prefixes: BTreeSet<Vec<u8>>,
    /// Notices that wait for replies of other workers.
    held: Vec<Notice>,
    held_bytes: usize,
}

/// Keys whose changes a client is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All that it reads.
    #[default]
    All,
    /// Those of commands that follow `CLIENT CACHING YES`.
    OptIn,
    /// Those of commands that do not follow `CLIENT CACHING NO`.
    OptOut,
    /// All with certain prefixes.
    Broadcast,
}

/// A notice that another client gets.
#[derive(Debug)]
pub struct Forwarded {
    /// The worker of that client.
    pub worker: usize,
    /// The client.
    pub client: u64,
    /// The notice.
    pub notice: Notice,
}

impl Client {
    /// Makes the session say whether the keys that the next command reads are remembered.
    pub fn follow_tracking(&mut self) {
        let tracking = self.tracking.as_deref();
        let is_decided = tracking.is_some_and(|tracking| tracking.is_decided);
        let remembers = tracking.is_some_and(|tracking| match tracking.mode {
            Mode::All => true,
            Mode::OptIn => is_decided,
            Mode::OptOut => !is_decided,
            Mode::Broadcast => false,
        });
        let worker = u8::try_from(self.record.origin.worker).expect("there are at most 64 workers");
        self.session.copies_for = if remembers { worker + 1 } else { 0 };
        self.is_caching_decided = is_decided;
    }

    /// Ends tracking, if it was on. Keys that the client has read stay in the tables.
    pub fn stop_tracking(&mut self, shared: &Shared) {
        let Some(tracking) = self.tracking.take() else { return };
        shared.trackers.remove(self.id(), &tracking.prefixes);
        self.follow_tracking();
    }

    /// The command that `CLIENT CACHING` has decided about is over, unless it waits, or belongs to
    /// a transaction.
    pub fn end_caching(&mut self, name: &[u8]) {
        if self.transaction.is_some() || self.blocked.is_some() || is(name, "client") {
            return;
        }
        if let Some(tracking) = &mut self.tracking {
            tracking.is_decided = false;
        }
        self.follow_tracking();
    }

    /// Takes a notice. Its message is written, or held back; or another client gets it.
    pub fn take_notice(
        &mut self,
        notice: &Notice,
        output: &mut Vec<u8>,
        shared: &Shared,
    ) -> Option<Forwarded> {
        let invalidated = &notice.invalidated;
        if notice.reason == Reason::Redirection {
            self.write_invalidation(invalidated, output);
            return None;
        }
        let id = self.id();
        let tracking = self.tracking.as_deref_mut()?;
        // It may track in another way now than when the key was read or the prefix was named.
        let is_broadcast = tracking.mode == Mode::Broadcast;
        match notice.reason {
            Reason::Read if is_broadcast => return None,
            Reason::Prefix if !is_broadcast => return None,
            _ => {}
        }
        if self.gathering.is_some() {
            tracking.held_bytes += invalidated.bytes();
            tracking.held.push(notice.clone());
            // It would have to drop all its copies anyway.
            self.is_closing |= tracking.held_bytes > HELD_BYTES_MAX;
            return None;
        }
        let invalidated = match tracking.is_no_loop {
            true => invalidated.without(id)?,
            false => invalidated.clone(),
        };
        if tracking.redirect == 0 {
            if self.session.version == Version::Three {
                self.write_invalidation(&invalidated, output);
            }
            return None;
        }
        let Some(record) = shared.registry.get(tracking.redirect) else {
            tracking.is_broken = true;
            let redirect = tracking.redirect;
            self.tell_broken(redirect, output);
            return None;
        };
        let (worker, client) = (record.origin.worker, record.origin.id);
        let notice = Notice { invalidated, reason: Reason::Redirection };
        Some(Forwarded { worker, client, notice })
    }

    /// Takes the notices that were held back: all replies are written now.
    pub fn take_held(&mut self) -> Vec<Notice> {
        let Some(tracking) = &mut self.tracking else { return vec![] };
        tracking.held_bytes = 0;
        std::mem::take(&mut tracking.held)
    }

    /// A client of version 2 can tell a message from a reply only if it listens to channels.
    fn write_invalidation(&self, invalidated: &Invalidated, output: &mut Vec<u8>) {
        let mut reply = Writer::new(output, self.session.version);
        if self.session.version == Version::Three {
            invalidated.write_push(&mut reply);
        } else if !self.subscriptions.is_empty() {
            invalidated.write_message(&mut reply);
        }
    }

    fn tell_broken(&self, redirect: u64, output: &mut Vec<u8>) {
        if self.session.version == Version::Three {
            let mut reply = Writer::new(output, self.session.version);
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(i64::try_from(redirect).unwrap_or(i64::MAX));
        }
    }
}
