// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets with keys of several workers: each worker gets a parcel with its operations, and the
//! replies are put together in the order of the packet. The client's next packet waits for that.

use std::sync::Arc;

use freeport_kv_commands::Session;
use freeport_kv_commands::batch::{Batch, Replies};
use freeport_kv_protocol::batch::{
    HEADER_BYTES, Operations, ReplyLimits, ReplyReader, ReplyWriter,
};

use super::super::Worker;
use super::plan::{ANSWERED, Plan};
use super::{Batches, Packet};
use crate::client::Client;
use crate::connection::Peer;
use crate::mail::Message;

/// Operations for one worker, and later their replies.
#[derive(Debug)]
pub struct Parcel {
    client: u64,
    /// The worker that has the client.
    worker: usize,
    session: Session,
    /// Limits of all replies of the packet, and so of those of each parcel.
    limits: ReplyLimits,
    /// All of the packet, whose parcels share it.
    payload: Arc<[u8]>,
    operations: Operations,
    /// A packet of replies.
    replies: Vec<u8>,
    /// An operation has changed something that is in the append log.
    pub(in crate::worker) has_written: bool,
}

/// A packet that is under way.
#[derive(Debug)]
pub struct Gathering {
    batch: u32,
    limits: ReplyLimits,
    plan: Plan,
    /// Parcels by worker; none where one is under way or was never made.
    parcels: Vec<Option<Box<Parcel>>>,
    /// Number of parcels under way.
    missing: usize,
}

impl Parcel {
    /// Reads its replies, which have come.
    fn reader(&self) -> ReplyReader<'_> {
        let count = u16::try_from(self.operations.len()).expect("no more than in the packet");
        ReplyReader::new(&self.replies[HEADER_BYTES..], count)
    }
}

impl Gathering {
    /// Takes the replies of a worker. Returns whether all have come.
    pub(in crate::worker) fn take(&mut self, number: usize, parcel: Box<Parcel>) -> bool {
        self.parcels[number] = Some(parcel);
        self.missing -= 1;
        self.missing == 0
    }

    /// Writes all replies in the order of the operations.
    pub(in crate::worker) fn write(mut self, output: &mut Vec<u8>) {
        // Where there is no parcel, the plan has no operation either.
        let mut readers: Vec<_> =
            self.parcels.iter().map(|parcel| parcel.as_ref().map(|it| it.reader())).collect();
        let mut replies = ReplyWriter::begin(output, self.batch, 0, self.limits);
        for &worker in &self.plan.order {
            if worker == ANSWERED {
                let answer = self.plan.answers.pop_front();
                let (status, value) = answer.expect("there is one for each such operation");
                replies.status_with(output, status, &value);
                continue;
            }
            let reader = readers[usize::from(worker)].as_mut();
            let reply = reader.and_then(Iterator::next).and_then(Result::ok);
            let reply = reply.expect("a worker answers each operation of its parcel");
            replies.reply(output, &reply);
        }
        replies.finish(output);
    }
}

impl Worker {
    /// Sends the operations of a packet to their workers, as the plan says.
    pub(super) fn dispatch_operations(
        &mut self,
        (state, client): (&mut Batches, &mut Client),
        packet: Packet<'_>,
        plan: Plan,
    ) {
        let Packet { batch, limits, .. } = packet;
        let mut gathering = Gathering { batch, limits, plan, parcels: vec![], missing: 0 };
        let own = self.core.number;
        let payload: Arc<[u8]> = packet.payload.into();
        let mut parcels: Vec<Option<Box<Parcel>>> =
            (0..self.core.store.count()).map(|_| None).collect();
        for (number, &worker) in gathering.plan.order.iter().enumerate() {
            if worker != ANSWERED {
                let parcel = parcels[usize::from(worker)].get_or_insert_with(|| {
                    Box::new(Parcel {
                        client: state.ticket.unwrap_or_else(|| client.id()),
                        worker: own,
                        session: client.session,
                        limits,
                        payload: payload.clone(),
                        operations: Operations::default(),
                        replies: vec![],
                        has_written: false,
                    })
                });
                parcel.operations.push_from(packet.operations, number);
            }
        }
        let mut mine = parcels[own].take();
        for (worker, parcel) in parcels.iter_mut().enumerate() {
            if let Some(parcel) = parcel.take() {
                gathering.missing += 1;
                self.core.shared.mailboxes[worker].send(Message::ExecuteBatch { parcel });
            }
        }
        // The own shard is here: the packet has waited for it.
        if let Some(parcel) = &mut mine {
            self.execute_operations_of(parcel);
        }
        parcels[own] = mine;
        gathering.parcels = parcels;
        state.gathering = Some(Box::new(gathering));
        client.is_suspended = true;
    }

    /// Another worker has sent operations for the own shard.
    pub(in crate::worker) fn execute_batch_for(&mut self, mut parcel: Box<Parcel>) {
        if !self.core.store.has(self.core.number) {
            self.lending.wait_with_batch(parcel);
            return;
        }
        let records = self.core.records();
        self.core.begin_commands();
        self.execute_operations_of(&mut parcel);
        self.core.end_commands();
        parcel.has_written = self.core.records() != records;
        let number = self.core.number;
        // The client must not see the replies before the log knows the changes.
        self.core.flush_log();
        self.core.shared.mailboxes[parcel.worker].send(Message::ExecutedBatch { number, parcel });
    }

    fn execute_operations_of(&mut self, parcel: &mut Parcel) {
        let Parcel { session, limits, payload, operations, replies: output, .. } = parcel;
        let mut writer = ReplyWriter::begin(output, 0, 0, *limits);
        let all = Batch { operations, payload, range: 0..operations.len() };
        let mut replies = Replies { writer: &mut writer, output };
        self.core.execute_operations(*session, &all, &mut replies);
        writer.finish(output);
        self.follow_operations();
    }

    /// The replies of a parcel have come.
    pub(in crate::worker) fn batch_done(&mut self, number: usize, parcel: Box<Parcel>) {
        let id = parcel.client;
        // The client may have gone.
        let Some(connection) = self.core.network.connections.get_mut(&id) else {
            return self.datagram_done(id, number, parcel);
        };
        connection.holding.has_written |= parcel.has_written;
        let Peer::Batch { client, state } = &mut connection.peer else { return };
        let Some(gathering) = &mut state.gathering else { return };
        if gathering.take(number, parcel)
            && let Some(gathering) = state.gathering.take()
        {
            gathering.write(&mut connection.output);
            client.is_suspended = false;
            self.serve(id);
        }
    }
}
