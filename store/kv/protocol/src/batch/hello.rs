// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The first operation of a connection.

use super::Operation;

/// Value of `worker` for any worker.
const ANY_WORKER: u16 = u16::MAX;

/// Hello of a client.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Hello<'a> {
    /// Name of the user; empty for `default`.
    pub user: &'a [u8],
    /// Password; empty for a user who needs none.
    pub password: &'a [u8],
    /// Number of the database.
    pub database: u16,
    /// Worker of the server that shall serve the connection; `None` for any.
    pub worker: Option<u16>,
}

/// Reply to a hello.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HelloReply {
    /// Worker that serves the connection.
    pub worker: u16,
    /// Number of workers.
    pub workers: u16,
    /// Largest payload of a request, in bytes.
    pub payload_limit: u32,
    /// Token of the client over UDP; otherwise 0.
    pub token: u64,
}

impl<'a> Hello<'a> {
    /// Reads the key and the value of an operation [`Hello`](super::Opcode::Hello). `None` if the
    /// value is too short.
    pub fn decode(operation: &Operation<'a>) -> Option<Self> {
        let (database, rest) = operation.value.split_first_chunk()?;
        let (worker, password) = rest.split_first_chunk()?;
        let worker = u16::from_le_bytes(*worker);
        Some(Self {
            user: operation.key,
            password,
            database: u16::from_le_bytes(*database),
            worker: (worker != ANY_WORKER).then_some(worker),
        })
    }

    /// The value of the operation; its key is the user.
    pub fn value(&self) -> Vec<u8> {
        let worker = self.worker.unwrap_or(ANY_WORKER).to_le_bytes();
        [&self.database.to_le_bytes(), &worker, self.password].concat()
    }
}

impl std::fmt::Debug for Hello<'_> {
    /// Does not show the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hello")
            .field("user", &String::from_utf8_lossy(self.user))
            .field("database", &self.database)
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

impl HelloReply {
    /// Bytes of the reply's value.
    pub const BYTES: usize = 16;

    /// Reads the value of a reply. `None` if it has another length, or names a worker that there
    /// is not.
    pub fn decode(value: &[u8]) -> Option<Self> {
        let [w0, w1, n0, n1, l0, l1, l2, l3, token @ ..] =
            *<&[u8; Self::BYTES]>::try_from(value).ok()?;
        let (worker, workers) = (u16::from_le_bytes([w0, w1]), u16::from_le_bytes([n0, n1]));
        (worker < workers).then_some(Self {
            worker,
            workers,
            payload_limit: u32::from_le_bytes([l0, l1, l2, l3]),
            token: u64::from_le_bytes(token),
        })
    }

    /// The value of the reply.
    pub fn value(&self) -> [u8; Self::BYTES] {
        let mut value = [0; Self::BYTES];
        value[..2].copy_from_slice(&self.worker.to_le_bytes());
        value[2..4].copy_from_slice(&self.workers.to_le_bytes());
        value[4..8].copy_from_slice(&self.payload_limit.to_le_bytes());
        value[8..].copy_from_slice(&self.token.to_le_bytes());
        value
    }
}
