// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The handshake of two processes: two messages over a Unix socket, which carries nothing else.
//!
//! 1. The first side creates a segment and a doorbell, and sends both with the sizes of the rings.
//! 2. The second side checks everything, maps the segment, and answers with its own doorbell.
//!
//! Each message states whether its sender can use `membarrier`; if one of them cannot, both use
//! fences. Every field from a peer is checked before it is used.
//!
//! | bytes | field |
//! |---|---|
//! | 0-7 | the mark `FREEPORT` |
//! | 8-11 | version |
//! | 12-15 | purpose: 1 stream of bytes, 2 messages, 3 endpoint, 4 shared queue |
//! | 16-23 | flags: bit 0, its sender can use `membarrier`; the others are zero |
//! | 24-31 | bytes of each ring at the start |
//! | 32-39 | bytes up to which each may grow |
//! | 40-47 | bytes of the segment |

use super::doorbell::Doorbell;
use super::layout::{Layout, Side};
use super::peer::Peer;
use super::segment::Segment;
use super::{Options, barrier};
use crate::error::{Error, HelloError};
use crate::socket;
use freeport_ring::layout::CAPACITY_MIN;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

const MARK: [u8; 8] = *b"FREEPORT";
const VERSION: u32 = 1;
const HELLO_BYTES: usize = 48;
const CAN_MEMBARRIER: u64 = 1;

/// Purpose of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Purpose {
    /// A stream of bytes.
    Bytes = 1,
    /// Messages.
    Messages = 2,
    /// Messages of an endpoint.
    Endpoint = 3,
    /// Messages of many connections.
    Queue = 4,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "a stream of bytes",
            Self::Messages => "messages",
            Self::Endpoint => "an endpoint",
            Self::Queue => "a shared queue",
        }
    }
}

/// Result of the handshake.
#[derive(Debug)]
pub struct Agreed {
    /// This process's side.
    pub side: Side,
    /// The segment.
    pub segment: Segment,
    /// Positions of the parts in the segment.
    pub layout: Layout,
    /// Whether both sides use fences.
    pub fenced: bool,
    /// The other side.
    pub peer: Peer,
}

/// Contents of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Hello {
    version: u32,
    purpose: u32,
    flags: u64,
    capacity: u64,
    capacity_max: u64,
    segment_bytes: u64,
}

/// A connection whose first side has sent its message.
#[derive(Debug)]
pub struct Offer {
    stream: UnixStream,
    purpose: Purpose,
    hello: Hello,
    segment: Segment,
    layout: Layout,
    doorbell: Doorbell,
    options: Options,
}

impl Offer {
    /// Starts the handshake, as the first side.
    ///
    /// # Errors
    /// The sizes are invalid, the system refuses an operation, or the peer has hung up.
    pub fn send(stream: UnixStream, purpose: Purpose, options: &Options) -> Result<Self, Error> {
        let (capacity, capacity_max) = (options.capacity as u64, options.capacity_max as u64);
        let most = options.largest;
        let layout = Layout::new(capacity, capacity_max).filter(|_| options.capacity_max <= most);
        let layout =
            layout.ok_or(Error::Capacity { capacity, capacity_max, least: CAPACITY_MIN, most })?;
        prepare(&stream, options)?;
        let (segment, descriptor) = Segment::create(layout.segment_bytes())?;
        let doorbell = Doorbell::new()?;
        let hello = Hello {
            version: VERSION,
            purpose: purpose as u32,
            flags: flags(options),
            capacity,
            capacity_max,
            segment_bytes: segment.bytes() as u64,
        };
        let descriptors = [descriptor.as_raw_fd(), doorbell.as_fd().as_raw_fd()];
        socket::send(&stream, &hello.to_bytes(), &descriptors).map_err(said)?;
        Ok(Self { stream, purpose, hello, segment, layout, doorbell, options: *options })
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// There is no answer, or it does not match this offer.
    pub fn finish(self) -> Result<Agreed, Error> {
        let Self { stream, purpose, hello, segment, layout, doorbell, options } = self;
        let (answer, message) = receive(&stream, purpose, &options)?;
        let sizes = |hello: &Hello| (hello.capacity, hello.capacity_max, hello.segment_bytes);
        if sizes(&answer) != sizes(&hello) {
            let Hello { capacity, capacity_max, .. } = answer;
            let most = options.capacity_max;
            return Err(HelloError::Capacity { capacity, capacity_max, most }.into());
        }
        let [theirs] = take_descriptors(message.descriptors)?;
        let theirs = Doorbell::import(theirs)?;
        let peer = Peer::new(stream, message.pid, message.process, doorbell, theirs)?;
        let fenced = hello.flags & answer.flags & CAN_MEMBARRIER == 0;
        Ok(Agreed { side: Side::First, segment, layout, fenced, peer })
    }
}

/// Waits for an offer and accepts it, as the second side.
///
/// # Errors
/// There is no offer, or a field of it is invalid.
pub fn accept(stream: UnixStream, purpose: Purpose, options: &Options) -> Result<Agreed, Error> {
    prepare(&stream, options)?;
    let (hello, message) = receive(&stream, purpose, options)?;
    let Hello { capacity, capacity_max, .. } = hello;
    let most = options.largest;
    let layout = Layout::new(capacity, capacity_max).filter(|_| capacity_max <= most as u64);
    let layout = layout.ok_or(HelloError::Capacity { capacity, capacity_max, most })?;
    let (expected, found) = (layout.segment_bytes() as u64, hello.segment_bytes);
    if expected != found {
        return Err(HelloError::SegmentBytes { expected, found }.into());
    }
    let [segment, theirs] = take_descriptors(message.descriptors)?;
    let segment = Segment::import(segment, layout.segment_bytes())?;
    let theirs = Doorbell::import(theirs)?;
    let doorbell = Doorbell::new()?;
    let answer = Hello { flags: flags(options), ..hello };
    socket::send(&stream, &answer.to_bytes(), &[doorbell.as_fd().as_raw_fd()]).map_err(said)?;
    let peer = Peer::new(stream, message.pid, message.process, doorbell, theirs)?;
    let fenced = hello.flags & answer.flags & CAN_MEMBARRIER == 0;
    Ok(Agreed { side: Side::Second, segment, layout, fenced, peer })
}

fn prepare(stream: &UnixStream, options: &Options) -> Result<(), Error> {
    let patience = Some(options.patience);
    stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_read_timeout(patience))
        .and_then(|()| stream.set_write_timeout(patience))
        .map_err(|source| Error::System { what: "the time-outs of the socket", source })?;
    socket::ask_for_sender(stream)
}

fn flags(options: &Options) -> u64 {
    if options.membarrier && barrier::has_membarrier() { CAN_MEMBARRIER } else { 0 }
}

/// Receives the peer's message and checks the fields that do not depend on the sizes.
fn receive(
    stream: &UnixStream,
    purpose: Purpose,
    options: &Options,
) -> Result<(Hello, socket::Message), Error> {
    // One byte more, to detect a message that is too long.
    let mut bytes = [0; HELLO_BYTES + 1];
    let message = socket::receive(stream, &mut bytes).map_err(|source| match source.kind() {
        io::ErrorKind::WouldBlock => HelloError::Silent(options.patience).into(),
        _ => said(source),
    })?;
    if message.length == 0 {
        return Err(HelloError::HungUp.into());
    }
    if message.length != HELLO_BYTES {
        let (expected, found) = (HELLO_BYTES, message.length);
        return Err(HelloError::Length { expected, found }.into());
    }
    let hello = Hello::parse(&bytes, purpose)?;
    Ok((hello, message))
}

fn said(source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => HelloError::HungUp.into(),
        _ => Error::System { what: "the hello over the socket", source },
    }
}

fn take_descriptors<T, const N: usize>(found: Vec<T>) -> Result<[T; N], Error> {
    found
        .try_into()
        .map_err(|found: Vec<T>| HelloError::Descriptors { expected: N, found: found.len() }.into())
}

impl Hello {
    fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(&MARK);
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.purpose.to_le_bytes());
        let words = [self.flags, self.capacity, self.capacity_max, self.segment_bytes];
        for (place, word) in bytes[16..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8], purpose: Purpose) -> Result<Self, HelloError> {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.iter_mut().zip(bytes.iter().skip(at)).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(word)
        };
        if word(0) != u64::from_le_bytes(MARK) {
            return Err(HelloError::Mark);
        }
        let hello = Self {
            version: word(8) as u32,
            purpose: word(12) as u32,
            flags: word(16),
            capacity: word(24),
            capacity_max: word(32),
            segment_bytes: word(40),
        };
        if hello.version != VERSION {
            return Err(HelloError::Version { ours: VERSION, theirs: hello.version });
        }
        if hello.purpose != purpose as u32 {
            let known = [Purpose::Bytes, Purpose::Messages, Purpose::Endpoint, Purpose::Queue];
            let theirs = known.iter().find(|known| **known as u32 == hello.purpose);
            let theirs = match theirs {
                Some(known) => known.name().to_owned(),
                None => format!("something unknown ({})", hello.purpose),
            };
            return Err(HelloError::Purpose { ours: purpose.name(), theirs });
        }
        Ok(hello)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello = Hello {
        version: VERSION,
        purpose: Purpose::Messages as u32,
        flags: CAN_MEMBARRIER,
        capacity: 4096,
        capacity_max: 1 << 20,
        segment_bytes: 0x0102_0304_0506_0708,
    };

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        assert_eq!(Hello::parse(&HELLO.to_bytes(), Purpose::Messages), Ok(HELLO));
    }

    #[test]
    fn what_is_no_hello_is_refused_by_name() {
        let refused = |hello: Hello| Hello::parse(&hello.to_bytes(), Purpose::Messages);
        let mut bytes = HELLO.to_bytes();
        bytes[3] ^= 1;
        assert_eq!(Hello::parse(&bytes, Purpose::Messages), Err(HelloError::Mark));
        let version = HelloError::Version { ours: VERSION, theirs: 7 };
        assert_eq!(refused(Hello { version: 7, ..HELLO }), Err(version));
        let purpose = refused(Hello { purpose: 1, ..HELLO }).unwrap_err();
        assert_eq!(purpose.to_string(), "it requests a stream of bytes, but this side messages");
        let purpose = refused(Hello { purpose: 9, ..HELLO }).unwrap_err();
        assert_eq!(
            purpose.to_string(),
            "it requests something unknown (9), but this side messages"
        );
    }
}
