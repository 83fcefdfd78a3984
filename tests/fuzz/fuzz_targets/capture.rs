// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A capture file, pcap or pcapng: frames, and errors in the rest.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::capture(bytes));
