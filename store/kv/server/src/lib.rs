// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A key-value server for clients of Redis and memcached, and of the batched protocol.
//!
//! A [`Server`] has one or more workers, threads that share nothing on an operation's path. Each
//! owns the shard with a part of the hash slots, and serves some of the connections. A command goes
//! to the shards that have its keys:
//!
//! - its own worker executes it, if that has them all;
//! - commands with one key of another worker are sent there, many in one message;
//! - for every other command, its worker borrows the shards that it lacks. It has them all when it
//!   executes the command, so that no client ever sees half of it.
//!
//! One thread is enough for clients that use one core; with one worker no message is ever sent.

#![forbid(unsafe_code)]

mod access;
mod census;
mod channels;
mod client;
mod clients;
mod cluster;
mod commands;
mod configuration;
mod connection;
mod datagrams;
mod error;
mod fabric;
pub mod inspection;
mod listener;
mod loading;
mod mail;
mod metrics;
mod moving;
mod numbered;
mod options;
mod persistence;
mod rates;
mod replication;
mod scripting;
mod server;
mod shared;
mod slow_log;
mod statistics;
mod tls;
mod tracking;
mod worker;

pub use census::Census;
pub use cluster::{ClusterOptions, IdentityError};
pub use error::ServerError;
pub use freeport_kv_journal::{Policy, Progress, Recovered};
pub use options::{Bind, EvictionPolicy, Options};
pub use persistence::{PersistenceOptions, Recovery};
pub use replication::ReplicationOptions;
pub use server::{Server, Stopper};
pub use tls::{ClientCertificates, TlsError, TlsOptions, files as tls_files};
