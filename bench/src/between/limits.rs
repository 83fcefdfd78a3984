// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The limits of shared memory between two processes: a ring without headers or checks, and a word
//! that is passed back and forth.

use super::channel::{Channel, Open, open};
use super::shared::Memory;
use super::wait::Wait;
use anyhow::Result;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a ring, the same as in Freeport.
const RING_BYTES: usize = 64 << 10;
/// Offset of a ring in its mapping: one page, which holds both progress counters.
const BESIDE: usize = 4096;

/// An end of two bare rings.
pub struct BareRing {
    to: BareSender,
    from: BareReceiver,
    wait: Wait,
}

/// Offsets of the progress counters, each in its own pair of cache lines.
const WRITTEN: usize = 0;
const READ: usize = 128;

struct BareSender {
    memory: Rc<Memory>,
    written: u64,
    /// Last seen read counter of the receiver.
    read: u64,
}

struct BareReceiver {
    memory: Rc<Memory>,
    read: u64,
}

/// Creates both ends.
pub fn bare_rings(wait: Wait) -> Result<[Open<BareRing>; 2]> {
    let there = Rc::new(Memory::new(BESIDE + RING_BYTES)?);
    let back = Rc::new(Memory::new(BESIDE + RING_BYTES)?);
    let end = |to: &Rc<Memory>, from: &Rc<Memory>| BareRing {
        to: BareSender { memory: to.clone(), written: 0, read: 0 },
        from: BareReceiver { memory: from.clone(), read: 0 },
        wait,
    };
    Ok([end(&there, &back), end(&back, &there)].map(open))
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
            // SAFETY: the ring lies `BESIDE` bytes behind the start, and `at` is inside the ring.
            let place = unsafe { self.memory.start().add(BESIDE + at) };
            // SAFETY: `count` bytes fit before the ring's end, and the receiver has consumed what
            // was there. No reference to shared memory exists, so `bytes` does not overlap it.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, count) };
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
            // SAFETY: the ring lies `BESIDE` bytes behind the start, and `at` is inside the ring.
            let place = unsafe { self.memory.start().add(BESIDE + at) };
            // SAFETY: `count` bytes lie before the ring's end, and the sender has written them. No
            // reference to shared memory exists, so `into` does not overlap it.
            unsafe { std::ptr::copy_nonoverlapping(place, into.as_mut_ptr(), count) };
            self.read += count as u64;
            word(&self.memory, READ).store(self.read, Ordering::Release);
        }
        count
    }
}

/// Returns a word of shared memory.
#[inline]
fn word(memory: &Memory, offset: usize) -> &AtomicU64 {
    // SAFETY: the offsets of words are inside the page before the ring.
    let place = unsafe { memory.start().add(offset) };
    // SAFETY: words are aligned, mapped as long as `memory` exists, and accessed only as atomics.
    unsafe { AtomicU64::from_ptr(place.cast()) }
}

/// An end of two words that are passed back and forth: the bare cost of moving a cache line between
/// two processes.
pub struct CacheLine {
    memory: Rc<Memory>,
    to: usize,
    from: usize,
    sent: u64,
    seen: u64,
    wait: Wait,
}

/// Creates both ends.
pub fn cache_lines(wait: Wait) -> Result<[Open<CacheLine>; 2]> {
    let memory = Rc::new(Memory::new(BESIDE)?);
    let end = |to, from| CacheLine { memory: memory.clone(), to, from, sent: 0, seen: 0, wait };
    Ok([end(0, 256), end(256, 0)].map(open))
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
