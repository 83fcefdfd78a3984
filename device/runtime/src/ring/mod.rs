// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rings between two threads, with one writer and one reader each: of frames and of records. They
//! implement a channel of the graph whose two ends run on different workers. A full ring accepts no
//! more; nothing in it is ever lost.

mod frames;
mod progress;
mod slots;

pub use frames::{FrameReader, FrameWriter, MAX_PACKET, Note, frame_ring};
pub use progress::Bell;
pub use slots::{SlotReader, SlotWriter, slot_ring};
