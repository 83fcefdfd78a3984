// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings between two threads, with one writer and one reader each: of frames and of records. They
//! are what a channel of the graph becomes where its two ends are run by different workers. A full
//! ring takes no more; nothing in it is ever lost.

mod frames;
mod progress;
mod slots;

pub use frames::{FrameReader, FrameWriter, MAX_PACKET, Note, frame_ring};
pub use progress::Bell;
pub use slots::{SlotReader, SlotWriter, slot_ring};
