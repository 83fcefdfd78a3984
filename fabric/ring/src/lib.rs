// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings between two sides that can only write to each other's memory: for one direction, a
//! [`Sender`] and a [`Receiver`], with [streams of bytes](bytes) and [whole messages](messages)
//! on top (SocksDirect 6.4.2).
//!
//! The crate allocates nothing, makes no system calls and never panics, so a library that is loaded
//! into any program may use it, even in signal handlers.
//!
//! **The life of an entry.**
//! 1. The sender's *credits* are the bytes of the ring that it may overwrite. An entry costs its
//!    header, its payload rounded up to 8 bytes, and, until the next one, 8 bytes for a terminator.
//! 2. The payload is written after the place of the header, a zero word after the payload, and
//!    then, by one store with release, the header. The zero word keeps the receiver from taking
//!    bytes of an earlier lap for the next header.
//! 3. The receiver reads the place of the next header. Zero means that nothing has arrived. Any
//!    other value is checked before it is used: the other side may be hostile.
//! 4. The receiver gives back the bytes that it has finished with when they exceed half of the
//!    ring: it stores the total since the start in a word of the sender's memory that only it
//!    writes.
//!
//! **Placement.** The ring and the sender's [notes](layout) are in the receiver's memory, the
//! receiver's notes in the sender's. Each word has one writer. The traits [`Local`] and [`Remote`]
//! abstract from the kind of memory: a mapping shared by two processes ([`Mapped`]), or memory that
//! a network card writes to.
//!
//! **Many connections.** Two threads that have more connections with each other than they want
//! rings can share [one queue](shared_queue) for all.
//!
//! **Waiting.** A side that found nothing may announce that it sleeps ([`sleep`]); the next
//! operation of the other side then reports that it has to wake it. The means of waking is outside
//! this crate.

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
