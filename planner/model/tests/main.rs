// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the model.

mod bounds;
mod estimates;
mod machines;
mod profiles;
mod random_loads;
mod rows;
mod sessions;
