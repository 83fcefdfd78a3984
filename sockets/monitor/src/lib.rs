// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The monitor of accelerated sockets: the one process on a machine, or of a user, that brings the
//! two ends of a connection together.
//!
//! A process that wants an end accelerated shows it: the descriptor itself, over a Unix socket. The
//! monitor asks the kernel what it is, and nobody else; so nobody can claim what is not theirs.
//! Once both ends are claimed it gives both processes shared memory, and has no more to do with
//! what they say to each other: [`freeport_sockets_proto`] says how that goes on.
//!
//! - [`Monitor`] decides: members, claims, pairs, slabs. It has no socket of its own and no clock.
//! - [`Server`] listens, reads and writes, in one thread.
//! - [`Location`] is where it listens, and who may be the monitor there.
//! - [`background`] lets one live on without whoever began it.
//! - [`confinement`] takes from it what it does not need.
//! - [`activity`] is what programs do past the kernel, as people watch it.
//! - [`Control`] asks a running one what it knows; [`why`] looks further, from outside.

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
