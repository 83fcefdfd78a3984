// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the public interface of objects, maps and the interpreter: one binary, since each is
//! linked separately.

mod interpreter;
mod maps;
mod objects;
#[path = "interpreter/program.rs"]
mod program;
#[path = "interpreter/wild.rs"]
mod wild;
