// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interpreter from outside: every instruction against an oracle of its own, memory and its
//! bounds, helpers, maps that programs use, and programs at random.

mod arithmetic;
mod calls;
mod jumps;
mod memory;
mod packets;
mod random;
mod words;
mod world;
