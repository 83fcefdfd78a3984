// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod batch;
mod expiry;
mod image;
mod memory;
mod model;
mod operations;
mod store;
mod transfer;
