// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs as compilers produce them: [`object`] parses an ELF file into linked programs and
//! map definitions, [`instruction`] decodes each 64-bit slot, and [`interpreter`] runs the programs
//! with [`maps`] and [`helper_functions`] as the kernel would. [`refusal`] checks what all targets
//! require before. [`analysis`] determines statically what a program does with its registers and
//! with memory, and [`lift`] uses this to produce packet programs in the shared representation.
//! [`abi`] has the numbers that the kernel defines. `run` is the state of a run on a packet;
//! helpers modify it, and the interpreter executes programs on it.

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
