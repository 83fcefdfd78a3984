// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arbitrary bytes do no harm.

use super::protocol::examples::examples;
use super::requests::Requests;
use fastrand::Rng;
use freeport_kv_items::serve_untrusted;
use freeport_testbed::{seed, usual_or_long};

#[test]
fn arbitrary_bytes_are_served() {
    let examples: Vec<Vec<u8>> = examples().into_iter().map(|example| example.requests).collect();
    for seed in seed()..seed() + usual_or_long(3_000, 200_000) {
        let mut requests = Requests { rng: Rng::with_seed(seed), is_for_original: false };
        let mut bytes = examples[requests.rng.usize(0..examples.len())].clone();
        (0..10).for_each(|_| requests.push(&mut bytes, 20));
        let rng = &mut requests.rng;
        for _ in 0..rng.usize(0..20) {
            let at = rng.usize(0..bytes.len());
            bytes[at] = if rng.bool() { rng.u8(..) } else { b"\r\n 0"[rng.usize(0..4)] };
        }
        serve_untrusted(&bytes);
    }
    assert_eq!(serve_untrusted(b"version\r\nversion\r\n"), b"VERSION 1.6.18\r\n".repeat(2));
    assert_eq!(serve_untrusted(b""), b"");
}
