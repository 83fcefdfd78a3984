// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The monitor of accelerated sockets: one process per machine or per user that pairs the two ends
//! of a connection.
//!
//! A process that wants an end accelerated sends its descriptor over a Unix socket. The monitor
//! relies only on what the kernel reports about that descriptor, so a process cannot claim a socket
//! it does not hold. Once both ends are claimed, the monitor gives both processes shared memory and
//! takes no part in their traffic; [`freeport_sockets_proto`] describes the protocol from there on.
//!
//! - [`Monitor`] decides: members, claims, pairs, slabs. It has no socket of its own and no clock.
//! - [`Server`] listens, reads and writes, in one thread.
//! - [`Location`] is the path at which it listens, and determines who may be the monitor there.
//! - [`background`] starts a monitor that outlives its parent.
//! - [`confinement`] drops the privileges it does not need.
//! - [`activity`] reports the traffic of accelerated programs.
//! - [`Control`] queries a running monitor; [`why`] also inspects the processes from outside.

pub mod activity;
pub mod background;
mod choice;
pub mod confinement;
mod control;
mod disposal;
mod end;
mod error;
pub mod executable;
mod kept;
mod ledger;
mod location;
mod lock;
mod member;
mod monitor;
mod outside;
mod policy;
mod private;
mod process;
mod server;
mod slab;
pub mod socket;
mod sums;
mod text;

pub use control::{Control, Descriptor};
pub use disposal::{Closing, Shown};
pub use error::Error;
pub use location::{Location, Taken};
pub use member::{Departure, MemberId, Outgoing};
pub use monitor::{Limits, Monitor};
pub use outside::{DESCRIPTORS_MIN, why};
pub use policy::{Decision, Policy, Rule};
pub use process::{Process, Since};
pub use server::{Event, Options, Server};
pub use text::printable;
