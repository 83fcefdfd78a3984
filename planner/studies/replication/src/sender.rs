// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending chunks to a backup, into receive slots that belong to the sender alone.

use crate::chunk::Chunk;
use crate::gate::Permits;
use crate::log::Refusal;
use crate::message::{Answer, Message};
use crate::options::Options;
use freeport_study_verbs::{Fault, Place, Verbs, Way};
use std::future::Future;

/// A sender of chunks to one backup. A clone is the same.
#[derive(Clone)]
pub(crate) struct Sender<V> {
    verbs: V,
    to: Place,
    slots: Permits,
    /// First byte of the slots in the backup's memory.
    first: u64,
    options: Options,
}

impl<V: Verbs> Sender<V> {
    pub(crate) fn new(verbs: &V, to: Place, options: &Options) -> Self {
        let slots = options.receive_slots;
        // The processor's follow those of the host.
        let first = if verbs.place() == Place::Soc { slots * options.slot_bytes() } else { 0 };
        let slots = Permits::new(slots);
        Self { verbs: verbs.clone(), to, slots, first: first as u64, options: *options }
    }

    /// Writes a chunk, raw or compressed, into a slot, and returns the backup's answer. All backups
    /// hold the chunk with the number `held`.
    pub(crate) async fn send(
        &self,
        number: u64,
        held: u64,
        chunk: Vec<u8>,
    ) -> Result<Answer, Fault> {
        let slot = self.slots.take().await;
        let at = self.first + (slot.number * self.options.slot_bytes()) as u64;
        let bytes = chunk.len() as u64;
        self.verbs.write(self.to.at(at), chunk, Way::Nic).await?;
        self.ask(Message::Arrived { number, at, bytes, held }).await
    }

    async fn ask(&self, message: Message) -> Result<Answer, Fault> {
        let answer = self.verbs.call(self.to, message.encode()).await?;
        Ok(Answer::decode(&answer))
    }

    /// Brings a chunk to the backup and all behind it, however often they die. `attempt` sends it.
    /// If the backup may have it already, it is asked first. `held` returns the number of the last
    /// chunk that all backups hold. Returns the bytes that were sent, if any were.
    ///
    /// # Errors
    /// A backup has another log.
    pub(crate) async fn bring<F>(
        &self,
        chunk: &Chunk,
        mut is_new: bool,
        held: impl Fn() -> u64,
        attempt: impl Fn() -> F,
    ) -> Result<Option<u64>, Refusal>
    where
        F: Future<Output = Result<Answer, Fault>>,
    {
        let (number, identity) = (chunk.number, chunk.identity());
        loop {
            let answer = match is_new {
                true => attempt().await,
                false => self.ask(Message::Await { number, identity, held: held() }).await,
            };
            match answer {
                Ok(Answer::Held { bytes }) => return Ok(is_new.then_some(bytes)),
                Ok(Answer::Refused(refusal)) => return Err(refusal),
                Ok(Answer::Missing) if !is_new => is_new = true,
                Ok(Answer::Missing | Answer::Again) | Err(_) => {
                    is_new = false;
                    self.verbs.sleep(self.options.retry).await;
                }
            }
        }
    }
}
