// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A small network of real kernel network stacks, for tests and measurements: hosts, each in its
//! own namespace, links between them, and programs on them that use ordinary sockets.
//!
//! Addresses, routes and neighbours are configured explicitly, in the syntax of `ip`. Everything is
//! removed with the values here: namespaces with their last descriptor, even if the process is
//! killed, and servers and programs when they are dropped.

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
