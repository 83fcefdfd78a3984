// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Elements for IP, ICMP and the protocols above, against models that use smoltcp's wire formats,
//! checksums and answers: whole packets, truncated at every length, and changed at random.

mod errors;
mod frames;
mod options;
mod pings;
mod rewriting;
mod stack;
mod transport;
mod version6;
