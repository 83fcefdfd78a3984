// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of replicated files.

mod chunks;
mod cluster;
mod deaths;
mod faulty;
mod identity;
mod processes;
mod rows;
mod ways;
