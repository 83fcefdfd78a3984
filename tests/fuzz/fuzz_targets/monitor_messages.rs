// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of members and questions of users to the monitor of accelerated sockets.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::monitor_messages(bytes));
