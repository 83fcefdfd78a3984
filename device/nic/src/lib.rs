// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runtime for packet programs: the ports that frames enter and leave by, the devices that hold a
//! program, and the manager that controls them.

pub mod bpf;
pub mod clock;
pub mod cpu;
pub mod device;
#[cfg(test)]
mod device_conformance;
pub mod interpreter;
pub mod layout;
pub mod layouts;
pub mod namespace;
pub mod packet;
pub mod placement;
pub mod port;
#[cfg(test)]
mod programs;
pub mod replace;
mod ring;
pub mod server;
pub mod signal;
pub mod stats;
pub mod steering;
pub mod trace;
pub mod workers;
