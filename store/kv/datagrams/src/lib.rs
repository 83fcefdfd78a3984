// SPDX-License-Identifier: Apache-2.0 OR MIT
//! UDP for servers with many small datagrams: one system call receives or sends up to
//! [`BATCH`] of them (`recvmmsg(2)`, `sendmmsg(2)`).
//!
//! A [`Socket`] never blocks. An [`Inbox`] has the datagrams of one call until the next; an
//! [`Outbox`] gathers datagrams and sends all of them. UDP may lose datagrams anyway, so those that
//! the system does not take are dropped and counted.

mod inbox;
mod outbox;
mod socket;

pub use inbox::{Datagram, Inbox};
pub use outbox::{Outbox, Sent};
pub use socket::{BATCH, DATAGRAM_BYTES_MAX, Socket};
