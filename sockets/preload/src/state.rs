// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of connections, as plain data: the types, their tables, and their locks. The rooms
//! above decide what happens to a connection. Two things are done here: slabs are mapped and
//! unmapped, and a connection whose ring was lost with another process is ended ([`ends`]).

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
