// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of objects on all targets: one binary, since each would link libbpf again.

mod every_length;
mod facts_hold;
mod interpreter_agrees_with_kernel;
mod maps;
#[path = "../../vliw/tests/model/naive.rs"]
mod naive;
mod native;
mod network;
mod objects;
mod random_programs;
mod schedules_hold;
mod vliw_agrees_with_interpreter;
mod vliw_model;
mod vliw_profiled;
