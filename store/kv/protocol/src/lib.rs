// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wire formats of a key-value server, as readers and writers of bytes, apart from sockets and
//! commands.

#![forbid(unsafe_code)]

pub mod base64;
pub mod batch;
pub mod memcached;
pub mod replication;
pub mod resp;
pub mod slots;
