// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Nodes of a cluster, as their clients see them.

mod batched;
mod beside_redis;
mod nodes;
mod programs;
mod redirects;
mod reports;
