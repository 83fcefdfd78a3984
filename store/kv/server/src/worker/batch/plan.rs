// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Plans of packets that are not simply executed: by a client whose user may not do everything,
//! with a hello, with keys of several workers or of other nodes, or while somebody monitors.

use std::collections::VecDeque;

use freeport_kv_commands::batch::{Batch, Replies, with_words};
use freeport_kv_protocol::batch::{Opcode, Operation, ReplyWriter, Status};

use super::super::{Core, Worker};
use super::hello::{Answer, Greeting};
use super::{Batches, Packet};
use crate::client::Client;

/// In place of a worker: the operation is answered already.
pub(super) const ANSWERED: u16 = u16::MAX;

/// The workers that answer the operations of a packet.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The worker of each operation, or [`ANSWERED`].
    pub order: Vec<u16>,
    /// Replies to operations that are answered already.
    pub answers: VecDeque<Answer>,
}

impl Core {
    /// A packet of a client that may do everything needs a plan.
    #[inline]
    pub(super) fn needs_plan(&self, state: &Batches, packet: Packet<'_>) -> bool {
        let begins_with = |opcode| {
            let Packet { operations, payload, .. } = packet;
            !operations.is_empty() && operations.get(payload, 0).opcode == opcode
        };
        (state.may_greet() && begins_with(Opcode::Hello))
            || self.is_watchful && !self.monitors.is_empty()
            || self.store.count() > 1 && self.has_keys_of_others(packet)
    }

    fn has_keys_of_others(&self, packet: Packet<'_>) -> bool {
        let mut operations = packet.operations.iter(packet.payload);
        operations.any(|operation| self.worker_of_operation(&operation) != self.number)
    }

    fn worker_of_operation(&self, operation: &Operation<'_>) -> usize {
        match operation.opcode {
            Opcode::Hello | Opcode::Functions => self.number,
            _ => self.store.shard_of(operation.key),
        }
    }

    /// Checks that a client may send an operation, and shows it to those that monitor.
    fn answer_operation(
        &mut self,
        client: &mut Client,
        operation: &Operation<'_>,
    ) -> Option<Answer> {
        const LATE: &str = "ERR hello has to be the first operation of a connection";
        if operation.opcode == Opcode::Hello {
            return Some((Status::Failed, LATE.into()));
        }
        if !client.is_authenticated {
            let text = "NOAUTH a hello with user and password has to come first";
            return Some((Status::Denied, text.into()));
        }
        let functions = self.store.functions().clone();
        with_words(&functions, operation, |words| {
            let spec = self.table.get(words[0]).map(|command| command.spec)?;
            if client.is_checked
                && let Err(error) = self.check_rights(client, &spec, words)
            {
                self.statistics.rejected(spec.number, error.text());
                return Some((Status::Denied, error.text().into()));
            }
            if let Some(answer) = self.answer_elsewhere(operation) {
                return Some(answer);
            }
            if !self.monitors.is_empty() {
                self.show(client, words);
            }
            None
        })
    }
}

impl Worker {
    /// Executes a packet by its plan. Returns false if the connection moves to another worker,
    /// which gets the packet again.
    #[cold]
    pub(super) fn execute_planned(
        &mut self,
        (state, client): (&mut Batches, &mut Client),
        packet: Packet<'_>,
        output: &mut Vec<u8>,
    ) -> bool {
        let mut plan = Plan::default();
        for (number, operation) in packet.operations.iter(packet.payload).enumerate() {
            let is_greeting = number == 0 && state.may_greet();
            let answer = match operation.opcode {
                Opcode::Hello if is_greeting => match self.core.greet(client, &operation) {
                    Greeting::Answer(answer) => Some(answer),
                    Greeting::Moves(worker) => {
                        state.moves_to = Some(worker);
                        client.is_suspended = true;
                        return false;
                    }
                },
                _ => self.core.answer_operation(client, &operation),
            };
            plan.order.push(match answer {
                Some(_) => ANSWERED,
                None => self.core.worker_of_operation(&operation) as u16,
            });
            plan.answers.extend(answer);
        }
        state.has_begun = true;
        let own = self.core.number as u16;
        if plan.order.iter().any(|worker| ![own, ANSWERED].contains(worker)) {
            self.dispatch_operations((state, client), packet, plan);
        } else {
            self.execute_own(client, plan, packet, output);
        }
        true
    }

    /// Executes a packet that needs no other worker.
    fn execute_own(
        &mut self,
        client: &Client,
        mut plan: Plan,
        packet: Packet<'_>,
        output: &mut Vec<u8>,
    ) {
        let Packet { batch, operations, payload, limits } = packet;
        let mut writer = ReplyWriter::begin(output, batch, 0, limits);
        let mut at = 0;
        while at < plan.order.len() {
            if plan.order[at] == ANSWERED
                && let Some((status, value)) = plan.answers.pop_front()
            {
                writer.status_with(output, status, &value);
                at += 1;
                continue;
            }
            let count = plan.order[at..].iter().take_while(|worker| **worker != ANSWERED).count();
            let run = Batch { operations, payload, range: at..at + count };
            let mut replies = Replies { writer: &mut writer, output };
            self.core.execute_operations(client.session, &run, &mut replies);
            at += count;
        }
        writer.finish(output);
        self.follow_operations();
    }
}
