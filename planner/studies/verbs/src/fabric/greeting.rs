// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The handshake of two places, in steps that never wait: each begins when the socket is readable.
//!
//! | | the place that connects | the place that listens |
//! |---|---|---|
//! | 1 | its [hello](super::hello) | |
//! | 2 | | its hello |
//! | 3 | the offer of an endpoint | |
//! | 4 | | the answer; the keys of its memory and of its ring |
//! | 5 | the key of its ring | |
//!
//! The other side is not believed. A wrong field ends the connection, and nothing else.

use super::hello::{HELLO_BYTES, Hello};
use super::refusal::Refusal;
use super::wire::{RING_BYTES, Wire};
use crate::place::Place;
use freeport_fabric::channel::Prepared;
use freeport_fabric::endpoint::Target;
use freeport_fabric::shm::{Offered, Options, ShmEndpoint};
use freeport_fabric::{Endpoint, Key};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Time for one message of the handshake that the socket has reported already. Only a peer that
/// sends something else needs any of it.
const PATIENCE: Duration = Duration::from_millis(10);
/// Capacity in bytes of the ring for data of operations, which places do not use.
const DATA_BYTES: usize = 1024;

type Memory = <ShmEndpoint as Endpoint>::Target;

/// This side of a handshake.
pub struct Greeting {
    stream: UnixStream,
    mine: Hello,
    step: Step,
}

/// The next message of the other side.
enum Step {
    /// Its hello, for a place that has connected to that one.
    HelloOf(Place),
    /// Its hello, for a place that listens.
    Hello,
    /// Its offer.
    Offer(Hello),
    /// Its answer.
    Answer(Hello, Box<Offered>),
    /// The key of its memory.
    MemoryKey(Hello, ShmEndpoint, Prepared<ShmEndpoint>),
    /// The key of its ring, and the memory if it has sent its key.
    RingKey(Hello, ShmEndpoint, Prepared<ShmEndpoint>, Option<Memory>),
}

/// An open connection.
pub struct Met {
    /// The other place, as it says.
    pub hello: Hello,
    /// The endpoint.
    pub endpoint: ShmEndpoint,
    /// Messages in both directions.
    pub wire: Wire<ShmEndpoint>,
    /// The other place's memory, for the place that has connected.
    pub memory: Option<Memory>,
}

/// The outcome of a step.
pub enum Next {
    /// The handshake continues when the socket is readable.
    Wait(Greeting),
    /// The connection is open.
    Open(Box<Met>),
}

impl Greeting {
    /// Begins as the place that connects to another one.
    ///
    /// # Errors
    /// The other side has hung up, or the system refuses.
    pub fn connect(stream: UnixStream, mine: Hello, to: Place) -> Result<Self, Refusal> {
        limit(&stream)?;
        (&stream).write_all(&mine.to_bytes())?;
        Ok(Self { stream, mine, step: Step::HelloOf(to) })
    }

    /// Begins as the place that listens.
    ///
    /// # Errors
    /// The system refuses.
    pub fn accept(stream: UnixStream, mine: Hello) -> Result<Self, Refusal> {
        limit(&stream)?;
        Ok(Self { stream, mine, step: Step::Hello })
    }

    /// Returns the socket, to wait until it is readable.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Takes the next step, when the socket is readable. `memory_key` exports this side's memory.
    ///
    /// # Errors
    /// The other side has hung up, or has sent something else; or the system refuses.
    pub fn step(
        self,
        memory_key: impl FnOnce(&ShmEndpoint) -> Result<Key, freeport_fabric::Error>,
    ) -> Result<Next, Refusal> {
        let Self { stream, mine, step } = self;
        let step = match step {
            Step::HelloOf(place) => {
                let hello = receive_hello(&stream)?;
                if hello.place != place {
                    return Err(Refusal::Other { expected: place, found: hello.place });
                }
                let offered = ShmEndpoint::offer(stream.try_clone()?, &options())?;
                Step::Answer(hello, Box::new(offered))
            }
            Step::Hello => {
                let hello = receive_hello(&stream)?;
                (&stream).write_all(&mine.to_bytes())?;
                Step::Offer(hello)
            }
            Step::Offer(hello) => {
                let endpoint = ShmEndpoint::accept(stream.try_clone()?, &options())?;
                memory_key(&endpoint)?.send(&stream)?;
                let (ring, key) = Prepared::new(&endpoint, RING_BYTES)?;
                key.send(&stream)?;
                Step::RingKey(hello, endpoint, ring, None)
            }
            Step::Answer(hello, offered) => {
                let endpoint = offered.finish()?;
                let (ring, key) = Prepared::new(&endpoint, RING_BYTES)?;
                key.send(&stream)?;
                Step::MemoryKey(hello, endpoint, ring)
            }
            Step::MemoryKey(hello, endpoint, ring) => {
                let memory = endpoint.import(Key::receive(&stream)?)?;
                let (expected, found) = (hello.memory_bytes, memory.bytes() as u64);
                if region_bytes(expected) != found {
                    return Err(Refusal::MemoryBytes { expected, found });
                }
                Step::RingKey(hello, endpoint, ring, Some(memory))
            }
            Step::RingKey(hello, endpoint, ring, memory) => {
                let wire = open(&endpoint, ring, Key::receive(&stream)?)?;
                return Ok(Next::Open(Box::new(Met { hello, endpoint, wire, memory })));
            }
        };
        Ok(Next::Wait(Self { stream, mine, step }))
    }
}

/// Returns the size of the region for memory of this number of bytes: whole words, and one at
/// least.
pub fn region_bytes(memory_bytes: u64) -> u64 {
    memory_bytes.max(1).checked_next_multiple_of(8).unwrap_or(u64::MAX)
}

fn options() -> Options {
    let options = Options::with_capacity(DATA_BYTES);
    Options { patience: PATIENCE, largest: DATA_BYTES, ..options }
}

fn limit(stream: &UnixStream) -> Result<(), Refusal> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(())
}

fn receive_hello(mut stream: &UnixStream) -> Result<Hello, Refusal> {
    // One byte more, to detect a message that is too long.
    let mut bytes = [0; HELLO_BYTES + 1];
    match stream.read(&mut bytes)? {
        0 => Err(Refusal::HungUp),
        length => Hello::parse(&bytes[..length]),
    }
}

fn open(
    endpoint: &ShmEndpoint,
    ring: Prepared<ShmEndpoint>,
    key: Key,
) -> Result<Wire<ShmEndpoint>, Refusal> {
    let (channel, ends) = ring.open(endpoint, key, 0)?;
    if ends.0.capacity() != RING_BYTES {
        return Err(Refusal::Message("a ring of another size"));
    }
    Ok(Wire::new(endpoint.clone(), channel, ends))
}
