// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel fixes between itself and a program, apart from the instructions: verdicts, the
//! layout of the context, and the sizes of frames and packets. The interpreter, the analysis and
//! the lifting read the same numbers.

pub mod context;
pub mod verdict;

/// Bytes of the stack frame of a function.
pub const FRAME_BYTES: usize = 512;
/// Frames of functions that call each other, at most.
pub const FRAMES_MAX: usize = 8;

/// Bytes before a packet, as the kernel's drivers and its test run leave.
pub const HEAD_ROOM: usize = 256;
/// Bytes of a page that a packet, its head room and its tail room share.
pub const PAGE_BYTES: usize = 4_096;
/// Bytes at the end of a page that the kernel needs for itself (`skb_shared_info`).
pub const SHARED_INFO_BYTES: usize = 320;
/// Bytes at the start of the head room that the kernel needs for itself (`xdp_frame`).
pub const XDP_FRAME_BYTES: usize = 40;
/// Longest packet in bytes.
pub const PACKET_MAX: usize = 65_535;
/// Bytes of an Ethernet header, the least that is left of a packet.
pub const ETHERNET_BYTES: usize = 14;
/// Where a packet that comes with no more ends at most, in bytes from where it began.
pub const END_MAX: u64 = (PAGE_BYTES - SHARED_INFO_BYTES - HEAD_ROOM) as u64;
