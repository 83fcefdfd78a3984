// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Freeport's connections over shared memory.

use crate::between::channel::{Channel, Open};
use anyhow::Result;
use freeport_fabric::shm::{Connection, Options};
use freeport_fabric::wait::Waiting;
use std::os::unix::net::UnixStream;

/// Creates both ends, which wait in this way.
pub fn connections(waiting: Waiting) -> Result<[Open<Connection>; 2]> {
    let (near, far) = UnixStream::pair()?;
    let options = Options { waiting, ..Options::default() };
    Ok([
        Box::new(move || Ok(Connection::connect(near, &options)?)),
        Box::new(move || Ok(Connection::accept(far, &options)?)),
    ])
}

impl Channel for Connection {
    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.write_all(bytes)?)
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        match self.read(into)? {
            0 => anyhow::bail!("the peer has closed its end"),
            count => Ok(count),
        }
    }
}
