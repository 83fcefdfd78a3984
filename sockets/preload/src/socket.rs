// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How sockets begin and end: opening, copying, shutting down, and closing them.

pub mod closing;
pub mod disconnecting;
pub mod inside;
pub mod lingering;
pub mod opening;
pub mod shutting;
pub mod unix;
