// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The applications of `examples/` as gateways: real traffic of unmodified programs on separate
//! hosts, with the running command between them.

mod balancer;
mod documented;
mod firewall;
mod network;
mod overlay;
mod traffic;
