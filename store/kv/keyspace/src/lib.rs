// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Keys with values of all Redis types, in the memory of an engine, and their expiry.
//!
//! A [`Keyspace`] belongs to one core, as its engine does. Strings without an expiry are the plain
//! values of the engine. Every other value has a short header: its kind, when it expires,
//! and whether its bytes follow or lie elsewhere. Values in packed form follow, in the memory
//! of the engine. Large ones are structures on the heap, whose number follows.
//!
//! Time is the caller's: every call takes the time in milliseconds since 1970. A value whose time
//! has passed is not there any more for any call; its memory returns when it is written next, when
//! [`Keyspace::expire_some`] finds it, or when a caller removes what a read did not see
//! ([`Keyspace::take_hidden`]).

#![forbid(unsafe_code)]

mod access;
mod batch;
mod entry;
mod error;
mod expiry;
mod header;
mod image;
mod image_steps;
mod keyspace;
mod large;
mod operations;
mod random;
mod reload;
mod sampling;
mod transfer;
mod usage;
mod value;
mod victims;
mod view;

pub use access::Tracking;
pub use batch::{BatchEffects, BatchOptions, Entry, Execute};
pub use entry::{ImageEntry, RawEntry};
pub use error::Error;
pub use header::{Expiry, Kind};
pub use image::ImageStep;
pub use keyspace::{Keyspace, Options};
pub use operations::OperationError;
pub use sampling::{Order, Sampling};
pub use transfer::Detached;
pub use value::{Form, Type};
pub use view::ValueRef;
