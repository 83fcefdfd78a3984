// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random patterns against a real server.

use crate::server::{Reply, Server};
use freeport_kv_types::pattern::{matches, matches_ignoring_case};
use freeport_testbed::usual_or_long;

fn command(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| part.to_string()).collect()
}

fn draw(random: &mut fastrand::Rng, letters: &[u8], most: usize) -> String {
    let length = random.usize(1..=most);
    (0..length).map(|_| char::from(letters[random.usize(..letters.len())])).collect()
}

/// The texts of a reply, in alphabetical order.
fn texts(reply: Reply) -> Vec<String> {
    let Reply::Array(parts) = reply else { panic!("{reply:?} is no array") };
    let text = |part| match part {
        Reply::Text(text) => text,
        other => panic!("{other:?} is no text"),
    };
    let mut texts: Vec<String> = parts.into_iter().map(text).collect();
    texts.sort();
    texts
}

#[test]
#[ignore = "long: needs redis-server"]
fn patterns_match_keys_as_on_a_server() {
    let Some(mut server) = Server::start() else { return };
    let mut random = fastrand::Rng::with_seed(1);
    let mut keys: Vec<String> =
        (0..300).map(|_| draw(&mut random, b"abc-]^\\*", 5)).chain(["".to_string()]).collect();
    keys.sort();
    keys.dedup();
    for key in &keys {
        assert_eq!(server.run(&command(&["SET", key, "1"])), Reply::Text("OK".into()));
    }
    for _ in 0..usual_or_long(5_000, 100_000) {
        let pattern = draw(&mut random, b"aabc*?[]^\\-", 8);
        // The server lists all keys for this pattern, without a match.
        if pattern == "*" {
            continue;
        }
        let found = texts(server.run(&command(&["KEYS", &pattern])));
        let is_expected = |key: &&String| matches(pattern.as_bytes(), key.as_bytes());
        let expected: Vec<String> = keys.iter().filter(is_expected).cloned().collect();
        assert_eq!(expected, found, "pattern {pattern:?}");
    }
}

/// Settings of a server are found without regard to case.
#[test]
#[ignore = "long: needs redis-server"]
fn patterns_match_settings_as_on_a_server() {
    let Some(mut server) = Server::start() else { return };
    let names_of = |reply| -> Vec<String> {
        let Reply::Array(parts) = reply else { panic!("{reply:?} is no array") };
        let mut names = texts(Reply::Array(parts.into_iter().step_by(2).collect()));
        names.dedup();
        names
    };
    let names = names_of(server.run(&command(&["CONFIG", "GET", "*"])));
    assert!(names.len() > 100);
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..usual_or_long(5_000, 100_000) {
        let name = &names[random.usize(..names.len())];
        let pattern: String = name.chars().map(|letter| mutate(&mut random, letter)).collect();
        // A pattern without special characters is a name, which the server looks up.
        if !pattern.contains(['*', '?', '[']) {
            continue;
        }
        let found = names_of(server.run(&command(&["CONFIG", "GET", &pattern])));
        let is_expected =
            |name: &&String| matches_ignoring_case(pattern.as_bytes(), name.as_bytes());
        let expected: Vec<String> = names.iter().filter(is_expected).cloned().collect();
        assert_eq!(expected, found, "pattern {pattern:?}");
    }
}

/// Replaces a letter by a token that may match it.
fn mutate(random: &mut fastrand::Rng, letter: char) -> String {
    let upper = letter.to_ascii_uppercase();
    match random.u8(0..40) {
        0 => "*".into(),
        1 => "?".into(),
        2 => format!("[{upper}]"),
        3 => format!("[A-{letter}]"),
        4 => format!("[z-{upper}]"),
        5 => format!("[^x{upper}]"),
        6 => format!("[^\\{upper}]"),
        7 => format!("[\\{letter}z]"),
        8 => format!("\\{upper}"),
        9..20 => upper.into(),
        _ => letter.into(),
    }
}
