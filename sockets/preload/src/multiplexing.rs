// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waiting for several descriptors at once: `poll`, `select`, and `epoll_wait` with `epoll_ctl`.
//!
//! These calls move connections out of the kernel and back, and know of listeners that get
//! connections without the kernel, so they lie above what does that. The sets themselves, and what
//! other calls change in them, are [`epoll`](crate::waiting::epoll).

mod control;
mod foreign;
mod listening;
pub mod nested;
pub mod polling;
mod reporting;
mod retiring;
pub mod select;
mod tour;
mod wait;

pub use control::{control, forget_set, register_set};
pub use foreign::{is_passed, is_registered_elsewhere};
pub use wait::wait;
