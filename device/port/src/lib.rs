// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packet ports: where frames come from and where they are sent.
//!
//! The contract is two traits, [`Receive`] and [`Transmit`]; [`conformance`] checks it on each port
//! and each stack of decorators. Below the ports lie packet headers ([`packet`]) and traces of
//! frames ([`trace`]).

mod arena;
pub mod bpf;
mod capture;
pub mod conformance;
mod fault;
mod memory;
pub mod namespace;
mod pace;
pub mod packet;
mod pages;
mod pcap;
mod port;
mod queue;
mod rate;
mod stamp;
mod tap;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod xdp;

pub use arena::Arena;
pub use capture::Capture;
pub use fault::{Fault, FaultCounters, FaultRates};
pub use memory::{Captured, DEFAULT_STRIDE_BYTES, Generator, Mismatch, Replay, Sink};
pub use pace::Pace;
pub use pages::Pages;
pub use pcap::{FileFormat, PcapReceiver, PcapTransmitter, Problem, ProblemKind};
pub use port::{BATCH, Batch, Frame, Frames, HEADROOM, MAX_FRAME, PortError, Receive, Transmit};
pub use queue::{FrameQueue, Sent};
pub use rate::{Rate, Traffic};
pub use stamp::STAMP_BYTES;
pub use tap::{TapOptions, TapPort, TapReceiver, TapTransmitter};
pub use xdp::{XdpMode, XdpOptions, XdpPort, XdpReceiver, XdpTransmitter};
