// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Under any order of operations, each connection of a shared queue behaves like a queue of its
//! own, and an unread connection does not hold up others. A failure names its seed;
//! `FREEPORT_SEED=<seed>` starts there.

use crate::shared::{End, Queue};
use fastrand::Rng;
use freeport_ring::shared_queue::{Came, Connection, Event, Limits, Refused};
use freeport_testbed::{number, seed, variable};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::catch_unwind;

const SEEDS: u64 = 300;
const OPERATIONS: usize = 3_000;

/// Messages that each side has sent on a connection and the other has not received, and the sides
/// that have closed it.
#[derive(Default)]
struct Expected {
    messages: [VecDeque<Vec<u8>>; 2],
    closed: [bool; 2],
    /// The side to which the new connection has not been reported.
    unreported: Option<usize>,
    /// The connection as each side names it; the other side knows it once it was reported.
    known: [Option<Connection>; 2],
}

struct Model<'a> {
    ends: [End<'a>; 2],
    limits: Limits,
    /// The open connections, by number.
    open: BTreeMap<u32, Expected>,
    /// Connections that are not read.
    ignored: BTreeSet<u32>,
    /// Whether everything was done to have a number free.
    is_opening_again: bool,
    random: Rng,
    /// Counts of events that have to occur in a run.
    seen: Seen,
}

#[derive(Default, Debug)]
struct Seen {
    received: usize,
    full: usize,
    window: usize,
    used_again: usize,
    ends: usize,
}

#[test]
fn connections_are_queues() {
    let first = seed();
    let mut total = Seen::default();
    for seed in first..first + SEEDS {
        let result = catch_unwind(|| run(Rng::with_seed(seed)));
        let Ok(Seen { received, full, window, used_again, ends }) = result else {
            panic!("FREEPORT_SEED={seed}");
        };
        total.received += received;
        total.full += full;
        total.window += window;
        total.used_again += used_again;
        total.ends += ends;
    }
    let Seen { received, full, window, used_again, ends } = total;
    let least = [received, full, window, used_again, ends].into_iter().min();
    let is_given = number(variable::SEED).is_some();
    assert!(is_given || least > Some(300), "{total:?}");
}

fn run(mut random: Rng) -> Seen {
    // With many connections, records are prefetched.
    let limits = if random.u8(..8) == 0 {
        Limits { connections: [20_000, 0], window: 2 }
    } else {
        Limits {
            connections: [random.u32(1..=8), random.u32(0..=8)],
            window: [1, 2, 3, 8, 64][random.usize(..5)],
        }
    };
    let capacity = 128 << random.u32(0..=6);
    let mut queue = Queue::new(capacity, limits);
    let ends = queue.ends();
    let mut model = Model {
        ends,
        limits,
        open: BTreeMap::new(),
        ignored: BTreeSet::new(),
        is_opening_again: false,
        random,
        seen: Seen::default(),
    };
    for _ in 0..OPERATIONS {
        model.step();
    }
    model.drain();
    model.seen
}

impl Model<'_> {
    fn step(&mut self) {
        let side = self.random.usize(..2);
        match self.random.u8(..40) {
            0..2 => self.open(side),
            2..20 => self.send(side),
            20..34 => self.receive(side),
            34..38 => self.poll(side),
            38 => self.close(side),
            _ => {
                if let Some(number) = self.any() {
                    self.ignored.insert(number);
                }
            }
        }
    }

    /// Returns a connection that is open on at least one side.
    fn any(&mut self) -> Option<u32> {
        let at = self.random.usize(..self.open.len().max(1));
        self.open.keys().nth(at).copied()
    }

    fn open(&mut self, side: usize) {
        match self.ends[side].open() {
            Ok(connection) => {
                let number = connection.number();
                let [first, _] = self.limits.connections;
                assert_eq!(number >= first, side == 1, "the numbers of the sides are disjoint");
                let mut expected = Expected { unreported: Some(1 - side), ..Expected::default() };
                expected.known[side] = Some(connection);
                let before = self.open.insert(number, expected);
                assert!(before.is_none(), "a number is used again only behind both ends");
                self.seen.used_again += usize::from(self.ignored.remove(&number));
            }
            Err(Refused::NoNumber) => {
                let [first, _] = self.limits.connections;
                let is_own = |number: &&u32| (**number >= first) == (side == 1);
                let open = self.open.keys().filter(is_own).count();
                let most = self.limits.connections[side] as usize;
                // The other side's close may not have been seen, or not been sent.
                if open < most && !self.is_opening_again {
                    self.poll(side);
                    self.poll(1 - side);
                    self.poll(side);
                    self.is_opening_again = true;
                    self.open(side);
                    self.is_opening_again = false;
                } else {
                    assert_eq!(open, most, "what both sides have closed is free");
                }
            }
            Err(Refused::Full) => self.make_room(side),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn send(&mut self, side: usize) {
        let Some(number) = self.any() else { return };
        let Some(connection) = self.open[&number].known[side] else { return };
        let longest = self.ends[side].message_max();
        let length = match self.random.u8(..4) {
            0 => self.random.usize(..=longest + 1),
            1 => self.random.usize(..=longest.min(150)),
            _ => self.random.usize(..=longest.min(8)),
        };
        let message: Vec<u8> = (0..length).map(|_| self.random.u8(..)).collect();
        self.ends[side].will_send(connection);
        let mut sent = self.ends[side].send(connection, &message);
        if sent == Err(Refused::Full) {
            self.seen.full += 1;
            self.make_room(side);
            sent = self.ends[side].send(connection, &message);
            let exists = !matches!(sent, Err(Refused::Full));
            assert!(exists, "who has looked has made room, whatever he has read");
        }
        let expected = self.open.get_mut(&number).expect("it is open");
        match sent {
            Ok(()) => {
                assert!(!expected.closed[side]);
                if !expected.closed[1 - side] {
                    expected.messages[side].push_back(message);
                }
            }
            Err(Refused::Closed) => assert!(expected.closed.contains(&true)),
            Err(Refused::TooLong) => assert!(length > longest),
            Err(Refused::Window) => {
                let unread = expected.messages[side].iter().map(|one| cells(one.len()));
                let window = usize::from(self.limits.window);
                let held_back = (window / 2).max(1) - 1;
                // The peer may not have sent its credits, because the ring was full.
                self.seen.window += 1;
                let needed = unread.sum::<usize>() + cells(length) + held_back;
                if needed <= window && !expected.closed.contains(&true) {
                    self.make_room(1 - side);
                    self.poll(1 - side);
                    self.poll(side);
                    // Pending messages of this side may have filled the ring.
                    self.make_room(side);
                    assert_eq!(self.ends[side].send(connection, &message), Ok(()));
                    let expected = self.open.get_mut(&number).expect("it is open");
                    expected.messages[side].push_back(message);
                }
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    fn receive(&mut self, side: usize) {
        let Some(number) = self.any() else { return };
        let Some(connection) = self.open[&number].known[side] else { return };
        if !self.ignored.contains(&number) {
            self.receive_from(side, connection);
        }
    }

    fn receive_from(&mut self, side: usize, connection: Connection) {
        let longest = self.ends[side].message_max();
        let room = if self.random.bool() { longest } else { self.random.usize(..=longest) };
        let mut into = vec![0; room];
        let came = self.ends[side].receive(connection, &mut into).expect("an honest peer");
        let expected = self.open.get_mut(&connection.number()).expect("it is open");
        let messages = &mut expected.messages[1 - side];
        match came {
            Came::Message(length) => {
                self.seen.received += 1;
                assert_eq!(Some(&into[..length]), messages.pop_front().as_deref());
            }
            Came::Longer(length) => {
                assert!(length > into.len() && Some(length) == messages.front().map(Vec::len));
            }
            Came::Nothing => {
                let is_over = expected.closed[1 - side] && !self.ends[1 - side].owes();
                assert!(messages.is_empty() && !is_over);
            }
            Came::End => {
                self.seen.ends += 1;
                assert!(messages.is_empty() && expected.closed[1 - side]);
            }
            Came::Closed => assert!(expected.closed[side]),
        }
    }

    /// The reported events are exactly the expected ones, in each call.
    fn poll(&mut self, side: usize) {
        // More than the ring has entries, so that everything that has arrived is processed.
        let mut events = [Event::default(); 1024];
        let count = self.ends[side].poll(&mut events).expect("an honest peer");
        let reported: BTreeSet<u32> =
            events[..count].iter().map(|it| it.connection.number()).collect();
        assert_eq!(reported.len(), count, "each connection is reported once");
        for event in &events[..count] {
            let expected = self.open.get_mut(&event.connection.number()).expect("it is open");
            assert_eq!(event.is_new, expected.unreported == Some(side));
            if event.is_new {
                expected.unreported = None;
                expected.known[side] = Some(event.connection);
            }
            assert_eq!(expected.known[side], Some(event.connection));
            let is_news = event.is_new || expected.closed[1 - side];
            assert!(is_news || !expected.messages[1 - side].is_empty());
        }
        for (number, expected) in &self.open {
            // A side that closes while the ring is full sends the closing later.
            let is_over = expected.closed[1 - side] && !self.ends[1 - side].owes();
            let has_news = !expected.messages[1 - side].is_empty() || is_over;
            let is_reported =
                !expected.closed[side] && (has_news || expected.unreported == Some(side));
            assert!(!is_reported || reported.contains(number), "{number} of {reported:?}");
        }
    }

    fn close(&mut self, side: usize) {
        let Some(number) = self.any() else { return };
        let expected = self.open.get_mut(&number).expect("it is open");
        let Some(connection) = expected.known[side] else { return };
        expected.closed[side] = true;
        expected.messages[1 - side].clear();
        self.ends[side].close(connection).expect("an honest peer");
        if self.open[&number].closed == [true; 2] {
            self.forget(number);
        }
    }

    /// Records for both sides that a connection is over.
    fn forget(&mut self, number: u32) {
        self.ignored.insert(number);
        self.open.remove(&number);
    }

    /// The other side polls, and reads nothing.
    fn make_room(&mut self, side: usize) {
        self.poll(1 - side);
    }

    /// In the end everything is read, including the connections that were ignored.
    fn drain(&mut self) {
        self.ignored.clear();
        for side in [0, 1] {
            self.poll(side);
            let numbers: Vec<_> = self.open.keys().copied().collect();
            for number in numbers {
                let Some(connection) = self.open[&number].known[side] else { continue };
                for _ in 0..self.open[&number].messages[1 - side].len() * 40 {
                    self.receive_from(side, connection);
                }
                let expected = &self.open[&number];
                assert!(expected.messages[1 - side].is_empty() || expected.closed[side]);
            }
        }
    }
}

fn cells(length: usize) -> usize {
    length.div_ceil(52).max(1)
}

/// One connection is never read, and its messages fill the ring many times over, among those of
/// others: the others make progress, and in the end all of its messages arrive.
#[test]
fn a_connection_that_is_not_read_pins_nothing() {
    for position in 0..3 {
        let limits = Limits { connections: [3, 0], window: 4000 };
        let mut queue = Queue::new(1024, limits);
        let [mut sender, mut receiver] = queue.ends();
        let connections = [(); 3].map(|()| sender.open().expect("there is room"));
        let mut into = [0; 64];
        assert_eq!(receiver.poll(&mut [Event::default(); 3]), Ok(3));
        for round in 0..2_000_u64 {
            for (at, connection) in connections.into_iter().enumerate() {
                assert_eq!(sender.send(connection, &round.to_ne_bytes()), Ok(()), "{round}");
                if at != position {
                    assert_eq!(receiver.receive(connection, &mut into), Ok(Came::Message(8)));
                    assert_eq!(into[..8], round.to_ne_bytes());
                }
            }
            let mut events = [Event::default(); 2];
            assert!(sender.poll(&mut events).expect("an honest peer") == 0, "only credits");
        }
        for round in 0..2_000_u64 {
            let came = receiver.receive(connections[position], &mut into);
            assert_eq!((came, &into[..8]), (Ok(Came::Message(8)), &round.to_ne_bytes()[..]));
        }
        assert_eq!(receiver.receive(connections[position], &mut into), Ok(Came::Nothing));
    }
}

/// A sender whose window is unread cannot send more on that connection, but can on every other.
#[test]
fn a_window_stops_its_own_connection_only() {
    let limits = Limits { connections: [2, 0], window: 4 };
    let mut queue = Queue::new(1024, limits);
    let [mut sender, mut receiver] = queue.ends();
    let [one, other] = [(); 2].map(|()| sender.open().expect("there is room"));
    assert_eq!(receiver.poll(&mut [Event::default(); 2]), Ok(2));
    for _ in 0..4 {
        assert_eq!(sender.send(one, b"unread"), Ok(()));
    }
    assert_eq!(sender.send(one, b"more"), Err(Refused::Window));
    for _ in 0..1_000 {
        assert_eq!(sender.send(other, b"read"), Ok(()));
        assert_eq!(receiver.receive(other, &mut [0; 8]), Ok(Came::Message(4)));
        let mut events = [Event::default(); 2];
        assert_eq!(sender.poll(&mut events), Ok(0), "nothing but what was given back");
    }
    assert_eq!(sender.send(one, b"more"), Err(Refused::Window));
    for _ in 0..2 {
        assert_eq!(receiver.receive(one, &mut [0; 8]), Ok(Came::Message(6)));
    }
    let mut events = [Event::default(); 2];
    assert_eq!(sender.poll(&mut events), Ok(0));
    assert_eq!(sender.send(one, b"more"), Ok(()));
}

#[test]
fn those_that_are_ready_are_told_of_in_the_order_in_which_they_came() {
    let limits = Limits { connections: [8, 0], window: 4 };
    let mut queue = Queue::new(4096, limits);
    let [mut sender, mut receiver] = queue.ends();
    let connections = [(); 8].map(|()| sender.open().expect("there is room"));
    let mut events = [Event::default(); 8];
    let numbers = |events: &[Event]| -> Vec<u32> {
        events.iter().map(|event| event.connection.number()).collect()
    };
    assert_eq!(receiver.poll(&mut events), Ok(8));
    assert!(events.iter().all(|event| event.is_new));
    assert_eq!(receiver.poll(&mut events), Ok(0), "new connections are reported once");
    for at in [5, 1, 7] {
        sender.send(connections[at], b"here").expect("there is room");
    }
    assert_eq!(receiver.poll(&mut events), Ok(3));
    assert_eq!(numbers(&events[..3]), [5, 1, 7]);
    // Reported again, two at a time, in turn.
    for expected in [[5, 1], [7, 5], [1, 7]] {
        assert_eq!(receiver.poll(&mut events[..2]), Ok(2));
        assert_eq!(numbers(&events[..2]), expected);
    }
    assert_eq!(receiver.receive(connections[1], &mut [0; 8]), Ok(Came::Message(4)));
    assert_eq!(receiver.poll(&mut events), Ok(2));
}

#[test]
fn a_queue_without_room_for_a_message_is_refused() {
    let limits = Limits { connections: [1, 1], window: 1 };
    assert!(Queue::new(64, limits).try_end(0).is_none());
    assert!(Queue::new(128, limits).try_end(0).is_some());
    assert_eq!(Limits { connections: [0, 0], window: 1 }.total(), None);
    assert_eq!(Limits { connections: [u32::MAX, 1], window: 1 }.total(), None);
    assert_eq!(Limits { connections: [1, 1], window: 0 }.cells(), None);
    assert_eq!(Limits { connections: [1 << 27, 0], window: 64 }.cells(), None);
}

/// Both sides send on all connections as fast as they can, and read what the other sends; the first
/// connection is read only at the end. With small rings both are full most of the time.
#[test]
fn two_threads_get_on_whatever_is_full() {
    const MESSAGES: u64 = 4_000;
    for capacity in [256, 1 << 14] {
        let limits = Limits { connections: [9, 0], window: 8 };
        let mut queue = Queue::new(capacity, limits);
        let [mut first, mut second] = queue.ends();
        let connections = [(); 4].map(|()| first.open().expect("there is room"));
        assert_eq!(second.poll(&mut [Event::default(); 4]), Ok(4));
        let play = |end: &mut End<'_>| {
            let (mut sent, mut received) = ([0_u64; 4], [0_u64; 4]);
            let mut into = [0; 64];
            while received.iter().sum::<u64>() < 4 * MESSAGES
                || sent.iter().sum::<u64>() < 4 * MESSAGES
            {
                let others_are_read = received[1..].iter().all(|count| *count == MESSAGES);
                for (at, connection) in connections.into_iter().enumerate() {
                    if sent[at] < MESSAGES {
                        match end.send(connection, &sent[at].to_ne_bytes()) {
                            Ok(()) => sent[at] += 1,
                            Err(Refused::Full | Refused::Window) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    }
                    if at == 0 && !others_are_read {
                        continue;
                    }
                    match end.receive(connection, &mut into).expect("an honest peer") {
                        Came::Message(length) => {
                            assert_eq!(into[..length], received[at].to_ne_bytes());
                            received[at] += 1;
                        }
                        Came::Nothing => std::thread::yield_now(),
                        other => panic!("{other:?}"),
                    }
                }
            }
            // The last messages read may have to be given back.
            while end.owes() {
                end.poll(&mut [Event::default(); 4]).expect("an honest peer");
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| play(&mut first));
            play(&mut second);
        });
    }
}
