// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of operations, executed on a store in this process.

use std::ops::Range;

use freeport_kv_commands::batch::{Batch, Conditions, Outcome, Replies, execute, with_words};
use freeport_kv_functions::Registry;
use freeport_kv_protocol::batch::{
    Operation, Operations, PacketLimits, PacketWriter, ReplyLimits, ReplyReader, ReplyWriter,
    Status,
};

use crate::harness::Local;

/// A reply: status, and value.
pub type Answer = (Status, Option<Vec<u8>>);

/// A packet as a server receives it.
pub struct Packet {
    operations: Operations,
    payload: Vec<u8>,
}

impl Packet {
    /// A packet of operations.
    pub fn of(operations: &[Operation<'_>]) -> Self {
        let mut packet = vec![];
        let limits = PacketLimits { bytes: 64 << 20, ..PacketLimits::default() };
        let mut writer = PacketWriter::begin(&mut packet, limits, 1, None);
        for operation in operations {
            writer.push(&mut packet, operation).expect("packets of tests are small");
        }
        let header = writer.finish(&mut packet);
        let payload = packet.split_off(header.bytes());
        let mut operations = Operations::default();
        operations.decode(&payload, header.count).expect("it was just written");
        Self { operations, payload }
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Executes some of the operations.
    pub fn run(
        &self,
        local: &mut Local,
        range: Range<usize>,
        stops_when_full: bool,
    ) -> (Outcome, Vec<Answer>) {
        self.run_within(local, range, stops_when_full, ReplyLimits::default())
    }

    /// Executes some of the operations, with replies that are limited.
    pub fn run_within(
        &self,
        local: &mut Local,
        range: Range<usize>,
        stops_when_full: bool,
        limits: ReplyLimits,
    ) -> (Outcome, Vec<Answer>) {
        let mut output = b"before".to_vec();
        let mut writer = ReplyWriter::begin(&mut output, 1, 0, limits);
        let conditions = Conditions {
            database: local.session.database,
            now_ms: local.now_ms.expect("tests set the time"),
            touches: local.session.touches,
            stops_when_full,
        };
        let batch = Batch { operations: &self.operations, payload: &self.payload, range };
        let mut replies = Replies { writer: &mut writer, output: &mut output };
        let parts = (&mut local.store, &mut local.effects);
        let outcome = execute(parts, &conditions, &batch, &mut replies);
        let header = writer.finish(&mut output);
        assert_eq!(usize::from(header.count), outcome.executed);
        let answers: Vec<Answer> = ReplyReader::new(&output[6 + header.bytes()..], header.count)
            .map(|reply| {
                let reply = reply.expect("it was just written");
                (reply.status, reply.value.map(<[u8]>::to_vec))
            })
            .collect();
        let failed = answers.iter().filter(|(status, _)| status.is_error()).count();
        assert_eq!(failed, outcome.failed);
        (outcome, answers)
    }

    /// Executes all operations, whether or not there is memory.
    pub fn run_all(&self, local: &mut Local) -> Vec<Answer> {
        let (outcome, answers) = self.run(local, 0..self.len(), false);
        assert_eq!(outcome.executed, self.len());
        answers
    }
}

/// Executes one operation.
pub fn one(local: &mut Local, operation: Operation<'_>) -> Answer {
    Packet::of(&[operation]).run_all(local).remove(0)
}

/// Words of the command that an operation stands for.
pub fn words(operation: &Operation<'_>) -> Vec<Vec<u8>> {
    let registry = Registry::built_in();
    with_words(&registry, operation, |words| words.iter().map(|word| word.to_vec()).collect())
}
