// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the memcached protocols.

mod examples;
mod model;
mod original;
mod pieces;
mod pipelines;
mod replies;
mod round_trip;
mod server;
mod speed;
