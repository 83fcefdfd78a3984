// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the interpreter's public interface: every instruction against an independent oracle,
//! memory and its bounds, helpers, maps that programs use, and random programs.

mod arithmetic;
mod calls;
mod jumps;
mod memory;
mod packets;
mod random;
mod words;
mod world;
