// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of IP, ICMP and what IP carries, against models whose wire formats, checksums and
//! answers are those of smoltcp: whole packets, cut at every length, and changed at random.

#[path = "ip_elements/errors.rs"]
mod errors;
#[path = "ip_elements/frames.rs"]
mod frames;
#[path = "ip_elements/pings.rs"]
mod pings;
#[path = "ip_elements/rewriting.rs"]
mod rewriting;
#[path = "ip_elements/stack.rs"]
mod stack;
#[path = "ip_elements/transport.rs"]
mod transport;
#[path = "ip_elements/version6.rs"]
mod version6;
