// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The context of a program (`struct xdp_md`): where its fields begin, in bytes. Each field has
//! four bytes, and is read whole.

/// Address of the packet's first byte.
pub const DATA: u64 = 0;
/// Address behind the packet's last byte.
pub const DATA_END: u64 = 4;
/// Address of the first byte of the metadata.
pub const DATA_META: u64 = 8;
/// Number of the device that the packet came from.
pub const INGRESS_IFINDEX: u64 = 12;
/// Number of the queue that the packet came from.
pub const RX_QUEUE_INDEX: u64 = 16;
/// Number of the device that the packet leaves at, for programs of a devmap.
pub const EGRESS_IFINDEX: u64 = 20;

/// Bytes of all fields.
pub const CONTEXT_BYTES: u64 = 24;
