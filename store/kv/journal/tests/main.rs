// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod basics;
mod copies;
mod crashed;
mod crashes;
mod damage;
mod faults;
mod following;
mod installing;
mod state;
