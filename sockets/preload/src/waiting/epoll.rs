// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sets of descriptors (`epoll`): the kernel's, with the sockets whose streams are in rings looked
//! at before the kernel is asked.
//!
//! Such a socket is *active* while its ring is looked at, and *parked* while its sleep is
//! announced and the kernel reports its doorbells. Who is about to sleep parks all that are
//! active, with one barrier, and looks once more. What the kernel reports becomes active again,
//! unless another thread sleeps on the set, which would not look. So the cost of a wait grows with
//! the sockets that are busy, not with those that there are.

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
    goes_on_as, has_attached, has_left, has_news, has_room, has_switched, look_again,
    waits_for_room,
};
pub use closing::{forget_stream, leaves_to_others, loses_descriptor};
pub use foreign::{has_come, has_foreign};
