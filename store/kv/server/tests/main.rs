// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A server and its clients, on loopback.

mod basics;
mod beside_redis;
mod clients;
mod configuration;
mod harness;
mod reports;
