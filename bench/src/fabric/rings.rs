// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Freeport's rings in memory that two processes share, and a ring that shows what there is to
//! reach: no headers, no validation, one word of progress each way.

use super::channel::Channel;
use super::shared::Memory;
use super::wait::Wait;
use anyhow::{Context, Result};
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::layout::NOTES_BYTES;
use freeport_ring::{Mapped, Receiver, Sender};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of all rings.
pub const RING_BYTES: usize = 64 << 10;
/// What is beside a ring in its mapping; more than both notes, so that the ring begins a page.
const BESIDE: usize = 4096;

/// An end of two rings of Freeport, which looks for bytes again and again.
pub struct Ring {
    sender: ByteSender<Mapped, Mapped>,
    receiver: ByteReceiver<Mapped, Mapped>,
    wait: Wait,
    _memory: [Rc<Memory>; 2],
}

/// Both ends.
pub fn rings(wait: Wait) -> Result<[Ring; 2]> {
    let memory =
        [Rc::new(Memory::new(BESIDE + RING_BYTES)?), Rc::new(Memory::new(BESIDE + RING_BYTES)?)];
    let [there, back] = [direction(&memory[0])?, direction(&memory[1])?];
    let ((near_sender, far_receiver), (far_sender, near_receiver)) = (there, back);
    let end = |sender, receiver| Ring {
        sender: ByteSender::new(sender),
        receiver: ByteReceiver::new(receiver),
        wait,
        _memory: memory.clone(),
    };
    Ok([end(near_sender, near_receiver), end(far_sender, far_receiver)])
}

type Ends = (Sender<Mapped, Mapped>, Receiver<Mapped, Mapped>);

fn direction(memory: &Memory) -> Result<Ends> {
    // SAFETY: the three parts lie in the mapping one behind the other, zero at first, and the ends
    // keep it there.
    let ends = unsafe {
        let to_sender = Mapped::new(memory.start());
        let (to_receiver, ring) = (to_sender.behind(NOTES_BYTES), to_sender.behind(BESIDE));
        let start = Default::default();
        let sender = Sender::new(ring, to_receiver, to_sender, RING_BYTES, start);
        sender.zip(Receiver::new(ring, to_sender, to_receiver, RING_BYTES, Default::default()))
    };
    ends.context("no ring has that capacity")
}

impl Channel for Ring {
    #[inline]
    fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            bytes = &bytes[self.sender.write(bytes)?.outcome..];
            if bytes.is_empty() {
                return Ok(());
            }
            self.wait.a_moment();
        }
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            match self.receiver.read(into)?.outcome {
                Read::Bytes(count) => return Ok(count),
                Read::Nothing => self.wait.a_moment(),
                Read::End | Read::Moved { .. } => anyhow::bail!("nobody ends or moves the stream"),
            }
        }
    }
}

/// An end of two bare rings.
pub struct BareRing {
    to: BareSender,
    from: BareReceiver,
    wait: Wait,
}

/// The words of progress, in pairs of cache lines of their own.
const WRITTEN: usize = 0;
const READ: usize = 128;

struct BareSender {
    memory: Rc<Memory>,
    written: u64,
    /// What the other side has read, as last seen.
    read: u64,
}

struct BareReceiver {
    memory: Rc<Memory>,
    read: u64,
}

/// Both ends.
pub fn bare_rings(wait: Wait) -> Result<[BareRing; 2]> {
    let there = Rc::new(Memory::new(BESIDE + RING_BYTES)?);
    let back = Rc::new(Memory::new(BESIDE + RING_BYTES)?);
    let end = |to: &Rc<Memory>, from: &Rc<Memory>| BareRing {
        to: BareSender { memory: to.clone(), written: 0, read: 0 },
        from: BareReceiver { memory: from.clone(), read: 0 },
        wait,
    };
    Ok([end(&there, &back), end(&back, &there)])
}

impl Channel for BareRing {
    #[inline]
    fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            bytes = &bytes[self.to.write(bytes)..];
            if bytes.is_empty() {
                return Ok(());
            }
            self.wait.a_moment();
        }
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        loop {
            match self.from.read(into) {
                0 => self.wait.a_moment(),
                count => return Ok(count),
            }
        }
    }
}

impl BareSender {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> usize {
        let at = self.written as usize % RING_BYTES;
        let wanted = bytes.len().min(RING_BYTES - at);
        let free = |read| RING_BYTES - (self.written - read) as usize;
        if free(self.read) < wanted {
            self.read = word(&self.memory, READ).load(Ordering::Acquire);
        }
        let count = wanted.min(free(self.read));
        if count > 0 {
            // SAFETY: in the ring, and the other side has read what was there.
            unsafe {
                let place = self.memory.start().add(BESIDE + at);
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, count);
            }
            self.written += count as u64;
            word(&self.memory, WRITTEN).store(self.written, Ordering::Release);
        }
        count
    }
}

impl BareReceiver {
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> usize {
        let at = self.read as usize % RING_BYTES;
        let there = (word(&self.memory, WRITTEN).load(Ordering::Acquire) - self.read) as usize;
        let count = there.min(into.len()).min(RING_BYTES - at);
        if count > 0 {
            // SAFETY: in the ring, and the other side has written it.
            unsafe {
                let place = self.memory.start().add(BESIDE + at);
                std::ptr::copy_nonoverlapping(place, into.as_mut_ptr(), count);
            }
            self.read += count as u64;
            word(&self.memory, READ).store(self.read, Ordering::Release);
        }
        count
    }
}

/// A word of shared memory.
#[inline]
fn word(memory: &Memory, offset: usize) -> &AtomicU64 {
    // SAFETY: inside the page before the ring and aligned; only words lie there.
    unsafe { AtomicU64::from_ptr(memory.start().add(offset).cast()) }
}

/// An end of two words that go to and fro: what the way between two processes costs, and no more.
pub struct CacheLine {
    memory: Rc<Memory>,
    to: usize,
    from: usize,
    sent: u64,
    seen: u64,
    wait: Wait,
}

/// Both ends.
pub fn cache_lines(wait: Wait) -> Result<[CacheLine; 2]> {
    let memory = Rc::new(Memory::new(BESIDE)?);
    let end = |to, from| CacheLine { memory: memory.clone(), to, from, sent: 0, seen: 0, wait };
    Ok([end(0, 256), end(256, 0)])
}

impl Channel for CacheLine {
    const IS_CARRYING: bool = false;

    #[inline]
    fn send(&mut self, _: &[u8]) -> Result<()> {
        self.sent += 1;
        word(&self.memory, self.to).store(self.sent, Ordering::Release);
        Ok(())
    }

    #[inline]
    fn receive(&mut self, into: &mut [u8]) -> Result<usize> {
        let from = word(&self.memory, self.from);
        while from.load(Ordering::Acquire) == self.seen {
            self.wait.a_moment();
        }
        self.seen += 1;
        Ok(into.len())
    }
}
