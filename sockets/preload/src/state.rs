// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of a connection, as plain data: the types, their tables, and their locks. Nothing here
//! decides what happens to a connection; the rooms above do.

pub mod backlog;
pub mod connection;
pub mod connections;
pub mod ends;
pub mod holders;
pub mod inside;
pub mod kept;
pub mod progress;
pub mod readers;
pub mod slabs;
pub mod slot;
pub mod table;
