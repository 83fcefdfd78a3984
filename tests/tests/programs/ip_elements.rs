// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements of IP, ICMP and what IP carries, against models whose wire formats, checksums and
//! answers are those of smoltcp: whole packets, cut at every length, and changed at random.

mod errors;
mod frames;
mod options;
mod pings;
mod rewriting;
mod stack;
mod transport;
mod version6;
