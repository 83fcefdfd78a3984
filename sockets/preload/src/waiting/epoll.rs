// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of descriptors (`epoll`). They are the kernel's, and sockets whose streams are in rings are
//! looked at before the kernel is asked.
//!
//! Such a socket is *active* while its ring is looked at, and *parked* while its sleep is
//! announced and the kernel reports its doorbells. A thread that is about to sleep parks all active
//! sockets, with one barrier, and looks once more. A socket that the kernel reports becomes active
//! again, unless another thread sleeps on the set, which would not look. So the cost of a wait
//! grows with the number of busy sockets, not of all.

pub mod boards;
pub mod changes;
mod closing;
mod foreign;
mod numbers;
mod one_shot;
pub mod registration;
pub mod set;
pub mod sharing;

pub use changes::{
    continues_as, has_attached, has_left, has_news, has_room, has_switched, look_again,
    waits_for_room,
};
pub use closing::{forget_stream, leaves_to_others, loses_descriptor};
pub use foreign::{has_come, has_foreign};
