// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod conformance;
mod etcd;
mod file;
mod fixture;
mod memory;
mod patient;
mod proxy;
mod url;
