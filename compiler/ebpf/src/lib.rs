// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs as compilers make them: [`object`] reads an ELF file into linked programs and map
//! definitions, [`instruction`] says what each 64-bit slot means, and [`interpreter`] runs them
//! with [`maps`] and [`helper_functions`] as the kernel would. [`refusal`] is the check that all
//! targets make before. [`analysis`] finds out beforehand what a program does with its registers
//! and with memory, and [`lift`] makes packet programs of the shared representation of that.
//! [`abi`] has the numbers that the kernel fixes. `run` is what a packet's run consists of; helpers
//! work on it, and the interpreter executes programs on it.

#![forbid(unsafe_code)]

pub mod abi;
pub mod analysis;
pub mod conformance;
pub mod helper_functions;
pub mod instruction;
pub mod interpreter;
pub mod lift;
pub mod maps;
pub mod object;
pub mod refusal;
mod run;
