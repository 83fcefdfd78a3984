// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Integration tests of compiled functions: one binary, since each would link the compiler again.

mod examples;
mod guide;
mod library;
mod never_panics;
mod proofs;
mod random_functions;
mod refused;
mod values;
