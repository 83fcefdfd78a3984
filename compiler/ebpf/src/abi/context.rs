// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The context of a program (`struct xdp_md`): byte offsets of its fields. Each field has four
//! bytes and is read as a whole.

/// Address of the packet's first byte.
pub const DATA: u64 = 0;
/// Address after the packet's last byte.
pub const DATA_END: u64 = 4;
/// Address of the first byte of the metadata.
pub const DATA_META: u64 = 8;
/// Number of the ingress device.
pub const INGRESS_IFINDEX: u64 = 12;
/// Number of the receive queue.
pub const RX_QUEUE_INDEX: u64 = 16;
/// Number of the egress device, for programs of a devmap.
pub const EGRESS_IFINDEX: u64 = 20;

/// Size of all fields in bytes.
pub const CONTEXT_BYTES: u64 = 24;
