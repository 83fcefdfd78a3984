// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runtime for packet programs: the devices that run a program between ports, and the manager that
//! controls them.

pub mod clock;
pub mod cpu;
pub mod device;
#[cfg(test)]
mod device_conformance;
pub mod interpreter;
pub mod layout;
pub mod layouts;
pub mod placement;
#[cfg(test)]
mod programs;
pub mod replace;
mod ring;
pub mod server;
pub mod signal;
pub mod stats;
pub mod steering;
pub mod workers;
