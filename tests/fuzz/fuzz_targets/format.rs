// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A `.cnp` text for the formatter, which changes white space only and is idempotent.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::format(bytes));
