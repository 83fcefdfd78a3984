// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder of a key-value server's journal.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::kv_journal(bytes));
