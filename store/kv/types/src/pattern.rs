// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Glob patterns of a Redis server: `KEYS`, `SCAN` with `MATCH`, `PSUBSCRIBE`.
//!
//! A pattern is a sequence of tokens. Every token but `*` consumes exactly one byte, so only the
//! latest `*` can be worth another try: an earlier one would leave the latest with fewer bytes to
//! choose from. The matcher keeps that single point to return to. Its work is bounded by the
//! product of both lengths, and it needs no memory; a matcher that calls itself at each `*` takes
//! exponential time for patterns such as `a*a*a*a*b`.
//!
//! | token | matches |
//! |---|---|
//! | `*` | any number of bytes |
//! | `?` | one byte |
//! | `[abc]`, `[a-z]` | one of these bytes, or a byte of this range; a range may be reversed |
//! | `[^...]` | one byte that is not in the class |
//! | `\x` | the byte `x`; the same inside of a class |
//!
//! Odd forms match as a Redis server matches them: a class that is not closed ends with the
//! pattern, a backslash at the end stands for itself, and the empty text matches only the empty
//! pattern. `KEYS *` and `SCAN` with `MATCH *` do list a key with the empty name, because a server
//! does not match at all for the pattern `*`; that shortcut belongs to those commands.

/// Returns whether the whole of `text` matches `pattern`.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    search::<false>(pattern, text)
}

/// Returns whether the whole of `text` matches `pattern`, without regard to the case of ASCII
/// letters.
pub fn matches_ignoring_case(pattern: &[u8], text: &[u8]) -> bool {
    search::<true>(pattern, text)
}

/// Parts of any length after which a pattern matches nothing, as in Redis: they bound the time of a
/// search.
const MOST_STARS: usize = 1000;

fn search<const IGNORE_CASE: bool>(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut token, mut at) = (0, 0);
    // Token after the latest `*`, and where in the text the next try begins.
    let mut retry: Option<(usize, usize)> = None;
    let mut stars = 0;
    while at < text.len() {
        if pattern.get(token) == Some(&b'*') {
            token += 1;
            if token == pattern.len() {
                return true;
            }
            // Several `*` in a row are one.
            stars += usize::from(pattern[token] != b'*');
            if stars > MOST_STARS {
                return false;
            }
            retry = Some((token, at + 1));
        } else if let Some(length) = step::<IGNORE_CASE>(&pattern[token..], text[at]) {
            token += length;
            at += 1;
        } else if let Some((after_star, next)) = retry {
            (token, at) = (after_star, next);
            retry = Some((after_star, next + 1));
        } else {
            return false;
        }
    }
    pattern[token..].iter().all(|byte| *byte == b'*')
}

/// Returns the length of the first token, which is not `*`, if it matches `byte`.
fn step<const IGNORE_CASE: bool>(pattern: &[u8], byte: u8) -> Option<usize> {
    let is_same = |other: u8| fold::<IGNORE_CASE>(other) == fold::<IGNORE_CASE>(byte);
    match *pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ..] => class::<IGNORE_CASE>(pattern, byte),
        [b'\\', escaped, ..] => is_same(escaped).then_some(2),
        [literal, ..] => is_same(literal).then_some(1),
    }
}

/// Returns the length of the class at the start of `pattern` if it matches `byte`.
fn class<const IGNORE_CASE: bool>(pattern: &[u8], byte: u8) -> Option<usize> {
    let folded = fold::<IGNORE_CASE>(byte);
    let is_negated = pattern.get(1) == Some(&b'^');
    let mut at = if is_negated { 2 } else { 1 };
    let mut is_member = false;
    loop {
        match pattern[at..] {
            [] => break,
            [b'\\', escaped, ..] => {
                // An escaped byte is compared with its case in both variants.
                is_member |= escaped == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                // The ends are put in order before their case is folded.
                let low = fold::<IGNORE_CASE>(first.min(last));
                let high = fold::<IGNORE_CASE>(first.max(last));
                is_member |= (low..=high).contains(&folded);
                at += 3;
            }
            [member, ..] => {
                is_member |= fold::<IGNORE_CASE>(member) == folded;
                at += 1;
            }
        }
    }
    (is_member != is_negated).then_some(at)
}

fn fold<const IGNORE_CASE: bool>(byte: u8) -> u8 {
    if IGNORE_CASE { byte.to_ascii_lowercase() } else { byte }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pattern, text, and whether a Redis server 7.0 matches them.
    const CASES: &[(&str, &str, bool)] = &[
        ("", "", true),
        ("", "a", false),
        ("*", "", false),
        ("**", "", false),
        ("?", "", false),
        ("*", "a", true),
        ("a*", "a", true),
        ("a**", "a", true),
        ("*a", "a", true),
        ("**a**", "a", true),
        ("h?llo", "hello", true),
        ("h?llo", "hllo", false),
        ("h*llo", "hllo", true),
        ("h*llo", "heeeello", true),
        ("h*llo", "heeeellos", false),
        ("h[ae]llo", "hallo", true),
        ("h[ae]llo", "hillo", false),
        ("h[^e]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("h[a-b]llo", "hbllo", true),
        ("h[b-a]llo", "hallo", true),
        ("h[a-b]llo", "hcllo", false),
        ("*ab*ab", "abaabab", true),
        ("*a?c", "abcaxc", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-c-b", false),
        // Escapes.
        ("\\*", "*", true),
        ("\\*", "a", false),
        ("a\\", "a\\", true),
        ("\\", "\\", true),
        ("\\\\", "\\", true),
        ("\\a", "a", true),
        ("[\\]]", "]", true),
        ("[\\^a]", "^", true),
        ("[\\a-c]", "b", false),
        ("[\\a-c]", "-", true),
        ("[\\", "\\", true),
        // Classes in odd forms.
        ("[", "[", false),
        ("[]", "]", false),
        ("[]a", "a", false),
        ("[^]", "x", true),
        ("[^", "x", true),
        ("[^]x", "ax", true),
        ("[abc", "b", true),
        ("[abc", "d", false),
        ("[a-", "-", true),
        ("[a-", "b", false),
        ("[a-]", "a", true),
        ("[a-]", "-", false),
        ("[a-]", "]", true),
        ("[a-]", "_", true),
        ("[a^]", "^", true),
        ("[-a]", "-", true),
        ("[*]", "*", true),
        ("[?]", "a", false),
        ("x[abc]y*", "xby", true),
    ];

    #[test]
    fn corner_cases_match_as_a_server_matches_them() {
        for (pattern, text, expected) in CASES {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, *expected, "pattern {pattern:?}, text {text:?}");
        }
    }

    #[test]
    fn case_is_folded_outside_of_escapes_in_classes() {
        let cases = [
            ("HeLLo", "hEllO", true),
            ("[A-C]x", "bX", true),
            ("[^A]", "a", false),
            ("\\A", "a", true),
            ("[\\A]", "a", false),
            // The reversed range becomes a-z before it is folded; `a` and `Z` in order are not.
            ("[z-A]", "m", true),
            ("[Z-a]", "m", false),
        ];
        for (pattern, text, expected) in cases {
            let found = matches_ignoring_case(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "pattern {pattern:?}, text {text:?}");
        }
        assert!(!matches(b"HELLO", b"hello"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = b"a*".repeat(MOST_STARS);
        let mut text = b"a".repeat(10_000);
        assert!(matches(&pattern, &text));
        text.insert(0, b'b');
        assert!(!matches(&pattern, &text));
        let pattern = [b"*a".repeat(500), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &b"a".repeat(5_000)));
    }

    /// Tries every length for each `*`.
    fn matches_exhaustively(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|length| matches_exhaustively(rest, &text[length..]))
            }
            (_, []) => false,
            (_, [byte, after @ ..]) => step::<false>(pattern, *byte)
                .is_some_and(|length| matches_exhaustively(&pattern[length..], after)),
        }
    }

    #[test]
    fn patterns_with_too_many_parts_match_nothing() {
        let text = [b'a'; 3_000];
        assert!(matches(&b"*?".repeat(MOST_STARS), &text));
        assert!(matches(&[&b"*?".repeat(MOST_STARS)[..], b"*"].concat(), &text));
        assert!(!matches(&b"*?".repeat(MOST_STARS + 1), &text));
        assert!(matches(&[&b"*".repeat(2 * MOST_STARS)[..], b"a"].concat(), &text));
    }

    #[test]
    fn one_point_to_return_to_is_enough() {
        for seed in 0..20_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut draw = |letters: &[u8], most: usize| -> Vec<u8> {
                (0..random.usize(1..=most))
                    .map(|_| letters[random.usize(..letters.len())])
                    .collect()
            };
            let pattern = draw(b"ab*?*[]^\\-", 9);
            let text = draw(b"ab-]", 7);
            let expected = matches_exhaustively(&pattern, &text);
            assert_eq!(matches(&pattern, &text), expected, "seed {seed}: {pattern:?}, {text:?}");
        }
    }
}
