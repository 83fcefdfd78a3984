// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records of packets and stages, in the layout of `shim.cpp`.

/// Times of a packet's events, in cycles since the card was created.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Its first beat was taken.
    pub arrived: u64,
    /// Its last beat was taken.
    pub complete: u64,
    /// The first row of its program was fetched.
    pub began: u64,
    /// Its verdict was decided.
    pub done: u64,
    /// Core to which it was dispatched.
    pub core: u64,
}

/// Sideband signals of a packet that left.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tags {
    /// Verdict.
    pub verdict: u32,
    /// Reason for which its program was stopped; 0 if it was not.
    pub stop: u32,
    /// Number of bytes of metadata before the packet.
    pub metadata: u32,
    /// Map of its redirection, or `0xffff_ffff`.
    pub map: u32,
    /// Key in that map, or a device.
    pub key: u32,
    /// Ingress device.
    pub ifindex: u32,
    /// Total number of bytes.
    pub length: u32,
    /// Cycle of its first beat.
    pub first: u64,
    /// Cycle of its last beat.
    pub last: u64,
}

/// Rows in the stages of the core in a cycle, and what happens to them.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// Cycle since the card was created.
    pub cycle: u64,
    /// Events, as a bit mask: see [`event`](crate::event).
    pub events: u32,
    /// Row in fetch, if there is one.
    pub fetch: u16,
    /// Row in decode, if there is one.
    pub decode: u16,
    /// Row in execute, if there is one.
    pub execute: u16,
    /// Padding to a whole word.
    pub unused: u16,
}
