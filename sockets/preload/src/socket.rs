// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is behind a descriptor, and how that begins and ends.

pub mod connection;
pub mod connections;
pub mod extras;
pub mod inside;
pub mod keeping;
pub mod lingering;
pub mod opening;
pub mod table;
pub mod unix;
