// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies that are longer than the output may be come in parts, and are the same altogether.

use super::client::{BEGIN, Client};
use super::requests::Requests;
use fastrand::Rng;
use freeport_kv_items::{Connection, Next, Options};
use freeport_testbed::{seed, usual_or_long};

#[test]
fn a_long_retrieval_is_sent_in_parts() {
    let options = Options { output_bytes: 10_000, ..Options::default() };
    let mut client = Client::new(options);
    client.ask(&format!("set k 0 0 5000\r\n{}\r\n", "v".repeat(5_000)));
    let mut connection = Connection::new(client.items.options().limits);
    for name in ["get", "gets", "gat 100"] {
        let line = format!("{name}{}\r\nmn\r\n", " k none".repeat(1_000));
        let (mut begin, mut replies, mut calls) = (0, 0, 0);
        loop {
            let mut output = vec![];
            let received = &line.as_bytes()[begin..];
            let served = client.items.serve(&mut connection, received, BEGIN, &mut output);
            begin += served.taken;
            replies += output.len();
            calls += 1;
            assert!(output.len() < 16_000, "one value more at most");
            if served.next != Next::Send {
                assert!(output.ends_with(b"END\r\nMN\r\n"));
                break;
            }
        }
        assert!(calls >= 500, "{calls}");
        assert!(replies > 5_000_000, "{replies}");
        assert_eq!(begin, line.len());
    }
}

#[test]
fn parts_are_the_whole() {
    let mut requests = Requests { rng: Rng::with_seed(seed()), is_for_original: false };
    let mut whole = Client::default();
    let mut others: Vec<Client> = [1, 100, 3_000]
        .map(|output_bytes| Client::new(Options { output_bytes, ..Options::default() }))
        .into();
    for cas in 0..usual_or_long(3_000, 50_000) {
        let mut sent = vec![];
        for _ in 0..requests.rng.u32(1..40) {
            match requests.rng.u8(0..5) {
                0 => {
                    let number = requests.rng.usize(0..200);
                    let name = ["get", "gets", "gat 900"][requests.rng.usize(0..3)];
                    let keys: String =
                        (0..=number).map(|key| format!(" key{}", key % 20)).collect();
                    sent.extend_from_slice(format!("{name}{keys}\r\n").as_bytes());
                }
                _ => requests.push(&mut sent, cas * 8),
            }
        }
        let cut = requests.rng.usize(0..=sent.len());
        let expected = whole.receive(&sent);
        for client in &mut others {
            let mut replies = client.receive(&sent[..cut]);
            replies.extend(client.receive(&sent[cut..]));
            assert!(replies == expected, "{}", String::from_utf8_lossy(&sent));
        }
    }
    for client in &others {
        assert_eq!(client.items.counters(), whole.items.counters());
    }
}
