// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of objects, maps and the interpreter from outside: one binary, since each is linked anew.

mod interpreter;
mod maps;
mod objects;
#[path = "interpreter/program.rs"]
mod program;
#[path = "interpreter/wild.rs"]
mod wild;
