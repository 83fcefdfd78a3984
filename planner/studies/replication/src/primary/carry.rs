// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The way of a chunk from the host to the first backup.

use super::{Outgoing, Shared};
use crate::gate::Permit;
use crate::message::{Answer, Message};
use crate::options::{Alternative, Policy};
use freeport_study_verbs::{Fault, Place, Verbs, Way};
use std::cell::Cell;
use std::rc::Rc;

/// Waits for another try, for which a processor that did not answer is taken for dead.
const GONE_RETRIES: u32 = 4;

impl<V: Verbs> Shared<V> {
    /// Brings a chunk to all backups.
    pub(super) async fn carry(self: Rc<Self>, outgoing: Outgoing, is_new: bool) {
        let taken = Cell::new(Alternative::A3);
        let attempt = || async {
            let (alternative, permit) = self.choose(outgoing.policy).await;
            taken.set(alternative);
            self.attempt(&outgoing, alternative, permit).await
        };
        let held = || self.held.now();
        let sent = match self.sender.bring(&outgoing.chunk, is_new, held, attempt).await {
            Ok(sent) => sent,
            Err(refusal) => return self.fail(refusal.into()),
        };
        let mut counters = self.counters.borrow_mut();
        match sent {
            Some(network) => {
                counters.add(taken.get(), outgoing.chunk.bytes().len() as u64, network);
            }
            None => counters.known_chunks += 1,
        }
        drop(counters);
        // Backups append in order, so that they hold all earlier chunks as well.
        self.held.raise(outgoing.chunk.number);
    }

    /// Chooses the alternative for a chunk, with room in the processor's queue if it needs it.
    async fn choose(&self, policy: Policy) -> (Alternative, Option<Permit>) {
        match policy {
            Policy::Always(Alternative::A3) => (Alternative::A3, None),
            Policy::Always(alternative) => (alternative, Some(self.processor.take().await)),
            Policy::Auto => {
                let is_gone = self.verbs.now() < self.processor_gone.get();
                match self.processor.try_take() {
                    Some(permit) if !is_gone => (Alternative::A2, Some(permit)),
                    _ => (Alternative::A3, None),
                }
            }
        }
    }

    async fn attempt(
        &self,
        outgoing: &Outgoing,
        alternative: Alternative,
        _permit: Option<Permit>,
    ) -> Result<Answer, Fault> {
        let chunk = &outgoing.chunk;
        let (bytes, held) = (chunk.bytes().len(), self.held.now());
        let way = match alternative {
            Alternative::A1 => Way::Nic,
            Alternative::A2 => Way::Dma,
            Alternative::A3 => {
                self.verbs.work(self.options.costs.send.of(bytes)).await;
                return self.sender.send(chunk.number, held, chunk.bytes().to_vec()).await;
            }
        };
        let at = self.at(&outgoing.slot);
        let (number, length) = (chunk.number, bytes as u64);
        let fetch = Message::Fetch { number, at, bytes: length, held, way };
        match self.verbs.call(Place::Soc, fetch.encode()).await {
            Ok(answer) => Ok(Answer::decode(&answer)),
            Err(fault) => {
                let until = self.verbs.now() + self.options.retry * GONE_RETRIES;
                self.processor_gone.set(until);
                Err(fault)
            }
        }
    }
}
