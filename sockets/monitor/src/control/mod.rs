// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What people ask a monitor, and its answers: each an object of JSON.
//!
//! A question is the first and only message of a connection. The answer comes in parts, and is
//! complete when the monitor hangs up. Users see their own connections; root and the user of the
//! monitor see all of them, and may change the rules.
//!
//! 1. [`Control`] sends a question, as [`Question`] reads it.
//! 2. The monitor takes a [snapshot] of what the question is about, as far as the [`Asker`] may see
//!    it. A snapshot is plain data, so nothing here knows the monitor.
//! 3. An [answer] puts the snapshot into JSON.

pub mod answer;
mod client;
mod question;
pub mod snapshot;

pub use client::{Control, Descriptor};
pub use question::{Asked, Asker, MARK, Question, STAY};
