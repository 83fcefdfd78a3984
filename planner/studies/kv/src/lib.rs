// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key-value store on a machine whose NIC has a processor of its own: index and items are in the
//! host's memory, a second index and hot items in the processor's. The host's cores do nothing.
//!
//! A get takes one of several [ways](alternative::Alternative), which the study of off-path
//! SmartNICs (OSDI 2023) calls A1 to A5. All of them work at the same time, and together they are
//! linearizable, because puts change memory in one [order](layout::ORDER). The code is generic over
//! [`Verbs`](freeport_study_verbs::Verbs) and runs on a simulated machine as between processes.

#![forbid(unsafe_code)]

pub mod alternative;
pub mod blocks;
pub mod cache;
pub mod client;
pub mod entry;
pub mod error;
pub mod frequency;
pub mod item;
pub mod layout;
pub mod locks;
pub mod lookup;
pub mod message;
pub mod peaks;
pub mod reader;
pub mod server;
pub mod workload;

pub use alternative::Alternative;
pub use client::Client;
pub use error::KvError;
pub use layout::{LimitError, ORDER, Options, Step};
pub use server::Server;
