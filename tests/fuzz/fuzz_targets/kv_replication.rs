// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Frames between a key-value server and its follower.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::kv_replication(bytes));
