// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the card records of packets and of its stages, as `shim.cpp` lays it out.

/// When a packet was where, in cycles since the card was made.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stamp {
    /// Its first beat was taken.
    pub arrived: u64,
    /// Its last beat was taken.
    pub complete: u64,
    /// Its program's first row was fetched.
    pub began: u64,
    /// Its verdict was there.
    pub done: u64,
    /// The core that it went to.
    pub core: u64,
}

/// What was on the wires with a packet that left.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tags {
    /// The verdict.
    pub verdict: u32,
    /// Why its program was stopped, 0 if it was not.
    pub stop: u32,
    /// Bytes of metadata in front.
    pub metadata: u32,
    /// The map that it is redirected with, or `0xffff_ffff`.
    pub map: u32,
    /// The key of that map, or a device.
    pub key: u32,
    /// The device by which it came.
    pub ifindex: u32,
    /// Bytes in all.
    pub length: u32,
    /// The cycle of its first beat.
    pub first: u64,
    /// The cycle of its last beat.
    pub last: u64,
}

/// Which rows the core has in its stages in a cycle, and what becomes of them there.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moment {
    /// The cycle since the card was made.
    pub cycle: u64,
    /// What happens, by bits: see [`event`](crate::event).
    pub events: u32,
    /// Row in fetch, if there is one.
    pub fetch: u16,
    /// Row in decode, if there is one.
    pub decode: u16,
    /// Row in execute, if there is one.
    pub execute: u16,
    /// Nothing: the fields before fill no whole words.
    pub unused: u16,
}
