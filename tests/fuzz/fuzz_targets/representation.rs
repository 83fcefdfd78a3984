// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An `.ir` text: a program, sound or not, or an error with its location.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::representation(bytes));
