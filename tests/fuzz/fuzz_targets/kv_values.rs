// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Snapshots of values of a key-value store.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::kv_values(bytes));
