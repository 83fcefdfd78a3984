// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the store.

mod delayed;
mod gets;
mod histories;
mod misses;
mod model;
mod peaks;
mod processes;
mod stores;
