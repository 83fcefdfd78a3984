// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A method call, as given to `--call`.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::call(bytes));
