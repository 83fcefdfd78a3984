// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The two oracles of the compiler: generated functions against plain C, and generated programs
//! against the interpreter.

pub mod batch;
pub mod c_oracle;
pub mod functions;
pub mod graphs;
pub mod writer;
