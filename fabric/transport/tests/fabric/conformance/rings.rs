// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings over a transport: streams, messages, full rings, and sleeping.

use super::{Case, PATIENCE, Party};
use crate::support::bytes;
use fastrand::Rng;
use freeport_fabric::channel::{Channel, EndsOf, InboxOf, Prepared, WindowOf};
use freeport_fabric::endpoint::Transfer;
use freeport_fabric::{Arrival, Completion, Endpoint, Key};
use freeport_ring::Full;
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::layout::message_max;
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use std::thread;
use std::time::{Duration, Instant};

pub fn cases<E: Endpoint>() -> Vec<Case<E>> {
    let case = |name, first, second| Case { name, first, second };
    vec![
        case("streams", streams, streams),
        case("messages", messages, messages),
        case("back_pressure", fill, drain),
        case("doorbells", call, answer),
        case("late_arrivals", fall_asleep, come_late),
    ]
}

/// Opens a channel at the same time as the other party.
pub fn open<E: Endpoint>(
    party: &Party<E>,
    capacity: usize,
    number: u16,
) -> (Channel<E>, EndsOf<E>) {
    let (prepared, key) = Prepared::new(&party.endpoint, capacity).expect("a ring");
    prepared.open(&party.endpoint, party.swap(key), number).expect("the other's part")
}

/// Waits until everything that was written arrives.
pub fn leave<E: Endpoint>(channel: &Channel<E>) {
    let since = Instant::now();
    while !channel.is_idle() {
        channel.progress(|other| panic!("{other:?}")).expect("an honest peer");
        assert!(since.elapsed() < PATIENCE, "what was written does not arrive");
    }
}

/// Closes a channel with all of its completions, so that the next one receives none of them.
fn close<E: Endpoint>(party: &Party<E>, channel: &Channel<E>) {
    leave(channel);
    party.meet();
    progress(channel);
    party.meet();
}

/// A channel with messages.
struct Messages<E: Endpoint> {
    channel: Channel<E>,
    ends: Ends<E>,
}

struct Ends<E: Endpoint> {
    sender: MessageSender<WindowOf<E>, InboxOf<E>>,
    receiver: MessageReceiver<InboxOf<E>, WindowOf<E>>,
}

impl<E: Endpoint> Messages<E> {
    fn open(party: &Party<E>, capacity: usize, number: u16) -> Self {
        let (channel, (sender, receiver)) = open(party, capacity, number);
        let (sender, receiver) = (MessageSender::new(sender), MessageReceiver::new(receiver));
        Self { channel, ends: Ends { sender, receiver } }
    }

    /// Sends if there is room.
    fn try_send(&mut self, message: &[u8]) -> bool {
        progress(&self.channel);
        match self.ends.sender.send(&[message]) {
            Ok(wake) => {
                self.channel.wake(wake).expect("an honest peer");
                true
            }
            Err(full) => {
                assert_eq!(full, Full::NoCredit);
                false
            }
        }
    }

    /// Receives if something has arrived.
    fn try_receive(&mut self, into: &mut [u8]) -> Option<usize> {
        progress(&self.channel);
        let done = self.ends.receiver.receive(into).expect("an honest peer");
        self.channel.wake(done.wake).expect("an honest peer");
        match done.outcome {
            Received::Message(length) => Some(length),
            Received::Nothing => None,
            other => panic!("{other:?}"),
        }
    }

    /// Sends, sleeping until there is room.
    fn send(&mut self, message: &[u8]) {
        while !self.try_send(message) {
            self.sleep(true);
        }
    }

    /// Receives, sleeping until something arrives.
    fn receive(&mut self) -> Vec<u8> {
        let mut buffer = [0; LONGEST];
        loop {
            match self.try_receive(&mut buffer) {
                Some(length) => return buffer[..length].to_vec(),
                None => self.sleep(false),
            }
        }
    }

    /// Sleeps until a message arrives, or until there is room for one.
    fn sleep(&mut self, for_room: bool) {
        let Self { channel, ends } = self;
        let since = Instant::now();
        let announce = |ends: &mut Ends<E>, asleep: bool| {
            let Ends { sender, receiver } = ends;
            match (asleep, for_room) {
                (true, false) => return receiver.ring().announce_sleep(),
                (false, false) => receiver.ring().announce_awake(),
                (true, true) => sender.ring().announce_sleep(),
                (false, true) => sender.ring().announce_awake(),
            }
            false
        };
        let look = |ends: &mut Ends<E>| {
            progress(channel);
            let found = if for_room {
                ends.sender.ring().has_room(LONGEST)?
            } else {
                ends.receiver.ring().peek()?.is_some()
            };
            Ok(found.then_some(()))
        };
        let found = channel.sleep_unless(ends, announce, look, PATIENCE);
        found.expect("the other party is here");
        assert!(since.elapsed() < PATIENCE, "no wake-up arrived");
    }
}

fn progress<E: Endpoint>(channel: &Channel<E>) {
    channel.progress(|other| panic!("{other:?}")).expect("an honest peer");
}

/// A stream in each direction at once, for rings of several sizes.
fn streams<E: Endpoint>(party: Party<E>) {
    for (number, capacity) in (0..).zip([64, 1024, 1 << 16]) {
        let (channel, (sender, receiver)) = open(&party, capacity, number);
        let (mut sender, mut receiver) = (ByteSender::new(sender), ByteReceiver::new(receiver));
        let mut random = Rng::with_seed(u64::from(number));
        let total = 40 * capacity.min(4096);
        let (mut sent, mut got, mut has_ended) = (0, 0, false);
        let mut buffer = vec![0; 3 * capacity];
        let since = Instant::now();
        loop {
            progress(&channel);
            if sent < total {
                let length = random.usize(1..3 * capacity).min(total - sent);
                let written = sender.write(&bytes(sent, length)).expect("an honest peer");
                channel.wake(written.wake).expect("an honest peer");
                sent += written.outcome;
            } else if !has_ended {
                has_ended = sender.end().expect("an honest peer").is_some();
            }
            let room = random.usize(1..buffer.len());
            let read = receiver.read(&mut buffer[..room]).expect("an honest peer");
            channel.wake(read.wake).expect("an honest peer");
            match read.outcome {
                Read::Bytes(count) => {
                    assert_eq!(buffer[..count], bytes(got, count), "from {got} on");
                    got += count;
                }
                Read::End if has_ended => break,
                Read::End => {}
                Read::Nothing => thread::yield_now(),
                Read::Moved { .. } => panic!("the stream never moves"),
            }
            assert!(since.elapsed() < PATIENCE, "{sent} sent and {got} got of {total}");
        }
        assert_eq!(got, total);
        close(&party, &channel);
    }
}

/// Makes message `number`: its length and bytes follow from the number.
fn message(number: usize, longest: usize) -> Vec<u8> {
    bytes(number, Rng::with_seed(number as u64).usize(0..=longest))
}

/// Number of messages in each direction.
const MESSAGES: usize = 300;

/// Messages of all lengths in each direction at once.
fn messages<E: Endpoint>(party: Party<E>) {
    for (number, capacity) in (0..).zip([64, 1024, 1 << 15]) {
        let mut both = Messages::open(&party, capacity, number);
        let longest = message_max(capacity);
        let too_long = both.ends.sender.stage(&[&vec![0; longest + 1]]);
        assert_eq!(too_long, Err(Full::TooLong));
        let (mut sent, mut got) = (0, 0);
        let mut buffer = vec![0; capacity];
        let since = Instant::now();
        while sent < MESSAGES || got < MESSAGES {
            let was = (sent, got);
            if sent < MESSAGES && both.try_send(&message(sent, longest)) {
                sent += 1;
            }
            if let Some(length) = both.try_receive(&mut buffer) {
                assert_eq!(buffer[..length], message(got, longest), "message {got}");
                got += 1;
            }
            if was == (sent, got) {
                thread::yield_now();
            }
            assert!(since.elapsed() < PATIENCE, "{sent} sent and {got} got");
        }
        close(&party, &both.channel);
    }
}

const FULL_CAPACITY: usize = 1024;

/// Sends until there is no room, which is not an error and loses nothing.
fn fill<E: Endpoint>(party: Party<E>) {
    let mut both = Messages::open(&party, FULL_CAPACITY, 0);
    let mut sent = 0_usize;
    for round in 0..5 {
        let before = sent;
        while both.try_send(&message(sent, LONGEST)) {
            sent += 1;
        }
        assert!(sent > before + 4, "round {round}: {sent} messages in all");
        leave(&both.channel);
        assert!(!both.try_send(&message(sent, LONGEST)), "it stays full");
        // The other party receives all of it, and there is room again.
        party.swap(Key::new(&(sent + 1).to_le_bytes(), None).expect("a short key"));
        let since = Instant::now();
        while !both.try_send(&message(sent, LONGEST)) {
            assert!(since.elapsed() < PATIENCE, "no room comes back");
            thread::yield_now();
        }
        sent += 1;
        close(&party, &both.channel);
    }
}

fn drain<E: Endpoint>(party: Party<E>) {
    let mut both = Messages::open(&party, FULL_CAPACITY, 0);
    let (mut got, mut buffer) = (0, [0; FULL_CAPACITY]);
    for _ in 0..5 {
        let key = party.swap(Key::new(&[], None).expect("a short key"));
        let sent = usize::from_le_bytes(key.bytes().try_into().expect("a number"));
        let since = Instant::now();
        while got < sent {
            match both.try_receive(&mut buffer) {
                Some(length) => {
                    assert_eq!(buffer[..length], message(got, LONGEST), "message {got}");
                    got += 1;
                }
                None => thread::yield_now(),
            }
            assert!(since.elapsed() < PATIENCE, "{got} messages of {sent}");
        }
        close(&party, &both.channel);
    }
}

/// Number of messages, for each of which one side often waits, or for room.
const CALLS: usize = 10_000;
/// Length of the longest message.
const LONGEST: usize = 100;
/// Maximum number of messages sent before an answer: more than there is room for.
const BURST: usize = 40;

/// Sends bursts with pauses and waits for the same number of answers: a lost wake-up stops both.
fn call<E: Endpoint>(party: Party<E>) {
    let mut both = Messages::open(&party, FULL_CAPACITY, 0);
    let mut random = Rng::with_seed(31);
    let mut sent = 0;
    while sent < CALLS {
        let burst = if random.u8(..4) > 0 { 1 } else { random.usize(1..=BURST) };
        let end = (sent + burst).min(CALLS);
        both.send(&(end as u64).to_ne_bytes());
        for number in sent..end {
            both.send(&message(number, LONGEST));
            pause(&mut random);
        }
        assert_eq!(both.receive(), (end as u64).to_ne_bytes());
        sent = end;
    }
    close(&party, &both.channel);
}

/// Receives bursts with pauses, and answers each message.
fn answer<E: Endpoint>(party: Party<E>) {
    let mut both = Messages::open(&party, FULL_CAPACITY, 0);
    let mut random = Rng::with_seed(32);
    let mut got = 0;
    while got < CALLS {
        let end = both.receive();
        let end_number = u64::from_ne_bytes(end[..].try_into().expect("a number")) as usize;
        for number in got..end_number {
            assert_eq!(both.receive(), message(number, LONGEST), "message {number}");
            pause(&mut random);
        }
        both.send(&end);
        got = end_number;
    }
    close(&party, &both.channel);
}

/// Goes to sleep while a message arrives: it arrived before the announcement, so the sender does
/// not ring.
fn fall_asleep<E: Endpoint>(party: Party<E>) {
    let mut both = Messages::open(&party, FULL_CAPACITY, 0);
    let announces = E::ARRIVAL == Arrival::Memory;
    let late = || {
        party.meet();
        party.meet();
    };
    assert_eq!(both.try_receive(&mut [0; LONGEST]), None);
    if !announces {
        late();
    }
    let Messages { channel, ends } = &mut both;
    let announce = |ends: &mut Ends<E>, asleep: bool| {
        if asleep {
            late();
            return ends.receiver.ring().announce_sleep();
        }
        ends.receiver.ring().announce_awake();
        false
    };
    let look = |ends: &mut Ends<E>| {
        progress(channel);
        Ok(ends.receiver.ring().peek()?)
    };
    let found = channel.sleep_unless(ends, announce, look, Duration::from_secs(1));
    assert!(found.expect("the other party is here").is_some(), "what came late is found");
    assert_eq!(both.receive(), b"late");
    close(&party, &both.channel);
    // The same with data: either there is a completion to poll, or the sleep is short.
    let (_, target) = party.regions(8);
    drop(target);
    late();
    if party.endpoint.arm().expect("an honest peer") {
        let since = Instant::now();
        party.endpoint.sleep(PATIENCE).expect("the other party is here");
        assert!(since.elapsed() < PATIENCE, "the sleep missed data that came before");
    }
    assert_eq!(party.next(), Completion::Arrived { data: 77 });
    party.meet();
}

fn come_late<E: Endpoint>(party: Party<E>) {
    let mut both = Messages::open(&party, FULL_CAPACITY, 0);
    party.meet();
    both.send(b"late");
    leave(&both.channel);
    party.meet();
    close(&party, &both.channel);
    let (here, there) = party.regions(8);
    party.meet();
    let (here, there) = (&here, &there);
    let write = Transfer::<E> { here, here_at: 0, there, there_at: 0, bytes: 8, token: 1 };
    party.endpoint.write_with_data(write, 77).expect("there is room for one");
    assert_eq!(party.done(1), [1]);
    party.meet();
    party.meet();
}

/// Pauses rarely long enough for the other side to sleep, and often nearly so.
fn pause(random: &mut Rng) {
    match random.u16(..1000) {
        0..20 => thread::sleep(Duration::from_micros(random.u64(..200))),
        20..150 => (0..random.u32(..2000)).for_each(|_| std::hint::spin_loop()),
        150..200 => thread::yield_now(),
        _ => {}
    }
}
