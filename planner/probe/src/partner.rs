// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The process on the other side, over shared memory: the same program, started again with a socket
//! as its standard input.

use crate::error::Error;
use crate::host::pin_to;
use crate::point::BATCH_MAX;
use crate::requester::Requester;
use crate::responder::answer;
use freeport_fabric::shm::{Options, ShmEndpoint};
use freeport_fabric::{Endpoint, Key, socket};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest time until the second process has started and connected. A loaded machine may take
/// seconds to start it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that answers, with an endpoint to it. It is killed when this is dropped.
pub struct Partner {
    /// This side of the connection.
    pub requester: Requester<ShmEndpoint>,
    child: Child,
}

impl Partner {
    /// Starts the process by a command that calls [`respond`]. It has `range` bytes of memory; the
    /// longest payload has `payload` bytes.
    ///
    /// # Errors
    /// The process does not start, or ends; or there is not enough memory.
    pub fn start(
        mut command: Command,
        core: usize,
        range: u64,
        payload: u64,
    ) -> Result<Self, Error> {
        let (stream, theirs) = UnixStream::pair().map_err(Error::Socket)?;
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null());
        let mut child = command.spawn().map_err(Error::Start)?;
        // The command has a copy of the socket, whose end would not be noticed.
        drop(command);
        match connect(stream, core, range, payload) {
            Ok(requester) => Ok(Self { requester, child }),
            Err(error) => {
                // It may have ended by itself.
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(
    stream: UnixStream,
    core: usize,
    range: u64,
    payload: u64,
) -> Result<Requester<ShmEndpoint>, Error> {
    let (mut letters, theirs) = UnixStream::pair().map_err(Error::Socket)?;
    socket::send(&stream, b"l", &[theirs.as_raw_fd()]).map_err(Error::Socket)?;
    drop(theirs);
    let endpoint = ShmEndpoint::connect(stream, &options())?;
    for number in [core as u64, range] {
        letters.write_all(&number.to_le_bytes()).map_err(Error::Socket)?;
    }
    let there = endpoint.import(Key::receive(&letters)?)?;
    let here = endpoint.register(payload as usize)?;
    let inbox = endpoint.register(payload as usize)?;
    endpoint.export(&inbox)?.send(&letters)?;
    Ok(Requester::new(endpoint, here, there))
}

/// Answers the process whose socket is this one's standard input, until it ends.
///
/// # Errors
/// Standard input is no such socket, or the other process breaks the protocol.
pub fn respond() -> Result<(), Error> {
    let stream = std::io::stdin().as_fd().try_clone_to_owned().map_err(Error::Socket)?;
    let stream = UnixStream::from(stream);
    let message = socket::receive(&stream, &mut [0]).map_err(Error::Socket)?;
    let letters = message.descriptors.into_iter().next().ok_or(Error::Gone)?;
    let mut letters = UnixStream::from(letters);
    let endpoint = ShmEndpoint::accept(stream, &options())?;
    let mut number = || {
        let mut bytes = [0; 8];
        letters.read_exact(&mut bytes).map_err(Error::Socket)?;
        Ok::<u64, Error>(u64::from_le_bytes(bytes))
    };
    pin_to(number()? as usize);
    let region = endpoint.register(number()? as usize)?;
    endpoint.export(&region)?.send(&letters)?;
    let target = endpoint.import(Key::receive(&letters)?)?;
    answer(&endpoint, &region, &target)
}

/// Options with room for the data of all messages of a batch, and time for the start of a process.
fn options() -> Options {
    Options { patience: PATIENCE, ..Options::with_capacity(64 * BATCH_MAX as usize) }
}
