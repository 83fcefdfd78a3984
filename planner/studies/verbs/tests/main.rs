// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of places.

mod conformance;
mod hostile;
mod limits;
mod processes;
mod simulated;
