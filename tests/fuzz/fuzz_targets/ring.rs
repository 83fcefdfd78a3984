// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a hostile end of a ring does, and what this end does meanwhile.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::ring(bytes));
