// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod aligned;
mod background;
mod conservation;
mod exhausted;
mod fragmentation;
mod merging;
mod shadow;
mod speed;
mod traffic;
