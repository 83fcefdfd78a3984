// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections of memcached clients to a server.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::memcached_server(bytes));
