// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of the batched protocol, over TCP and over shared memory.

mod beside_resp;
pub mod client;
mod greetings;
mod killed_servers;
mod limits;
mod malformed;
mod model;
mod persistence;
mod processes;
mod reports;
