// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Connections of Redis clients to a store.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::kv_commands(bytes));
