// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The attacker: a process that talks to the monitor without the library, and writes any values
//! into its slots.

use super::{await_turn, holding, ping};
use crate::harness::{Node, PATIENCE, wait_until};
use fastrand::Rng;
use freeport_monitor::socket;
use freeport_sockets_proto::VERSION;
use freeport_sockets_proto::message::{BYTES, Reply, Request};
use freeport_sockets_proto::slab::{
    self, REFUND_BYTES, Ring, SLAB_BYTES, SLOT_BYTES, Side, again, flag, word,
};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A member that is this process.
pub struct Member(OwnedFd);

impl Member {
    pub fn new(node: &Node) -> Self {
        let member = Self(socket::connect(&node.monitor_path()).unwrap());
        let hello = Request::Hello { version: VERSION, membarrier: true };
        socket::send(member.0.as_fd(), &hello.encode(), &[]).unwrap();
        member
    }

    /// Connection to the monitor.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn hear(&self) -> Option<(Reply, Option<OwnedFd>)> {
        let mut bytes = [0; BYTES];
        match socket::receive(self.0.as_fd(), &mut bytes) {
            Ok(message) => {
                let reply = Reply::decode(&bytes[..message.length]).expect("a reply");
                Some((reply, message.descriptors.into_iter().next()))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Claims its end, and sends requests until it is paired; returns the slab, the slot, the side
    /// and the number of requests.
    pub fn pair(&self, stream: &mut UnixStream) -> (OwnedFd, u32, Side, u64) {
        let descriptor = stream.as_raw_fd();
        let (begun, mut asked) = (Instant::now(), 0);
        loop {
            assert!(begun.elapsed() < PATIENCE, "never paired");
            let claim = Request::Claim { token: 1, descriptor, inherited: false };
            socket::send(self.0.as_fd(), &claim.encode(), &[stream.as_fd()]).unwrap();
            loop {
                assert!(ping(stream), "an honest beginning is answered");
                asked += 1;
                match self.hear() {
                    Some((Reply::Paired { slot, side, .. }, Some(slab))) => {
                        return (slab, slot, side, asked);
                    }
                    Some((Reply::Refused { .. }, _)) => break,
                    _ => {}
                }
            }
        }
    }
}

/// A slot, all of whose words can be written.
pub struct Slot {
    slab: *mut u8,
    number: u32,
    pub side: Side,
}

impl Slot {
    pub fn new(slab: &OwnedFd, slot: u32, side: Side) -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the mapping has this size. Other processes write to it, so it is accessed by
        // atomics only.
        let slab = unsafe {
            let flags = libc::MAP_SHARED;
            libc::mmap(ptr::null_mut(), SLAB_BYTES, protection, flags, slab.as_raw_fd(), 0)
        };
        assert_ne!(slab, libc::MAP_FAILED);
        Self { slab: slab.cast(), number: slot, side }
    }

    /// A word of the page of the slot.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        self.in_slab(slab::page(self.number).unwrap() + at)
    }

    /// A word of an area.
    pub fn in_area(&self, ring: Ring, area: u32, at: usize) -> &AtomicU64 {
        self.in_slab(ring.area(self.number, area).unwrap() + at)
    }

    /// The first word of what a side gives back.
    pub fn in_refund(&self, side: Side) -> &AtomicU64 {
        self.in_slab(slab::refund(self.number, side).unwrap())
    }

    /// A word of its slab.
    pub fn in_slab(&self, at: usize) -> &AtomicU64 {
        assert!(at < SLAB_BYTES);
        // SAFETY: the offset is inside the slab, as checked above.
        let place = unsafe { self.slab.add(at) };
        // SAFETY: the word is aligned, and stays mapped as long as the attacker exists.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// Follows the protocol until the server uses both rings, so that writes there have an effect.
    pub fn leave_kernel(&self, stream: &mut UnixStream, mut asked: u64) {
        let own = |at| self.word(slab::state(self.side) + at);
        let server = |at| self.word(slab::state(self.side.other()) + at).load(Ordering::SeqCst);
        own(word::FLAGS).store(flag::ATTACHED, Ordering::SeqCst);
        let begun = Instant::now();
        let mut is_answered = true;
        while server(word::SENT_BYTES) == 0 {
            assert!(begun.elapsed() < PATIENCE, "the server never sends through its ring");
            if is_answered {
                stream.write_all(b"PING\r\n").unwrap();
                asked += 1;
            }
            is_answered = stream.read(&mut [0; 7]).is_ok();
            thread::sleep(Duration::from_micros(100));
        }
        own(word::SWITCHED_AT).store(asked * b"PING\r\n".len() as u64, Ordering::SeqCst);
        own(word::FLAGS).fetch_or(flag::SWITCHED, Ordering::SeqCst);
        // It checks again when a doorbell rings.
        stream.write_all(&[0]).unwrap();
        while server(word::FLAGS) & flag::LOOKS == 0 {
            assert!(begun.elapsed() < PATIENCE, "the server never looks at the other ring");
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// A random position that the peer reads.
    pub fn somewhere(&self, rng: &mut Rng) -> &AtomicU64 {
        let sides = [Side::First, Side::Second];
        let side = sides[rng.usize(..2)];
        let ring = Ring::to(side);
        let page = slab::page(self.number).unwrap();
        let at = match rng.u32(..9) {
            0 | 1 => page + slab::state(self.side) + rng.usize(..128),
            2 => page + slab::state(side) + rng.usize(..512),
            3 => page + ring.sender_notes() + rng.usize(..128),
            4 => page + ring.receiver_notes() + rng.usize(..128),
            5 | 6 => {
                let area = rng.u32(..slab::AREAS);
                let bytes = Ring::capacity(area).min(4096);
                ring.area(self.number, area).unwrap() + rng.usize(..bytes)
            }
            7 => slab::board(side) + rng.usize(..256),
            _ => slab::refund(self.number, side).unwrap() + rng.usize(..REFUND_BYTES),
        };
        self.in_slab(at & !7)
    }

    /// A random value that may be meaningful.
    pub fn value(&self, rng: &mut Rng) -> u64 {
        match rng.u32(..6) {
            0 => rng.u64(..),
            1 => rng.u64(..9),
            2 => rng.u64(..1 << 20),
            3 => u64::MAX - rng.u64(..9),
            // The header of a possible next entry.
            4 => rng.u64(..4096) | rng.u64(..6) << 32 | rng.u64(..64) << 48,
            _ => self.somewhere(rng).load(Ordering::Relaxed).wrapping_add(rng.u64(..3)),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.slab.cast(), SLAB_BYTES) };
    }
}

/// A connection whose end here may do anything.
pub struct Attacker {
    pub stream: UnixStream,
    pub slot: Slot,
    /// Number of requests through the kernel.
    asked: u64,
    _member: Member,
}

impl Attacker {
    /// Obtains a slot by the protocol.
    pub fn new(node: &Node, stream: UnixStream) -> Self {
        Self::after(node, stream, 0)
    }

    /// Obtains a slot as another user, if this process is root.
    pub fn of_another_user(node: &Node, stream: UnixStream) -> Self {
        Self::of(holding::member(node), stream, 0)
    }

    /// The same, after sending the bytes of this number of pings.
    pub fn after(node: &Node, stream: UnixStream, before: u64) -> Self {
        Self::of(Member::new(node), stream, before)
    }

    fn of(member: Member, mut stream: UnixStream, before: u64) -> Self {
        let (slab, slot, side, asked) = member.pair(&mut stream);
        stream.set_nonblocking(true).unwrap();
        let (slot, asked) = (Slot::new(&slab, slot, side), before + asked);
        Self { stream, slot, asked, _member: member }
    }

    /// Announces that it sends through the kernel again after this number of doorbells.
    pub fn leaves_after(&self, doorbells: u64) {
        let left = self.own(word::SWITCHED_AT).load(Ordering::SeqCst) + doorbells;
        self.own(word::LEFT_AT).store(left, Ordering::SeqCst);
        self.own(word::FLAGS).fetch_or(flag::LEAVES, Ordering::SeqCst);
    }

    /// Continues until both sides use their rings.
    pub fn leave_kernel(&mut self) {
        self.slot.leave_kernel(&mut self.stream, self.asked);
    }

    /// A word of its own state.
    pub fn own(&self, word: usize) -> &AtomicU64 {
        self.slot.word(slab::state(self.slot.side) + word)
    }

    /// A word of the victim's.
    pub fn other(&self, word: usize) -> &AtomicU64 {
        self.slot.word(slab::state(self.slot.side.other()) + word)
    }

    /// Sends a byte, which the peer takes for a doorbell or for a byte of the stream.
    pub fn ring(&mut self) {
        _ = self.stream.write(&[0]);
    }

    /// Announces its return to the kernel from a position, and requests bytes to be sent again.
    pub fn wants_again(&self, stopped: &[u64; 5], refunded: u64) {
        let [area, behind @ ..] = stopped;
        self.own(word::STOPPED_AREA).store(*area, Ordering::SeqCst);
        for (at, value) in word::STOPPED.into_iter().zip(behind) {
            self.own(at).store(*value, Ordering::SeqCst);
        }
        self.own(word::REFUNDED).store(refunded, Ordering::SeqCst);
        self.other(word::AGAIN).store(again::WANTED, Ordering::SeqCst);
        self.own(word::FLAGS).fetch_or(flag::STOPS, Ordering::SeqCst);
    }

    /// Makes close reset the connection.
    pub fn resets_at_close(&self) {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: the pointer is to an option of the size that is passed.
        let result = unsafe {
            libc::setsockopt(
                self.stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of_val(&linger) as u32,
            )
        };
        assert_eq!(result, 0);
    }

    /// Reads until nothing has arrived while a server has processed everything, or until more has
    /// arrived than is possible; returns the number of bytes. Concurrent clients must be served.
    pub fn read_while_served(&mut self, honest: &mut UnixStream) -> usize {
        let (begun, mut bytes) = (Instant::now(), 0);
        loop {
            await_turn(honest);
            let (count, is_over) = self.read_what_is_there();
            bytes += count;
            if count == 0 || is_over || bytes > SLOT_BYTES {
                return bytes;
            }
            assert!(begun.elapsed() < PATIENCE, "the server never stops");
        }
    }

    /// Reads until the connection is over.
    pub fn read_to_end(&mut self) {
        wait_until("the connection is over", || self.read_what_is_there().1);
    }

    /// Reads available bytes; returns whether the end was reached.
    pub fn is_over(&mut self) -> bool {
        self.read_what_is_there().1
    }

    /// Number of available bytes, and whether the end was reached.
    fn read_what_is_there(&mut self) -> (usize, bool) {
        let (mut bytes, mut into) = (0, vec![0; 1 << 16]);
        loop {
            match self.stream.read(&mut into) {
                Ok(0) => return (bytes, true),
                Ok(count) => bytes += count,
                Err(error) => return (bytes, error.kind() != ErrorKind::WouldBlock),
            }
            if bytes > SLOT_BYTES {
                return (bytes, false);
            }
        }
    }
}
