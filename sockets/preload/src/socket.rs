// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is behind a descriptor, and how that begins and ends.

pub mod inside;
pub mod lingering;
pub mod opening;
pub mod unix;
