// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Comparisons with an installed memcached 1.6.18: the examples, limits of lines and items, and
//! random pipelines, most of them malformed.

use super::examples::examples;
use super::model::Model;
use super::original::Server;
use super::pipelines::pipeline;
use fastrand::Rng;
use freeport_testbed::{seed, usual_or_long};

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn examples_are_those_of_the_original() {
    let Some(server) = Server::start() else { return };
    for example in examples() {
        let replies = server.ask(&example.requests, example.is_closed);
        let shown = String::from_utf8_lossy(&example.requests);
        let expected = String::from_utf8_lossy(&example.replies);
        assert_eq!(String::from_utf8_lossy(&replies), expected, "{shown:?}");
    }
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn limits_are_those_of_the_original() {
    let Some(server) = Server::start() else { return };
    let mut pipelines = vec![];
    // Lines without an end, and with one that comes late.
    for length in [2_047, 2_048] {
        pipelines.push("delete ".to_owned() + &"k".repeat(length - 7));
        pipelines.push("delete ".to_owned() + &"k".repeat(length - 7) + "\n");
    }
    for begin in ["delete ", "getx ", &(" ".repeat(101) + "get ")] {
        pipelines.push(begin.to_owned() + &"k".repeat(2_049 - begin.len()));
    }
    for keys in [3_000, 30_000] {
        pipelines.push("get ".to_owned() + &"key ".repeat(keys) + "\r\n");
        pipelines.push(" ".repeat(100) + "gets " + &"key ".repeat(keys) + "\r\n");
    }
    // Items of the maximum size, and one byte more.
    let longest = (1 << 20) - 59;
    for (line, key_bytes, client_flags_bytes) in [
        ("set k 0 0 ", 1, 0),
        ("set k 1 0 ", 1, 4),
        ("add kkk 0 0 ", 3, 0),
        ("ms k ", 1, 0),
        ("ms Zm9vYmE= ", 5, 0),
    ] {
        for more in [0, 1] {
            let length = longest - key_bytes - client_flags_bytes + more;
            let key = line.split(' ').nth(1).expect("a key");
            let flags = if key.ends_with('=') { " b" } else { "" };
            let value = "v".repeat(length);
            let old = format!("set {key} 0 0 1 noreply\r\nv\r\n");
            let after = format!("mg {key} s{flags}\r\n");
            pipelines.push(format!("{old}{line}{length}{flags}\r\n{value}\r\n{after}"));
        }
    }
    for pipeline in pipelines {
        let mut model = Model::default();
        model.receive(pipeline.as_bytes());
        let replies = server.ask(pipeline.as_bytes(), model.is_closed);
        let shown = &pipeline[..pipeline.len().min(100)];
        let (got, expected) =
            (String::from_utf8_lossy(&model.replies), String::from_utf8_lossy(&replies));
        assert_eq!(got, expected, "{shown:?} of {} bytes", pipeline.len());
    }
}

#[test]
#[ignore = "long: needs memcached 1.6.18"]
fn random_pipelines_have_the_replies_of_the_original() {
    let Some(server) = Server::start() else { return };
    let (first, mut compared) = (seed(), 0);
    let last = first + usual_or_long(3_000, 60_000);
    for seed in first..last {
        let mut rng = Rng::with_seed(seed);
        let mut pipeline = pipeline(&mut rng);
        // A server that closes the connection too early does not reply to these.
        pipeline.extend_from_slice(b"\r\nmn\r\nmn\r\n");
        let mut model = Model::default();
        model.receive(&pipeline);
        if model.refusals.iter().any(|line| is_other_by_intent(line)) {
            continue;
        }
        compared += 1;
        let replies = server.ask(&pipeline, model.is_closed);
        // The original drops replies that it has not sent when a connection is closed, by itself
        // or by the client amid a value.
        let is_whole = !model.is_closed && model.replies.ends_with(b"MN\r\nMN\r\n");
        let same =
            if is_whole { model.replies == replies } else { model.replies.starts_with(&replies) };
        let [sent, replies, expected] =
            [&pipeline, &model.replies, &replies].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(same, "FREEPORT_SEED={seed}: {sent:?}\n has {replies:?}\n not {expected:?}");
    }
    assert!(compared > (last - first) / 2, "only {compared} pipelines could be compared");
}

/// Returns whether the refusal of a line differs from the original: its base64 may be refused only
/// here, and there a retrieval with a long key removes replies to earlier requests.
fn is_other_by_intent(line: &str) -> bool {
    let is_long_get = || line.split(' ').any(|word| word.len() > 250) && line.contains("ga");
    line.contains(" b") || line.trim_start().starts_with("get") || is_long_get()
}
