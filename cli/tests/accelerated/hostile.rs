// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Peers that write whatever they like into the memory that they share with a real server: their
//! own connections may go wrong, and nothing else.

use crate::harness::{Mode, Node, find, free_port, is_long};
use fastrand::Rng;
use freeport_monitor::socket;
use freeport_sockets_proto::VERSION;
use freeport_sockets_proto::message::{BYTES, Reply, Request};
use freeport_sockets_proto::slab::{self, REFUND_BYTES, Ring, SLAB_BYTES, Side, flag, word};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long anybody else may have to wait for an answer. Not a measure of speed: it is far longer
/// than a peer can hold up a server.
const PATIENCE: Duration = Duration::from_secs(20);
/// What a hostile peer does with its slot.
const DEEDS: usize = 2000;

#[test]
fn what_peers_write_spoils_nothing_but_their_own_connections() {
    let (node, _monitor) = Node::new();
    let port = free_port();
    let redis = find("redis-server").expect("redis-server is installed: scripts/install.sh");
    let mut command = node.command(Mode::Accelerated, &redis);
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    let mut server = node.serve("redis-server", command, port);
    let is_over = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let honest = scope.spawn(|| ask_until(port, &is_over));
        for seed in 0..if is_long() { 2000 } else { 100 } {
            attack(&node, port, seed);
        }
        is_over.store(true, Ordering::Relaxed);
        honest.join().unwrap()
    });
    assert!(answers > 0);
    assert!(server.ended().is_none(), "the server is gone: {}", server.printed());
    // It serves who comes behind them.
    let mut last = connect(port);
    assert!((0..100).all(|_| ping(&mut last)));
}

/// Asks again and again; gives how often it was answered.
fn ask_until(port: u16, is_over: &AtomicBool) -> u64 {
    let (mut stream, mut answers) = (connect(port), 0);
    while !is_over.load(Ordering::Relaxed) {
        assert!(ping(&mut stream), "not answered, after {answers}");
        answers += 1;
        thread::sleep(Duration::from_millis(1));
    }
    answers
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn ping(stream: &mut TcpStream) -> bool {
    let mut answer = [0; 7];
    stream.write_all(b"PING\r\n").is_ok()
        && stream.read_exact(&mut answer).is_ok()
        && &answer == b"+PONG\r\n"
}

/// A member that is this process.
struct Member(OwnedFd);

impl Member {
    fn new(node: &Node) -> Self {
        let member = Self(socket::connect(&node.monitor_path()).unwrap());
        let hello = Request::Hello { version: VERSION, membarrier: true };
        socket::send(member.0.as_fd(), &hello.encode(), &[]).unwrap();
        member
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

    /// Talks until the other end is claimed as well; also gives how often it has asked.
    fn pair(&self, stream: &mut TcpStream) -> (OwnedFd, u32, Side, u64) {
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

/// A slot, of which everything is written that can be.
struct Slot {
    slab: *mut u8,
    start: usize,
    side: Side,
}

impl Slot {
    fn new(slab: &OwnedFd, slot: u32, side: Side) -> Self {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: memory of that size, which others write as well, so it is only used by atomics.
        let slab = unsafe {
            let flags = libc::MAP_SHARED;
            libc::mmap(ptr::null_mut(), SLAB_BYTES, protection, flags, slab.as_raw_fd(), 0)
        };
        assert_ne!(slab, libc::MAP_FAILED);
        Self { slab: slab.cast(), start: slab::slot(slot).unwrap(), side }
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: inside the slab and aligned.
        unsafe { AtomicU64::from_ptr(self.slab.add(self.start + at).cast()) }
    }

    /// Does as it should until the server uses both rings: so that what is written there matters.
    fn leave_kernel(&self, stream: &mut TcpStream, mut asked: u64) {
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
        // It looks again when a doorbell rings.
        stream.write_all(&[0]).unwrap();
        while server(word::FLAGS) & flag::LOOKS == 0 {
            assert!(begun.elapsed() < PATIENCE, "the server never looks at the other ring");
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Somewhere where it matters.
    fn place(&self, rng: &mut Rng) -> usize {
        let sides = [Side::First, Side::Second];
        let side = sides[rng.usize(..2)];
        let ring = Ring::to(side);
        let at = match rng.u32(..8) {
            0 | 1 => slab::state(self.side) + rng.usize(..128),
            2 => slab::state(side) + rng.usize(..512),
            3 => ring.sender_notes() + rng.usize(..128),
            4 => ring.receiver_notes() + rng.usize(..128),
            5 | 6 => ring.area(rng.u32(..slab::AREAS)).unwrap() + rng.usize(..4096),
            _ => slab::refund(side) + rng.usize(..REFUND_BYTES),
        };
        at & !7
    }

    /// A value that could mean something.
    fn value(&self, rng: &mut Rng) -> u64 {
        match rng.u32(..6) {
            0 => rng.u64(..),
            1 => rng.u64(..9),
            2 => rng.u64(..1 << 20),
            3 => u64::MAX - rng.u64(..9),
            // The header of an entry that could come next.
            4 => rng.u64(..4096) | rng.u64(..6) << 32 | rng.u64(..64) << 48,
            _ => self.word(self.place(rng)).load(Ordering::Relaxed).wrapping_add(rng.u64(..3)),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`.
        unsafe { libc::munmap(self.slab.cast(), SLAB_BYTES) };
    }
}

/// Gets a slot as it should, and then does what it likes.
fn attack(node: &Node, port: u16, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut stream = connect(port);
    let member = Member::new(node);
    let (slab, slot, side, asked) = member.pair(&mut stream);
    let slot = Slot::new(&slab, slot, side);
    stream.set_nonblocking(true).unwrap();
    slot.leave_kernel(&mut stream, asked);
    let flags = slot.word(slab::state(side) + word::FLAGS);
    for _ in 0..DEEDS {
        match rng.u32(..100) {
            0 => _ = flags.fetch_or(1 << rng.u32(..10), Ordering::SeqCst),
            1 => _ = stream.write(b"PING\r\n"),
            2 => _ = stream.write(&[0; 3]),
            3 => _ = stream.read(&mut [0; 4096]),
            4 => thread::sleep(Duration::from_micros(rng.u64(..300))),
            _ => {
                let (place, value) = (slot.place(&mut rng), slot.value(&mut rng));
                slot.word(place).store(value, Ordering::SeqCst);
            }
        }
    }
    if rng.bool() {
        // It goes on in silence for a while.
        thread::sleep(Duration::from_millis(rng.u64(..20)));
    }
}
