// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Behaviour of library programs and generated programs on all engines. They are one test binary,
//! so that they are linked once and run concurrently.

mod balancer;
mod elements;
mod exact_table;
mod firewall;
mod flow_cache;
mod functions_agree_with_c;
mod ip_elements;
mod library_agrees_with_interpreter;
mod link_elements;
mod native_agrees_with_interpreter;
mod neighbours;
mod packet_elements;
mod plumbing;
mod prefetch;
mod prefix_table;
mod rate_limiter;
mod recorder;
mod replacement;
#[path = "../../../compiler/native/tests/native/replay/mod.rs"]
mod replay;
mod shaper;
mod sources;
mod traces;
mod traffic;
mod tunnels;
mod wildcard_tables;
mod workers;
