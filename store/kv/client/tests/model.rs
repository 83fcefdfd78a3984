// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys and values of the server of these tests, which executes packets by the words of the
//! protocol's page.

use freeport_kv_protocol::batch::{
    FunctionEntry, FunctionKind, Header, Hello, HelloReply, Opcode, Operation, Operations,
    ReplyLimits, ReplyWriter, Status, write_error, write_function,
};
use freeport_kv_protocol::slots::worker_of;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Largest payload that the server takes.
pub const PAYLOAD_LIMIT: u32 = 4 << 20;
/// Token over UDP.
pub const TOKEN: u64 = 0x1234_5678_9abc_def0;

/// A server's keys, shared by its connections.
#[derive(Clone, Debug, Default)]
pub struct Model {
    pub workers: u16,
    values: Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>,
    /// Operations on keys of another worker than that of their connection.
    pub strangers: Arc<AtomicUsize>,
    /// Packets that were executed.
    pub packets: Arc<AtomicUsize>,
}

impl Model {
    pub fn new(workers: u16) -> Self {
        Self { workers, ..Self::default() }
    }

    /// Executes a request, and returns its reply. `worker` is that of the connection.
    pub fn execute(&self, header: &Header, payload: &[u8], worker: &mut u16) -> Vec<u8> {
        self.packets.fetch_add(1, Ordering::Relaxed);
        let mut reply = Vec::new();
        let mut operations = Operations::default();
        if let Err(malformed) = operations.decode(payload, header.count) {
            write_error(&mut reply, header.batch, &malformed.to_string());
            return reply;
        }
        let limits = ReplyLimits::default();
        let mut writer = ReplyWriter::begin(&mut reply, header.batch, 0, limits);
        for operation in operations.iter(payload) {
            let (status, value) = self.operation(&operation, worker);
            match value.filter(|_| !operation.no_return || status.is_error()) {
                Some(value) => writer.status_with(&mut reply, status, &value),
                None => writer.status(&mut reply, status),
            }
        }
        writer.finish(&mut reply);
        reply
    }

    /// Executes one operation of a connection that a worker serves.
    pub fn operation(
        &self,
        operation: &Operation<'_>,
        worker: &mut u16,
    ) -> (Status, Option<Vec<u8>>) {
        let Operation { opcode, function, element, key, value, .. } = *operation;
        match opcode {
            Opcode::Hello => return self.hello(operation, worker),
            Opcode::Functions => return (Status::Done, Some(functions())),
            _ => {}
        }
        if worker_of(key, self.workers.into()) != usize::from(*worker) {
            self.strangers.fetch_add(1, Ordering::Relaxed);
        }
        let mut values = self.values.lock().expect("no thread panics");
        if opcode == Opcode::Put {
            values.insert(key.to_vec(), value.to_vec());
            return (Status::Done, None);
        }
        if opcode == Opcode::Delete {
            let found = values.remove(key).is_some();
            return (if found { Status::Done } else { Status::NotFound }, None);
        }
        let Some(kept) = values.get_mut(key) else { return (Status::NotFound, None) };
        let original = kept.clone();
        let add = |to: &mut u8, amount: &u8| *to = to.wrapping_add(*amount);
        let result = match (opcode, function, element) {
            (Opcode::Get, ..) => original,
            // The only update is `add` of `u8`; of `u32` for one element.
            (Opcode::Update, 3, 2) => {
                let number = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
                let (Some(old), Some(amount)) = (number(kept), number(value)) else {
                    return (Status::Refused, Some(b"wrong size".to_vec()));
                };
                *kept = old.wrapping_add(amount).to_le_bytes().to_vec();
                original
            }
            (Opcode::UpdateSame, 3, 0) => {
                kept.iter_mut().for_each(|to| add(to, &value[0]));
                original
            }
            (Opcode::UpdateVector, 3, 0) => {
                kept.iter_mut().zip(value).for_each(|(to, amount)| add(to, amount));
                original
            }
            (Opcode::Reduce, 32, 0) => {
                let sigma = u64::from_le_bytes(value.try_into().expect("sigma has 8 bytes"));
                let sum = kept.iter().fold(sigma, |sum, one| sum + u64::from(*one));
                sum.to_le_bytes().to_vec()
            }
            (Opcode::Filter, 68, 0) => kept.iter().copied().filter(|one| *one > value[0]).collect(),
            _ => return (Status::Refused, Some(b"no such function".to_vec())),
        };
        (Status::Done, Some(result))
    }

    fn hello(&self, operation: &Operation<'_>, worker: &mut u16) -> (Status, Option<Vec<u8>>) {
        let Some(hello) = Hello::decode(operation) else {
            return (Status::Failed, Some(b"hello is too short".to_vec()));
        };
        if !hello.user.is_empty() && (hello.user, hello.password) != (b"ann", b"secret") {
            return (Status::Denied, Some(b"wrong user or password".to_vec()));
        }
        *worker = hello.worker.unwrap_or(self.workers - 1);
        let (payload_limit, token) = (PAYLOAD_LIMIT, TOKEN);
        let reply = HelloReply { worker: *worker, workers: self.workers, payload_limit, token };
        (Status::Done, Some(reply.value().to_vec()))
    }
}

fn functions() -> Vec<u8> {
    let mut list = Vec::new();
    let add = FunctionEntry {
        id: 3,
        kind: FunctionKind::Update,
        elements: 0x3ff,
        name: "add",
        operands: 1,
    };
    write_function(&mut list, &add);
    let sum = FunctionEntry { id: 32, kind: FunctionKind::Reduce, name: "sum", ..add };
    write_function(&mut list, &sum);
    let greater = FunctionEntry { id: 68, kind: FunctionKind::Filter, name: "greater", ..add };
    write_function(&mut list, &greater);
    list
}
