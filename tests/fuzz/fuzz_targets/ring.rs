// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A hostile peer of a ring, against operations of this end.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::ring(bytes));
