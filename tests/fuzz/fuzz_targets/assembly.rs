// SPDX-License-Identifier: Apache-2.0 OR MIT
//! BPF instructions as assembly text.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::assembly(bytes));
