// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The model from outside: images written by hand for each rule of `docs/internals/vliw.md`, those
//! that break
//! one, and programs of eBPF with one instruction in a row, which do what they do in the
//! interpreter.

mod calls;
mod hazards;
mod images;
mod memory;
mod naive;
mod random;
mod rows;
