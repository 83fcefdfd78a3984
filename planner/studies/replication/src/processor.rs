// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The processor of the NIC: it fetches chunks from the host, compresses them and sends them.
//!
//! It keeps nothing: if it dies, the host sends the chunks that it had again.

use crate::chunk::Chunk;
use crate::codec::Compression;
use crate::gate::Permits;
use crate::message::{Answer, Message};
use crate::options::Options;
use crate::sender::Sender;
use freeport_study_verbs::{Fault, Place, Verbs};

/// The processor of the NIC.
#[derive(Clone)]
pub struct Processor<V> {
    verbs: V,
    options: Options,
    queue: Permits,
    sender: Sender<V>,
}

impl<V: Verbs> Processor<V> {
    /// Begins the processor's tasks.
    pub fn begin(verbs: &V, options: &Options) {
        let queue = Permits::new(options.processor_queue);
        let sender = Sender::new(verbs, Place::Peer(0), options);
        let processor = Self { verbs: verbs.clone(), options: *options, queue, sender };
        verbs.spawn(async move {
            loop {
                let call = processor.verbs.receive().await;
                let one = processor.clone();
                processor.verbs.spawn(async move {
                    let Some(fetch) = Message::decode(&call.message) else {
                        return call.answer(Answer::Again.encode());
                    };
                    let answer = one.carry(fetch).await;
                    call.answer(answer.unwrap_or(Answer::Again).encode());
                });
            }
        });
    }

    /// Brings a chunk from the host's memory to the first backup, and returns the backup's answer.
    async fn carry(&self, message: Message) -> Result<Answer, Fault> {
        let Message::Fetch { number, at, bytes, held, way } = message else {
            return Ok(Answer::Again);
        };
        let bytes = bytes as usize;
        let _permit = self.queue.take().await;
        let costs = &self.options.costs;
        let record = self.verbs.read(Place::Host.at(at), bytes, way).await?;
        self.verbs.work(costs.process.of(bytes)).await;
        // A host that began anew may have put another chunk there.
        let chunk = match Chunk::read(&record, self.options.chunk_bytes) {
            Some((chunk, _)) if chunk.number == number => chunk,
            _ => return Ok(Answer::Again),
        };
        if self.options.compression != Compression::None {
            self.verbs.work(costs.compress.of(bytes)).await;
        }
        self.sender.send(number, held, chunk.compressed(self.options.compression)).await
    }
}
