// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Inline requests: a line of words, as a person types them into `telnet`. Words may be quoted, and
//! their bytes therefore differ from those of the line, so they are copied.
//!
//! The rules are those of `sdssplitargs` of Redis: white space separates words; `"..."` has the
//! escapes `\xHH`, `\n`, `\r`, `\t`, `\b`, `\a` and, for any other byte, the byte itself; `'...'`
//! has the escape `\'`; a closing quote ends its word and has to be followed by white space; an
//! opening quote may be inside a word. Vertical tab and form feed are white space between words and
//! after quotes, but do not end a word.

use super::error::ProtocolError;

/// Appends the words of a line to `bytes`, and the end of each to `words` as a range of `bytes`.
/// The line has neither its end nor a zero byte.
pub(super) fn split(
    line: &[u8],
    bytes: &mut Vec<u8>,
    words: &mut Vec<(usize, usize)>,
) -> Result<(), ProtocolError> {
    let mut at = 0;
    loop {
        while line.get(at).copied().is_some_and(is_space) {
            at += 1;
        }
        if at == line.len() {
            return Ok(());
        }
        let start = bytes.len();
        at = word(line, at, bytes)?;
        words.push((start, bytes.len()));
    }
}

/// Appends the word at `at`, and returns the place after it.
fn word(line: &[u8], mut at: usize, bytes: &mut Vec<u8>) -> Result<usize, ProtocolError> {
    while let Some(&byte) = line.get(at) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => return Ok(at),
            b'"' => return quoted(line, at + 1, bytes, escape),
            b'\'' => return quoted(line, at + 1, bytes, escape_of_single),
            _ => bytes.push(byte),
        }
        at += 1;
    }
    Ok(at)
}

/// Bytes of an escape and the byte that it means.
type Escape = fn(&[u8]) -> Option<(usize, u8)>;

/// Appends the rest of a word whose quote was opened before `at`.
fn quoted(
    line: &[u8],
    mut at: usize,
    bytes: &mut Vec<u8>,
    escape: Escape,
) -> Result<usize, ProtocolError> {
    let quote = line[at - 1];
    while let Some(&byte) = line.get(at) {
        if byte == quote {
            let is_end = line.get(at + 1).is_none_or(|&next| is_space(next));
            return if is_end { Ok(at + 1) } else { Err(ProtocolError::UnbalancedQuotes) };
        }
        let (length, meant) = escape(&line[at..]).unwrap_or((1, byte));
        bytes.push(meant);
        at += length;
    }
    Err(ProtocolError::UnbalancedQuotes)
}

fn escape(text: &[u8]) -> Option<(usize, u8)> {
    if let [b'\\', b'x', high, low, ..] = *text
        && let (Some(high), Some(low)) = (hexadecimal(high), hexadecimal(low))
    {
        return Some((4, high << 4 | low));
    }
    let [b'\\', byte, ..] = *text else { return None };
    let meant = match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    };
    Some((2, meant))
}

fn escape_of_single(text: &[u8]) -> Option<(usize, u8)> {
    text.starts_with(br"\'").then_some((2, b'\''))
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// White space of C.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut bytes, mut words) = (vec![], vec![]);
        split(line, &mut bytes, &mut words)?;
        Ok(words.into_iter().map(|(start, end)| bytes[start..end].to_vec()).collect())
    }

    #[track_caller]
    fn check(line: &[u8], expected: &[&[u8]]) {
        assert_eq!(words(line).expect("quotes are balanced"), expected);
    }

    #[test]
    fn white_space_separates_words() {
        check(b"", &[]);
        check(b" \t\x0b\x0c\r ", &[]);
        check(b"get key", &[b"get", b"key"]);
        check(b"  set  a\tb\r", &[b"set", b"a", b"b"]);
        check(b"a\x0bb \x0bc", &[b"a\x0bb", b"c"]);
        check(b"\xff\x80 \xa0", &[b"\xff\x80", b"\xa0"]);
    }

    #[test]
    fn double_quotes_have_escapes() {
        check(br#"set "a b" """#, &[b"set", b"a b", b""]);
        check(br#""\x00\xfF\x4a\n\r\t\b\a\\\"\q""#, &[b"\x00\xff\x4a\n\r\t\x08\x07\\\"q"]);
        check(br#""\xg1\x1""#, &[b"xg1x1"]);
        check(br#""it's""#, &[b"it's"]);
    }

    #[test]
    fn single_quotes_have_one_escape() {
        check(br#"'a b' '' 'it\'s' '\n\\x' '"'"#, &[b"a b", b"", b"it's", br"\n\\x", b"\""]);
    }

    #[test]
    fn a_quote_may_open_inside_a_word_and_always_ends_it() {
        check(br#"key"a b" c'd e'"#, &[b"keya b", b"cd e"]);
        check(b"\"a\"\x0b\"b\"", &[b"a", b"b"]);
        check(br"a\ b", &[br"a\", b"b"]);
    }

    #[test]
    fn unbalanced_quotes_are_an_error() {
        for line in [
            &br#"""#[..],
            b"'",
            br#"get "a"#,
            br#""a"b"#,
            br"'a'b",
            br#""a""b""#,
            br#""a\""#,
            br#""a\"#,
            br"'a\'",
            br#"''"#.split_last().expect("it has bytes").1,
        ] {
            assert_eq!(words(line), Err(ProtocolError::UnbalancedQuotes), "{line:?}");
        }
    }
}
