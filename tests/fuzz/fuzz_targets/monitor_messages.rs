// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What members tell the monitor of accelerated sockets, and people ask it.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::monitor_messages(bytes));
