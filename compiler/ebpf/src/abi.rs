// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ABI between the kernel and a program, apart from the instructions: verdicts, the layout of
//! the context, and the sizes of frames and packets. Interpreter, analysis and lifting share these
//! numbers.

pub mod context;
pub mod verdict;

/// Bytes of the stack frame of a function.
pub const FRAME_BYTES: usize = 512;
/// Maximum depth of nested function frames.
pub const FRAMES_MAX: usize = 8;

/// Bytes of head room before a packet, as in the kernel's drivers and its test run.
pub const HEAD_ROOM: usize = 256;
/// Bytes of a page that a packet, its head room and its tail room share.
pub const PAGE_BYTES: usize = 4_096;
/// Bytes at the end of a page that the kernel reserves for itself (`skb_shared_info`).
pub const SHARED_INFO_BYTES: usize = 320;
/// Bytes at the start of the head room that the kernel reserves for itself (`xdp_frame`).
pub const XDP_FRAME_BYTES: usize = 40;
/// Longest packet in bytes.
pub const PACKET_MAX: usize = 65_535;
/// Bytes of an Ethernet header, the shortest length to which a packet can be cut.
pub const ETHERNET_BYTES: usize = 14;
/// Largest offset of a packet's end from its original start, for a packet that fits its page.
pub const END_MAX: u64 = (PAGE_BYTES - SHARED_INFO_BYTES - HEAD_ROOM) as u64;
