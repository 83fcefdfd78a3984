// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reference interpreter: it defines what a program means.

mod eval;

pub use eval::eval_pure;
