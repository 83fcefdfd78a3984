// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Questions of users to a monitor, and its answers: each is a JSON object.
//!
//! A question is the first and only message of a connection. The answer comes in parts, and is
//! complete when the monitor hangs up. Users see their own connections; root and the user of the
//! monitor see all of them, and may change the rules.
//!
//! 1. [`Control`] sends a question, which [`Question`] parses.
//! 2. The monitor takes a [snapshot] for the question, limited to what the [`Asker`] may see. A
//!    snapshot is plain data, so this module does not depend on the monitor.
//! 3. An [answer] converts the snapshot to JSON.

pub mod answer;
mod client;
mod question;
pub mod snapshot;

pub use client::{Control, Descriptor};
pub use question::{Asked, Asker, MARK, Question, STAY};
