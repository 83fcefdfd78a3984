// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Requests of the memcached protocols, in pieces.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::memcached_request(bytes));
