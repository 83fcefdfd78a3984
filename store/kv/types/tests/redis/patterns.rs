// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random patterns against a real server.

use super::server::Server;
use super::with_server;
use fastrand::Rng;
use freeport_kv_types::pattern::{matches, matches_ignoring_case};
use freeport_testbed::usual_or_long;

fn draw(random: &mut Rng, letters: &[u8], most: usize) -> String {
    let length = random.usize(1..=most);
    (0..length).map(|_| char::from(letters[random.usize(..letters.len())])).collect()
}

fn compare_keys(server: &mut Server, random: &mut Rng) {
    let mut keys: Vec<String> = (0..300).map(|_| draw(random, b"abc-]^\\*", 5)).collect();
    keys.push(String::new());
    keys.sort();
    keys.dedup();
    for key in &keys {
        server.call(&[&"SET", key, &"1"]);
    }
    for _ in 0..usual_or_long(1_000, 10_000) {
        let pattern = draw(random, b"aabc*?[]^\\-", 8);
        // The server lists all keys for this pattern, without a match.
        if pattern == "*" {
            continue;
        }
        let mut found = server.call(&[&"KEYS", &pattern]).texts();
        found.sort();
        let is_expected = |key: &&String| matches(pattern.as_bytes(), key.as_bytes());
        let expected: Vec<&[u8]> =
            keys.iter().filter(is_expected).map(|it| it.as_bytes()).collect();
        assert_eq!(expected, found, "pattern {pattern:?}");
    }
}

/// Settings of a server are found without regard to case.
fn compare_settings(server: &mut Server, random: &mut Rng) {
    let mut settings = |pattern: &str| {
        let names_and_values = server.call(&[&"CONFIG", &"GET", &pattern]).texts();
        let mut names: Vec<Vec<u8>> = names_and_values.into_iter().step_by(2).collect();
        names.sort();
        names.dedup();
        names
    };
    let names = settings("*");
    assert!(names.len() > 100);
    for _ in 0..usual_or_long(1_000, 10_000) {
        let name = &names[random.usize(..names.len())];
        let pattern: String = name.iter().map(|letter| token(random, *letter as char)).collect();
        // A pattern without these characters is a name, which the server looks up.
        if !pattern.contains(['*', '?', '[']) {
            continue;
        }
        let is_expected = |name: &&Vec<u8>| matches_ignoring_case(pattern.as_bytes(), name);
        let expected: Vec<&Vec<u8>> = names.iter().filter(is_expected).collect();
        let found = settings(&pattern);
        assert!(expected.into_iter().eq(&found), "pattern {pattern:?}: {found:?}");
    }
}

#[test]
#[ignore = "long: needs redis-server"]
fn patterns_match_keys() {
    with_server(5, compare_keys);
}

#[test]
#[ignore = "long: needs redis-server"]
fn patterns_match_settings() {
    with_server(5, compare_settings);
}

/// A token that may match a letter.
fn token(random: &mut Rng, letter: char) -> String {
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
