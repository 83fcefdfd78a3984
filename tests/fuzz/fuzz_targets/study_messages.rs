// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages of the case studies.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::study_messages(bytes));
