// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A client of the key-value server, for programs with many small operations.
//!
//! A [`Client`] sends a [`Batch`] of operations in few packets, several of them at a time, over a
//! connection to each worker of the server, and returns the [`Replies`] in the order of the batch.
//! A [`ClusterClient`] does so with the nodes of a cluster, each of which has some of the keys. A
//! [`Pipeline`] is one such connection, for programs that decide themselves when to wait.
//!
//! The protocol is the [batched one](freeport_kv_protocol::batch), over TCP, over UDP, or over
//! memory that the server shares with processes of the same machine. Calls block; there are no
//! threads.

#![forbid(unsafe_code)]

mod address;
mod batch;
mod client;
mod cluster;
mod connection;
mod datagrams;
mod error;
mod function;
mod inbox;
mod number;
mod options;
mod owners;
mod pipeline;
mod replies;
mod stream;
mod transport;

pub use address::{Address, InvalidAddress};
pub use batch::Batch;
pub use client::Client;
pub use cluster::ClusterClient;
pub use error::{Error, OperationError};
pub use freeport_kv_protocol::batch::{FunctionKind, Opcode, Operation, Reply, Status};
pub use function::Function;
pub use number::Number;
pub use options::Options;
pub use pipeline::{Pipeline, Received};
pub use replies::Replies;
