// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of commands, most of them beside an installed redis-server 7.0.

mod collections;
mod generic;
mod generic_beside_redis;
mod generic_effects;
mod harness;
mod hashes;
mod lists;
mod sets;
mod strings;
