// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and its clients, on loopback.

mod basics;
mod batched;
mod beside_redis;
mod blocking;
mod client;
mod clients;
mod cluster;
mod configuration;
mod crash;
mod datagrams;
mod ending;
mod eviction;
mod expiry;
mod failover;
mod functions;
mod history;
mod idle;
mod memory;
mod moving;
mod nodes;
mod persistence;
mod pubsub;
mod refusals;
mod replication;
mod reports;
mod routing;
mod scripts;
mod slow;
mod tls;
mod tracking;
mod users;
mod users_beside_redis;
mod vanishing;
mod workers;
