// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Chain replication of file writes, as in the case study of the off-path SmartNIC study (OSDI
//! 2023): a file system writes a log, and chunks of the log go to a chain of backups.
//!
//! The places are the host with the file system ([`Primary`]), the processor of its NIC
//! ([`Processor`]), and backups on other machines ([`Backup`]). A chunk has three ways: the
//! processor reads it from the host through the NIC cores (A1) or by DMA (A2), compresses it and
//! sends it; or the host sends it itself (A3). Any place may die at any moment and begin anew with
//! its file.

#![forbid(unsafe_code)]

pub mod backup;
pub mod chunk;
mod codec;
pub mod entry;
pub mod files;
mod gate;
pub mod history;
pub mod log;
mod message;
pub mod model;
pub mod node;
pub mod options;
pub mod primary;
pub mod processor;
mod sender;

pub use backup::Backup;
pub use codec::Compression;
pub use files::Files;
pub use options::{Alternative, Costs, Options, Policy, Work};
pub use primary::{Client, Counters, Primary, WriteError};
pub use processor::Processor;
