// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod batch;
mod memcached;
mod replication;
mod resp;
