// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

/// Parts of the tests of the protocol: examples, a model, an installed server.
#[path = "../../protocol/tests/memcached"]
mod protocol {
    pub mod examples;
    pub mod model;
    pub mod original;
    pub mod pipelines;
}

mod client;
mod examples;
mod full;
mod model;
mod original;
mod pauses;
mod reports;
mod requests;
mod speed;
mod time;
mod untrusted;
