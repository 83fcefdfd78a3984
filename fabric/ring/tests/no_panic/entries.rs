// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every operation of a ring over [`Mapped`], called as by a library that must not panic. This file
//! is compiled separately, and the result is inspected.
#![expect(improper_ctypes_definitions, reason = "compiled and inspected, never called")]

use freeport_ring::bytes::{ByteReceiver, ByteSender, Done, Read};
use freeport_ring::messages::{MessageReceiver, MessageSender, Received};
use freeport_ring::shared_queue::{Came, Connection, End, Event, Limits, Notes, Refused};
use freeport_ring::sleep::Announced;
use freeport_ring::{
    Claimed, Entry, Fault, Full, Header, Kind, Mapped, Receiver, ReceiverCursor, Sender,
    SenderCursor,
};

/// Exported functions, so that the compiler keeps them.
macro_rules! entries {
    ($(fn $name:ident($($parameter:ident: $type:ty),*) -> $result:ty { $body:expr })*) => {
        $(
            /// See its name.
            #[unsafe(no_mangle)]
            pub extern "C" fn $name($($parameter: $type),*) -> $result { $body }
        )*
    };
}

type S = Sender<Mapped, Mapped>;
type R = Receiver<Mapped, Mapped>;
type Bytes = ByteSender<Mapped, Mapped>;
type Reader = ByteReceiver<Mapped, Mapped>;
type Messages = MessageSender<Mapped, Mapped>;
type MessageReader = MessageReceiver<Mapped, Mapped>;

type Queue = End<'static, Mapped, Mapped>;
type Own = Notes<'static>;

entries! {
    fn ring_new_sender(memory: Mapped, capacity: usize, cursor: SenderCursor) -> Option<S> {
        // SAFETY: this function is only compiled, never called.
        unsafe { Sender::new(memory, memory, memory, capacity, cursor) }
    }
    fn ring_new_receiver(memory: Mapped, capacity: usize, cursor: ReceiverCursor) -> Option<R> {
        // SAFETY: this function is only compiled, never called.
        unsafe { Receiver::new(memory, memory, memory, capacity, cursor) }
    }
    fn ring_room(s: &mut S, wanted: usize) -> Result<usize, Fault> { s.room(wanted) }
    fn ring_has_room(s: &mut S, length: usize) -> Result<bool, Fault> { s.has_room(length) }
    fn ring_stage(s: &mut S, kind: Kind, parts: &[&[u8]]) -> Result<(), Full> {
        s.stage(kind, parts)
    }
    fn ring_publish(s: &mut S) -> bool { s.publish() }
    fn ring_send(s: &mut S, kind: Kind, parts: &[&[u8]]) -> Result<bool, Full> {
        s.send(kind, parts)
    }
    fn ring_move_to(s: &mut S, memory: Mapped, capacity: usize, name: u64) -> Result<bool, Full> {
        // SAFETY: this function is only compiled, never called.
        unsafe { s.move_to(memory, capacity, name) }
    }
    fn ring_has_left(s: &mut S) -> Result<bool, Fault> { s.has_left() }
    fn ring_is_drained(s: &mut S) -> Result<bool, Fault> { s.is_drained() }
    fn ring_sender_sleeps(s: &mut S) -> () { s.announce_sleep() }
    fn ring_sender_sleeps_lightly(s: &mut S, awake_for: u32) -> Announced {
        s.announce_light_sleep(awake_for)
    }
    fn ring_sender_wakes(s: &mut S) -> () { s.announce_awake() }
    fn ring_sender_cursor(s: &S) -> SenderCursor { s.cursor() }

    fn ring_peek(r: &mut R) -> Result<Option<Entry>, Fault> { r.peek() }
    fn ring_read(r: &R, entry: &Entry, from: usize, into: &mut [u8]) -> usize {
        r.read(entry, from, into)
    }
    fn ring_take(r: &mut R, entry: &Entry) -> bool { r.take(entry) }
    fn ring_found_nothing(r: &mut R) -> bool { r.found_nothing() }
    fn ring_follow(r: &mut R, entry: &Entry, memory: Mapped, capacity: usize) -> Option<bool> {
        // SAFETY: this function is only compiled, never called.
        unsafe { r.move_to(entry, memory, capacity) }
    }
    fn ring_receiver_sleeps(r: &mut R) -> bool { r.announce_sleep() }
    fn ring_receiver_sleeps_lightly(r: &mut R, awake_for: u32) -> Announced {
        r.announce_light_sleep(awake_for)
    }
    fn ring_receiver_wakes(r: &mut R) -> () { r.announce_awake() }
    fn ring_receiver_cursor(r: &R) -> ReceiverCursor { r.cursor() }

    fn ring_write_bytes(s: &mut Bytes, bytes: &[u8]) -> Result<Done<usize>, Fault> {
        s.write(bytes)
    }
    fn ring_end_bytes(s: &mut Bytes) -> Result<Option<Done<()>>, Fault> { s.end() }
    fn ring_read_bytes(r: &mut Reader, into: &mut [u8]) -> Result<Done<Read>, Fault> {
        r.read(into)
    }
    fn ring_peek_bytes(r: &mut Reader, into: &mut [u8]) -> Result<Read, Fault> { r.peek(into) }
    fn ring_available(r: &mut Reader) -> Result<usize, Fault> { r.available() }

    fn ring_send_message(s: &mut Messages, parts: &[&[u8]]) -> Result<bool, Full> { s.send(parts) }
    fn ring_stage_message(s: &mut Messages, parts: &[&[u8]]) -> Result<(), Full> { s.stage(parts) }
    fn ring_publish_messages(s: &mut Messages) -> bool { s.publish() }
    fn ring_end_messages(s: &mut Messages) -> Result<bool, Full> { s.end() }
    fn ring_receive(r: &mut MessageReader, into: &mut [u8]) -> Result<Done<Received>, Fault> {
        r.receive(into)
    }

    fn queue_new(s: S, r: R, limits: Limits, side: usize, notes: Own) -> Option<Queue> {
        End::new(s, r, limits, side, notes)
    }
    fn queue_open(q: &mut Queue) -> Result<Connection, Refused> { q.open() }
    fn queue_send(q: &mut Queue, c: Connection, message: &[u8]) -> Result<(), Refused> {
        q.send(c, message)
    }
    fn queue_will_send(q: &Queue, c: Connection) -> () { q.will_send(c) }
    fn queue_receive(q: &mut Queue, c: Connection, into: &mut [u8]) -> Result<Came, Fault> {
        q.receive(c, into)
    }
    fn queue_poll(q: &mut Queue, into: &mut [Event]) -> Result<usize, Fault> { q.poll(into) }
    fn queue_look(q: &mut Queue) -> Result<bool, Fault> { q.look() }
    fn queue_close(q: &mut Queue, c: Connection) -> Result<(), Fault> { q.close(c) }
    fn queue_take_wake(q: &mut Queue) -> bool { q.take_wake() }

    fn ring_parse(word: u64) -> Result<Header, Fault> { Header::parse(Claimed::new(word)) }
    fn ring_word(header: Header) -> u64 { header.word() }
}
