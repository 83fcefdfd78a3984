// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod bits;
mod hash;
mod hyperloglog;
mod list;
mod packed;
mod redis;
mod set;
mod stream;
mod table;
mod zset;
