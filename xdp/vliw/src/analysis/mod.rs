// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts about regions that both the passes and the scheduler use: the registers and the bytes of
//! the frame that are live at the start of a region, and the values that a jump passes to the next
//! region for them. The pass `dead` computes the former.

mod live;
mod passed;

pub use live::Live;
pub use passed::passed;
