// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small network of real kernels' stacks, for tests and measurements: hosts, each in a namespace
//! of its own, links between them, and programs on them that use sockets as any program does.
//!
//! Addresses, routes and neighbours are given by hand, as `ip` reads them. Nothing outlives the
//! values here: namespaces go with the last descriptor, even if the process is killed, and what
//! serves or runs ends when it is dropped.

pub mod bulk;
pub mod datagram;
pub mod echo;
mod freeport;
mod host;
pub mod http;
mod link;
mod offload;
mod service;
#[cfg(test)]
mod tests;
mod wait;

pub use freeport::{Freeport, Launch};
pub use host::Host;
pub use link::{End, join};
pub use service::Service;
pub use wait::{PATIENCE, until};
