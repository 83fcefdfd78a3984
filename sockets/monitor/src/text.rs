// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes text that other users choose printable, such as process names and paths.
//!
//! Some characters are terminal commands, some end a line, and others reverse the text beside them.
//! So every name that a process can choose passes through here before it is put into a log, a list
//! or an error.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Returns the text with all characters that do not belong into a line escaped as in Rust: `\n`,
/// `\u{1b}`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(Printable(text).to_string())
}

/// As [`printable`] for bytes; invalid UTF-8 becomes `\xff`.
pub fn printable_bytes(bytes: &[u8]) -> String {
    printable(&decoded(bytes)).into_owned()
}

/// Returns bytes as text; only invalid UTF-8 is escaped.
pub fn decoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Displays text as [`printable`] returns it.
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|it| match is_hidden(it) {
            true => write!(out, "{}", it.escape_default()),
            false => out.write_char(it),
        })
    }
}

/// Control characters, ends of lines and paragraphs, characters that change the direction of text,
/// and those without width.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for text in ["", "redis-server", "/tmp/a b", "grüße", "日本", "a\\n"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        for (text, shown) in [
            ("\x1b[31mred\x07", r"\u{1b}[31mred\u{7}"),
            ("a\nb\r\tc\x7f", r"a\nb\r\tc\u{7f}"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("safe\u{202e}gpj.exe\u{2066}", r"safe\u{202e}gpj.exe\u{2066}"),
            ("a\u{2028}b\u{200b}", r"a\u{2028}b\u{200b}"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_told_apart() {
        assert_eq!(printable_bytes(b"ok"), "ok");
        assert_eq!(printable_bytes(b"a\xff\xfe\x1b"), r"a\xff\xfe\u{1b}");
        assert_eq!(printable_bytes("ü".as_bytes().split_at(1).0), r"\xc3");
        assert_eq!(decoded(b"a\n\xff"), "a\n\\xff");
    }
}
