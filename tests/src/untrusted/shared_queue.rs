// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A side of a shared queue with a hostile peer: the peer works correctly, but also sends forged
//! labels and messages, and writes arbitrary values into both rings. This side may at most detect a
//! fault, and must finish each operation.

use super::ring::{Window, World};
use freeport_ring::Kind;
use freeport_ring::shared_queue::{
    Came, Cell, Connection, End, Event, Limits, Notes, Record, Refused, Slot,
};

type Side<'a> = End<'a, Window<'a>, Window<'a>>;

/// Largest window in this test.
const WINDOW_MAX: usize = 9;

/// Number of the peer's connections: few, so that numbers are soon reused, or enough for a side to
/// prefetch its notes.
const FEW: u32 = 3;
const MANY: u32 = 20_000;

/// Interprets the bytes as the actions of both sides.
pub fn shared_queue(bytes: &[u8]) {
    let [size, window, ref script @ ..] = *bytes else { return };
    let capacity = 128 << (size % 4);
    // A large window for many connections would mean megabytes to prepare.
    let (of_peer, windows) = if size % 16 < 12 { (FEW, WINDOW_MAX) } else { (MANY, 2) };
    let window = 1 + u16::from(window) % windows as u16;
    let limits = Limits { connections: [of_peer, 2], window };
    let (to_this, to_peer) = script.split_at(script.len() / 2);
    let worlds = [World::new(capacity, false, to_this), World::new(capacity, true, to_peer)];
    let [mut own, mut others] = [(); 2].map(|()| Memory::new(capacity, limits));
    let [in_world, out_world] = &worlds;
    let (sender, receiver) = (out_world.sender(true), in_world.receiver(true));
    let this = End::new(sender, receiver, limits, 1, own.notes());
    let (sender, receiver) = (in_world.sender(false), out_world.receiver(false));
    let peer = End::new(sender, receiver, limits, 0, others.notes());
    let mut queue = Queue {
        worlds: &worlds,
        capacity,
        limits,
        this: this.expect("sizes that can be"),
        peer: peer.expect("sizes that can be"),
        of_peer: vec![],
        known: vec![],
        has_lied: false,
        has_failed: false,
    };
    while !in_world.is_over() {
        queue.peer();
        queue.this();
    }
}

struct Memory {
    records: Vec<Record>,
    slots: Vec<Slot>,
    cells: Vec<Cell>,
}

impl Memory {
    fn new(capacity: usize, limits: Limits) -> Self {
        Self {
            records: vec![Record::default(); limits.total().expect("limits") as usize],
            slots: vec![Slot::default(); Limits::slots(capacity)],
            cells: vec![Cell::default(); limits.cells().expect("limits")],
        }
    }

    fn notes(&mut self) -> Notes<'_> {
        let Self { records, slots, cells } = self;
        Notes { records, slots, cells }
    }
}

struct Queue<'a> {
    /// Memory of the ring to this side, and of the one to the peer.
    worlds: &'a [World; 2],
    capacity: usize,
    limits: Limits,
    this: Side<'a>,
    peer: Side<'a>,
    /// Connections that each side knows.
    of_peer: Vec<Connection>,
    known: Vec<Connection>,
    /// Whether the peer has sent something that no correct peer sends.
    has_lied: bool,
    has_failed: bool,
}

impl Queue<'_> {
    fn byte(&self) -> u8 {
        self.worlds[0].byte()
    }

    fn one_of(&self, connections: &[Connection]) -> Connection {
        let at = usize::from(self.byte()) % connections.len().max(1);
        connections.get(at).copied().unwrap_or_default()
    }

    /// Faults that the peer detects do not matter: its memory is modified as well.
    fn peer(&mut self) {
        let connection = self.one_of(&self.of_peer);
        match self.byte() % 16 {
            0 => self.of_peer.extend(self.peer.open()),
            1 => _ = self.peer.close(connection),
            2..5 => _ = self.peer.receive(connection, &mut [0; 600]),
            5 => {
                let mut events = [Event::default(); 4];
                let count = self.peer.poll(&mut events).unwrap_or(0);
                self.of_peer.extend(events[..count].iter().map(|event| event.connection));
            }
            6 => self.lie(),
            _ => {
                let message = vec![7; usize::from(self.byte())];
                _ = self.peer.send(connection, &message);
            }
        }
    }

    /// Sends a label that is correct, or wrong in one or several fields.
    fn lie(&mut self) {
        self.has_lied = true;
        let [number, what, generation, amount, length] = [(); 5].map(|()| self.byte());
        let number = self.number_around(number);
        let amount = if what % 6 == 4 { u64::from(amount) } else { 0 };
        let word = u64::from(number)
            | u64::from(what % 6) << 32
            | u64::from(generation % 4) << 40
            | amount << 48;
        let message = vec![9; usize::from(length % 64)];
        let message = if what % 6 == 2 { &message[..] } else { &[] };
        let (sender, _) = self.peer.rings();
        let kind = if length == 255 { Kind::Shutdown } else { Kind::Data };
        let label = word.to_ne_bytes();
        let parts: &[&[u8]] = if kind == Kind::Data { &[&label, message] } else { &[] };
        _ = sender.send(kind, parts);
    }

    /// Returns a number of either side, the first unused one, or an invalid one.
    fn number_around(&self, byte: u8) -> u32 {
        let [of_peer, of_this] = self.limits.connections;
        match u32::from(byte % 8) {
            7 => u32::MAX,
            low if low % 6 < FEW => low % 6,
            high => of_peer + (high % 6 - FEW) % (of_this + 1),
        }
    }

    fn this(&mut self) {
        for world in self.worlds {
            world.begin(self.capacity);
        }
        let connection = self.one_of(&self.known);
        match self.byte() % 8 {
            0 => match self.this.open() {
                Ok(connection) => self.known.push(connection),
                Err(refused) => self.check(Some(refused)),
            },
            1 => {
                let closed = self.this.close(connection);
                self.check(closed.err().map(Refused::Fault));
            }
            2 => self.poll(),
            3 => {
                let looked = self.this.look();
                self.check(looked.err().map(Refused::Fault));
            }
            4 => {
                self.this.will_send(connection);
                let message = vec![3; usize::from(self.byte())];
                let sent = self.this.send(connection, &message);
                self.check(sent.err());
            }
            _ => {
                let mut into = vec![0; usize::from(self.byte())];
                match self.this.receive(connection, &mut into) {
                    Ok(Came::Message(length)) => assert!(length <= into.len()),
                    Ok(Came::Longer(length)) => assert!(length <= WINDOW_MAX * 52),
                    Ok(_) => {}
                    Err(fault) => self.check(Some(Refused::Fault(fault))),
                }
            }
        }
        _ = self.this.take_wake();
    }

    fn poll(&mut self) {
        let mut events = [Event::default(); 4];
        match self.this.poll(&mut events) {
            Ok(count) => {
                assert!(!self.has_failed || count == 0, "what had come was told of before");
                self.known.extend(events[..count].iter().map(|event| event.connection));
                self.known.truncate(64);
            }
            Err(fault) => {
                self.has_failed = true;
                self.check(Some(Refused::Fault(fault)));
            }
        }
    }

    fn check(&self, refused: Option<Refused>) {
        if let Some(Refused::Fault(fault)) = refused {
            let is_spoilt = self.has_lied || self.worlds.iter().any(World::is_meddled_with);
            assert!(is_spoilt, "{fault} of an honest peer");
        }
    }
}
