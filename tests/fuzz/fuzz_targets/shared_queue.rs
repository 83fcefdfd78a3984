// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a hostile side of a shared queue does, and what this side does meanwhile.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::shared_queue(bytes));
