// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The operations of both sides: the real code of a ring over a [`Window`] each.

use super::memory::{Call, Mutation, Run, Window};
use freeport_ring::bytes::{ByteReceiver, ByteSender, Read};
use freeport_ring::layout::{self, NOTES_BYTES};
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use freeport_ring::{
    Fault, Full, Header, Kind, Local, Receiver, ReceiverCursor, Remote, Sender, SenderCursor,
};

/// Positions in words of the receiver's notes, the sender's notes, and the rings after them.
const TO_SENDER: usize = 0;
const TO_RECEIVER: usize = 2;
const RINGS: usize = 4;

/// Kind of traffic on a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavour {
    /// A stream of bytes.
    Bytes,
    /// Messages.
    Messages,
    /// Entries of any length, of which only the first and the last word are read.
    Entries,
}

/// Configuration that both sides know from the beginning.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Kind of traffic.
    pub flavour: Flavour,
    /// Capacities of the rings that the stream moves through, cyclically.
    pub rings: Vec<usize>,
    /// Whether a reader of bytes peeks at them before it takes them.
    pub looks: bool,
    /// The broken rule, if any.
    pub mutation: Option<Mutation>,
}

impl Setting {
    /// Returns the number of words that both sides need.
    pub fn words(&self) -> usize {
        RINGS + self.rings.iter().sum::<usize>() / 8
    }

    /// Returns the position of a ring, in words.
    pub fn ring_start(&self, ring: usize) -> usize {
        RINGS + self.rings[..ring].iter().sum::<usize>() / 8
    }

    fn ring<'a>(&self, run: &'a Run<'a>, ring: usize) -> (Window<'a>, usize) {
        let capacity = self.rings[ring];
        (run.window(self.ring_start(ring), capacity, true), capacity)
    }
}

/// One action of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Item {
    /// Bytes, a message, or an entry of that length.
    Send(usize),
    /// Two messages that are published together.
    Pair(usize, usize),
    /// The end.
    End,
    /// The ring moves to the next one, which was used before if the flag is set.
    Move(bool),
}

/// The operations other than reading and writing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Reading or writing.
    Main,
    /// Announces that the side sleeps.
    AnnounceSleep,
    /// Announces that the side sleeps lightly, until it has given back this many times without a
    /// sleep.
    AnnounceLightSleep(u32),
    /// Announces that the side is awake.
    AnnounceAwake,
}

/// Result of an operation.
#[derive(Debug)]
pub struct Outcome<C, T> {
    /// Position of the side.
    pub cursor: C,
    /// The ring that it is in.
    pub ring: usize,
    /// Result of the operation; `None` if it has to wait.
    pub result: Result<Option<T>, Fault>,
    /// Whether the other side has to be woken.
    pub wake: bool,
    /// Whether the side has started to sleep lightly.
    pub is_new: bool,
}

impl<C, T> Outcome<C, T> {
    /// Creates the result of an announcement.
    fn said(cursor: C, ring: usize, wake: bool, is_new: bool) -> Self {
        Self { cursor, ring, result: Ok(None), wake, is_new }
    }
}

/// Item that a receiver got.
#[derive(PartialEq, Eq, Debug)]
pub enum Got {
    /// Bytes of the stream.
    Bytes(Vec<u8>),
    /// Something that differs from what it had peeked at before.
    Changed,
    /// A message.
    Message(Vec<u8>),
    /// The first and the last word of an entry of that length.
    Entry(usize, [[u8; 8]; 2]),
    /// The end.
    End,
    /// The receiver moved to another ring.
    Moved,
}

/// Returns the byte at a position of the stream: words at multiples of 8 look like headers.
pub fn stream_byte(at: usize) -> u8 {
    disguised(at / 8, 0).to_le_bytes()[at % 8]
}

/// Makes the payload of message `number`: words that look like the possible next headers.
pub fn message(number: usize, length: usize) -> Vec<u8> {
    let words = (0..length.div_ceil(8)).map(|place| disguised(number, place));
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

fn disguised(number: usize, place: usize) -> u64 {
    let sequence = (number + 1 + place % 5) as u16;
    Header { kind: Kind::Data, length: 1 + number as u32 % 8, sequence }.word()
}

/// Runs an operation of the sender up to the end of the log.
pub fn send(
    setting: &Setting,
    (cursor, ring): (SenderCursor, usize),
    operation: Operation,
    (item, sent): (Item, usize),
    log: &[u64],
) -> Result<Outcome<SenderCursor, usize>, Call> {
    let run = Run::new(log, setting.mutation);
    let outcome = {
        let notes = run.window(TO_RECEIVER, NOTES_BYTES, false);
        let theirs = run.window(TO_SENDER, NOTES_BYTES, false);
        let (memory, capacity) = setting.ring(&run, ring);
        // SAFETY: a window checks its own bounds.
        let sender = unsafe { Sender::new(memory, notes, theirs, capacity, cursor) };
        let mut sender = sender.expect("a capacity");
        match operation {
            Operation::Main => send_item(setting, &run, sender, ring, item, sent),
            Operation::AnnounceSleep => {
                sender.announce_sleep();
                Outcome::said(sender.cursor(), ring, false, false)
            }
            Operation::AnnounceLightSleep(awake_for) => {
                let announced = sender.announce_light_sleep(awake_for);
                Outcome::said(sender.cursor(), ring, announced.wake, announced.is_new)
            }
            Operation::AnnounceAwake => {
                sender.announce_awake();
                Outcome::said(sender.cursor(), ring, false, false)
            }
        }
    };
    run.next().map_or(Ok(outcome), Err)
}

fn send_item<'a>(
    setting: &Setting,
    run: &'a Run<'a>,
    mut sender: Sender<Window<'a>, Window<'a>>,
    mut ring: usize,
    item: Item,
    sent: usize,
) -> Outcome<SenderCursor, usize> {
    let done = |result: Result<bool, Full>, what| match result {
        Ok(wake) => (Ok(Some(what)), wake),
        Err(Full::NoCredit) => (Ok(None), false),
        Err(Full::Fault(fault)) => (Err(fault), false),
        Err(Full::TooLong) => panic!("{item:?} is too long"),
    };
    let (result, wake) = match (item, setting.flavour) {
        (Item::Send(length), Flavour::Bytes) => {
            let bytes: Vec<u8> = (sent..sent + length).map(stream_byte).collect();
            let mut stream = ByteSender::new(sender);
            let written = stream.write(&bytes);
            let cursor = stream.ring().cursor();
            let (result, wake) = match written {
                Ok(done) => (Ok((done.outcome > 0).then_some(done.outcome)), done.wake),
                Err(fault) => (Err(fault), false),
            };
            return Outcome { cursor, ring, result, wake, is_new: false };
        }
        (Item::Send(length), Flavour::Messages) => {
            let mut messages = MessageSender::new(sender);
            let result = messages.send(&[&message(sent, length)]);
            let cursor = messages.ring().cursor();
            let (result, wake) = done(result, 1);
            return Outcome { cursor, ring, result, wake, is_new: false };
        }
        (Item::Send(length), Flavour::Entries) => {
            done(sender.send(Kind::Data, &[&message(sent, length)]), 1)
        }
        (Item::Pair(first, second), _) => {
            let stage = |sender: &mut Sender<_, _>, number, length| {
                let bytes = message(number, length);
                let (front, back) = bytes.split_at(length / 3);
                sender.stage(Kind::Data, &[front, back])
            };
            match stage(&mut sender, sent, first) {
                Ok(()) => {
                    let both = stage(&mut sender, sent + 1, second);
                    let wake = sender.publish();
                    let (result, _) = done(both.map(|()| wake), 2);
                    // The first may have been sent alone.
                    (result.map(|count| count.or(Some(1))), wake)
                }
                Err(full) => done(Err(full), 0),
            }
        }
        (Item::End, _) => done(sender.send(Kind::Shutdown, &[]), 0),
        (Item::Move(used), _) => {
            let next = (ring + 1) % setting.rings.len();
            let (mut memory, capacity) = setting.ring(run, next);
            match if used { sender.has_left() } else { Ok(true) } {
                Ok(true) => {
                    let zero = vec![0; if used { capacity } else { 0 }];
                    // SAFETY: a window checks its own bounds.
                    unsafe { Remote::write(&mut memory, 0, &zero) };
                    // SAFETY: the ring has that capacity and is zero now.
                    let result = unsafe { sender.move_to(memory, capacity, next as u64) };
                    if result.is_ok() {
                        ring = next;
                    }
                    done(result, 0)
                }
                Ok(false) => (Ok(None), false),
                Err(fault) => (Err(fault), false),
            }
        }
    };
    Outcome { cursor: sender.cursor(), ring, result, wake, is_new: false }
}

/// Returns whether a message of the maximum length for which there is always room can be staged
/// now.
pub fn has_room(
    setting: &Setting,
    (cursor, ring): (SenderCursor, usize),
    log: &[u64],
) -> Result<bool, Call> {
    let run = Run::new(log, setting.mutation);
    let outcome = {
        let notes = run.window(TO_RECEIVER, NOTES_BYTES, false);
        let theirs = run.window(TO_SENDER, NOTES_BYTES, false);
        let (memory, capacity) = setting.ring(&run, ring);
        // SAFETY: a window checks its own bounds.
        let sender = unsafe { Sender::new(memory, notes, theirs, capacity, cursor) };
        let longest = vec![0; layout::message_max(capacity)];
        sender.expect("a capacity").stage(Kind::Data, &[&longest]).is_ok()
    };
    run.next().map_or(Ok(outcome), Err)
}

/// Runs an operation of the receiver up to the end of the log.
pub fn receive(
    setting: &Setting,
    (cursor, ring): (ReceiverCursor, usize),
    operation: Operation,
    room: usize,
    log: &[u64],
) -> Result<Outcome<ReceiverCursor, Got>, Call> {
    let run = Run::new(log, setting.mutation);
    let outcome = {
        let notes = run.window(TO_SENDER, NOTES_BYTES, false);
        let theirs = run.window(TO_RECEIVER, NOTES_BYTES, false);
        let (memory, capacity) = setting.ring(&run, ring);
        // SAFETY: a window checks its own bounds.
        let receiver = unsafe { Receiver::new(memory, notes, theirs, capacity, cursor) };
        let mut receiver = receiver.expect("a capacity");
        match operation {
            Operation::Main => receive_some(setting, &run, receiver, ring, room),
            Operation::AnnounceSleep => {
                let wake = receiver.announce_sleep();
                Outcome::said(receiver.cursor(), ring, wake, false)
            }
            Operation::AnnounceLightSleep(awake_for) => {
                let announced = receiver.announce_light_sleep(awake_for);
                Outcome::said(receiver.cursor(), ring, announced.wake, announced.is_new)
            }
            Operation::AnnounceAwake => {
                receiver.announce_awake();
                Outcome::said(receiver.cursor(), ring, false, false)
            }
        }
    };
    run.next().map_or(Ok(outcome), Err)
}

type ModelReceiver<'a> = Receiver<Window<'a>, Window<'a>>;

fn receive_some<'a>(
    setting: &Setting,
    run: &'a Run<'a>,
    receiver: ModelReceiver<'a>,
    ring: usize,
    room: usize,
) -> Outcome<ReceiverCursor, Got> {
    match setting.flavour {
        Flavour::Bytes => {
            let mut stream = ByteReceiver::new(receiver);
            let mut into = vec![0; room];
            let mut wake = false;
            let looked = setting.looks.then(|| look(&mut stream, room));
            let read = stream.read(&mut into);
            let result = looked.unwrap_or(Ok(vec![])).and_then(|looked| {
                let done = read?;
                wake = done.wake;
                let count = if let Read::Bytes(count) = done.outcome { count } else { 0 };
                Ok(match done.outcome {
                    _ if !into[..count].starts_with(&looked) => Some(Ok(Got::Changed)),
                    Read::Bytes(count) => Some(Ok(Got::Bytes(into[..count].to_vec()))),
                    Read::Nothing => None,
                    Read::End => Some(Ok(Got::End)),
                    Read::Moved { name, entry } => Some(Err((name, entry))),
                })
            });
            follow(setting, run, stream.ring(), ring, result, wake)
        }
        Flavour::Messages => {
            let mut messages = MessageReceiver::new(receiver);
            let mut into = vec![0; room];
            let mut wake = false;
            let result = messages.receive(&mut into).map(|done| {
                wake = done.wake;
                match done.outcome {
                    Received::Message(length) => Some(Ok(Got::Message(into[..length].to_vec()))),
                    Received::Longer(length) => panic!("{length} bytes are more than {room}"),
                    Received::Nothing => None,
                    Received::End => Some(Ok(Got::End)),
                    Received::Moved { name, entry } => Some(Err((name, entry))),
                }
            });
            follow(setting, run, messages.ring(), ring, result, wake)
        }
        Flavour::Entries => receive_entry(setting, receiver, ring),
    }
}

/// Returns the bytes that have arrived, at least up to the reported number.
fn look<L: Local, R: Remote>(
    stream: &mut ByteReceiver<L, R>,
    room: usize,
) -> Result<Vec<u8>, Fault> {
    let available = stream.available()?;
    let mut into = vec![0; room];
    Ok(match stream.peek(&mut into)? {
        Read::Bytes(count) if count >= available.min(room) => into[..count].to_vec(),
        // No read can return that many.
        _ if available > 0 => vec![0; room + 1],
        _ => vec![],
    })
}

/// Name of another ring, and the entry that announces it.
type Elsewhere = (u64, freeport_ring::Entry);

/// Continues in the ring that an entry names.
fn follow<'a>(
    setting: &Setting,
    run: &'a Run<'a>,
    receiver: &mut ModelReceiver<'a>,
    mut ring: usize,
    result: Result<Option<Result<Got, Elsewhere>>, Fault>,
    mut wake: bool,
) -> Outcome<ReceiverCursor, Got> {
    let result = match result {
        Ok(Some(Ok(got))) => Ok(Some(got)),
        Ok(Some(Err((name, entry)))) => {
            // If the run has reached the end of its log, the name is not the one that was sent.
            ring = name as usize % setting.rings.len();
            let (memory, capacity) = setting.ring(run, ring);
            // SAFETY: a window checks its own bounds.
            wake |= unsafe { receiver.move_to(&entry, memory, capacity) }.expect("a capacity");
            Ok(Some(Got::Moved))
        }
        Ok(None) => Ok(None),
        Err(fault) => Err(fault),
    };
    Outcome { cursor: receiver.cursor(), ring, result, wake, is_new: false }
}

fn receive_entry<'a>(
    setting: &Setting,
    mut receiver: ModelReceiver<'a>,
    ring: usize,
) -> Outcome<ReceiverCursor, Got> {
    let mut wake = false;
    let result = receiver.peek().map(|entry| {
        let Some(entry) = entry else {
            wake = receiver.found_nothing();
            return None;
        };
        if entry.kind == Kind::Shutdown {
            return Some(Got::End);
        }
        let is_taken_first = setting.mutation == Some(Mutation::TakenFirst);
        if is_taken_first {
            wake = receiver.take(&entry);
        }
        let length = entry.length as usize;
        let mut words = [[0; 8]; 2];
        for (word, from) in words.iter_mut().zip([0, length.saturating_sub(8)]) {
            receiver.read(&entry, from, word);
        }
        if !is_taken_first {
            wake = receiver.take(&entry);
        }
        Some(Got::Entry(length, words))
    });
    Outcome { cursor: receiver.cursor(), ring, result, wake, is_new: false }
}
