// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of the simulated card: one binary, since each would link the whole card again.

mod benches;
mod every_length;
mod lanes;
mod lint;
#[path = "../../targets/tests/network/mod.rs"]
mod network;
#[path = "../../targets/tests/objects.rs"]
mod objects;
mod programs_on_several_cores;
mod queues_beside_tables;
mod random_programs;
mod random_programs_everywhere;
mod rtl_agrees_with_interpreter;
mod rtl_agrees_with_kernel;
mod scenarios;
mod several_cores;
mod smallest;
mod stopped;
mod streams;
#[path = "../src/verilator.rs"]
mod verilator;
mod where_cycles_go;
mod while_packets_flow;
