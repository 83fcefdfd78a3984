// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients of the batched protocol, over TCP and over shared memory.

mod client;
mod model;
