// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the public interface of compiler and model: one binary, since each is linked
//! separately.

mod local_helpers;
mod model;
mod passes;
mod patterns;
mod profiles;
#[path = "../../../compiler/ebpf/tests/interpreter/program.rs"]
#[allow(dead_code)] // The interpreter's tests use more of it.
mod program;
#[path = "../../../compiler/ebpf/tests/interpreter/wild.rs"]
mod wild;
