// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A file of initial values and calls, as given to `--init`.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::initial_values(bytes));
