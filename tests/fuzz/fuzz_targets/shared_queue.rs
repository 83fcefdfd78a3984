// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A hostile side of a shared queue, against operations of this side.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::shared_queue(bytes));
