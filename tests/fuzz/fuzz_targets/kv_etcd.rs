// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Answers of etcd to nodes of a key-value cluster.
#![no_main]

use freeport_tests::untrusted;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| untrusted::kv_etcd(bytes));
