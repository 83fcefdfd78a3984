// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A folder that keeps a state: a snapshot, and a log of what has changed since.
//!
//! The journal knows no keys and no commands. A *unit* is the change by one command, transaction or
//! script, as bytes that only the caller understands; it is recovered whole or not at all. A
//! *snapshot* consists of entries, which are also bytes of the caller.
//!
//! | file | contents |
//! |---|---|
//! | `manifest` | a text that names the snapshot and the segments that make up the state |
//! | `snapshot.N` | blocks of entries, and a mark at the end |
//! | `log.N` | a segment of the log: batches of units |
//! | `lineage` | a text that names the histories of a log that others follow |
//! | `lock` | number of the process that has the folder |
//!
//! # Use
//!
//! 1. [`Journal::open`] hands the entries of the snapshot, and the units of the log, to a
//!    [`Replay`].
//! 2. Before a command changes anything: [`Journal::admit`]. If the disk is full or fails, it is
//!    refused, and nothing has happened.
//! 3. After it: its unit is added to the worker's [`Units`], and [`Journal::append`] is called
//!    before anybody can see the change.
//! 4. The reply is sent when [`Journal::released`] has reached the position of the append.
//! 5. Now and then [`Journal::begin_snapshot`], so that the log becomes short again.
//!
//! Other servers follow the log ([`Journal::follow`]) from the whole state
//! ([`Journal::read_snapshot`]) or from where they were, if the [`Lineage`] covers that. They
//! install the state ([`Journal::install`]), and their logs are copies
//! ([`Journal::append_copy`]).
//!
//! ```
//! use freeport_kv_journal::{Journal, Options, Policy, Replay, Units};
//!
//! #[derive(Default)]
//! struct State(Vec<Vec<u8>>);
//! impl Replay for State {
//!     fn entry(&mut self, bytes: &[u8]) -> Result<(), String> {
//!         self.unit(bytes)
//!     }
//!     fn unit(&mut self, bytes: &[u8]) -> Result<(), String> {
//!         self.0.push(bytes.to_vec());
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let options = || Options::new(folder.path());
//! let mut units = Units::new();
//! let (journal, _) = Journal::open(options(), &mut State::default(), &mut |_| {})?;
//! journal.admit(&mut units, 5)?;
//! units.push(b"SET 1");
//! let position = journal.append(&mut units);
//! // Nothing waits for the disk under the usual policy, `EverySecond`.
//! assert!(journal.released() >= position);
//! drop(journal);
//!
//! let mut state = State::default();
//! Journal::open(options(), &mut state, &mut |_| {})?;
//! assert_eq!(state.0, [b"SET 1"]);
//! # Ok(())
//! # }
//! ```
//!
//! `docs/internals/kv-journal.md` describes formats, faults and recovery.

#![forbid(unsafe_code)]

mod chain;
mod committer;
mod copying;
pub mod disk;
mod error;
pub mod faulty;
mod folder;
mod following;
mod frame;
pub mod inspect;
mod installing;
mod journal;
mod lineage;
mod manifest;
pub mod memory;
mod reader;
mod recovery;
mod replacement;
mod reserve;
mod rotation;
mod shared;
mod snapshot;
mod snapshot_file;
mod status;
mod units;
mod walk;

pub use copying::CopyError;
pub use error::{Failure, FailureKind, LineageError, OpenError, Refusal, SnapshotError};
pub use following::{Batch, FollowError, Follower, SnapshotReader};
pub use frame::{FILE_BYTES, Items, MAX_ITEM_BYTES};
pub use installing::Installer;
pub use journal::{Journal, Options};
pub use lineage::{History, Lineage, MAX_HISTORIES};
pub use manifest::{Manifest, Segment};
pub use snapshot::{Done, PENDING_BYTES, SnapshotWriter};
pub use snapshot_file::Completed;
pub use status::{Cut, Policy, Position, Progress, Recovered, Status};
pub use units::{BLOCK_BYTES, Entries, Units};
pub use walk::{BadPlace, Contents, Replay, SegmentFacts, SnapshotFacts};
