// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the representation: one binary, since each binary would compile the generic code again.

mod async_extraction;
mod documents;
mod freeze;
mod interp;
mod passes;
mod passes_preserve;
mod schedule;
mod text;
mod verify;
