// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A `.cnp` text, for the formatter: it changes white space only, and nothing another time.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::format(bytes));
