// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of compiler and model from outside: one binary, since each is linked anew.

mod local_helpers;
mod model;
mod passes;
mod patterns;
mod profiles;
#[path = "../../../compiler/ebpf/tests/interpreter/program.rs"]
#[allow(dead_code)] // What the interpreter's tests use is more.
mod program;
#[path = "../../../compiler/ebpf/tests/interpreter/wild.rs"]
mod wild;
