// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A line from a client of a running program.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::request(bytes));
