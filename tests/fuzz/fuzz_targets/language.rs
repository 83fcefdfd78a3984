// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A `.cnp` text: it compiles, or the compiler reports errors.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::language(bytes));
