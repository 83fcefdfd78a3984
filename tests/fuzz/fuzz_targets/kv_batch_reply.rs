// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets of replies in the batched protocol.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::kv_batch_reply(bytes));
