// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the crate as its users see it.

mod filters;
mod model;
mod reductions;
mod registry;
mod speed;
mod untrusted;
mod updates;
mod users;
