// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the model's public interface: hand-written images for each rule of
//! `docs/internals/vliw.md`, images that violate one, and programs of eBPF with one instruction in
//! a row, which behave as in the interpreter.

mod calls;
mod hazards;
mod images;
mod memory;
mod naive;
mod random;
mod rows;
