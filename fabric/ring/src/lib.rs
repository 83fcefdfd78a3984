// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings between two sides that can only write to each other's memory: for one direction, a
//! [`Sender`] and a [`Receiver`], with [streams of bytes](bytes) and [whole messages](messages)
//! on top (SocksDirect 6.4.2).
//!
//! Nothing is allocated, no system is called and nothing panics, so a library that is loaded into
//! any program may use it, in signal handlers as well.
//!
//! **The life of an entry.**
//! 1. The sender's *credits* are the bytes of the ring that it may overwrite. An entry costs its
//!    header, its payload rounded up to 8 bytes, and, until the next one, 8 bytes for a terminator.
//! 2. The payload is written behind the place of the header, a zero word behind the payload, and
//!    then, by one store with release, the header. The zero word keeps the receiver from taking
//!    bytes of an earlier lap for the next header.
//! 3. The receiver looks at the place of the next header. Zero: nothing has come. Anything else is
//!    checked before it is believed: the other side may be hostile.
//! 4. What the receiver is done with it gives back when that has become more than half of the
//!    ring: the total since the start, in a word of the sender's memory that only it writes.
//!
//! **Who is where.** The ring and the sender's [notes](layout) are in the receiver's memory, the
//! receiver's notes in the sender's. Each word has one writer. What "memory" is, the traits
//! [`Local`] and [`Remote`] leave open: a mapping shared by two processes ([`Mapped`]), or what a
//! network card writes to.
//!
//! **Many connections.** Where two threads have more connections with each other than they want
//! rings, all share [one queue](shared_queue).
//!
//! **Waiting.** A side that found nothing may announce that it sleeps ([`sleep`]); the other side
//! then learns from its next operation that it has to wake it. How, is not this crate's concern.

#![no_std]

#[cfg(test)]
extern crate std;

pub mod bytes;
mod claimed;
mod fault;
mod header;
mod kind;
pub mod layout;
mod memory;
pub mod messages;
mod news;
mod receiver;
mod sender;
mod shared;
pub mod shared_queue;
pub mod sleep;
mod stores;

pub use claimed::Claimed;
pub use fault::Fault;
pub use header::Header;
pub use kind::Kind;
pub use memory::{Local, Mapped, Remote};
pub use news::Seen;
pub use receiver::{Entry, Receiver, ReceiverCursor, Stopped};
pub use sender::{Full, Sender, SenderCursor};
pub use shared::Shared;
