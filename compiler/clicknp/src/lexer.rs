// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Splits a source text into tokens. It never fails: text that is not a token is reported and
//! skipped, so that the parser sees the rest.
//!
//! Two things are settled here, so that the parser does not work on characters. A manual block
//! (`/** ... */`) is attached to the token after it, and a pragma is one token that contains the
//! tokens of its line.

mod literals;

use crate::diagnostic::Diagnostic;
use crate::source::{SourceMap, Span};
use num_bigint::BigUint;

/// A token and its location.
#[derive(Clone, PartialEq, Debug)]
pub struct Token {
    /// Kind of token.
    pub kind: TokenKind,
    /// Source location.
    pub span: Span,
    /// Whether it is the first token on its line; guides error recovery.
    pub is_first_on_line: bool,
    /// Manual block right before it, without its comment marks.
    pub manual: Option<String>,
}

/// The kinds of token.
#[derive(Clone, PartialEq, Debug)]
pub enum TokenKind {
    /// A name or a keyword; the set of keywords depends on the position.
    Name(String),
    /// A number and its suffix, in lower case.
    Number(BigUint, String),
    /// `'c'`
    Char(u8),
    /// `"text"`, escapes resolved.
    Text(String),
    /// `10.0.0.1`, first byte highest.
    Ipv4(u32),
    /// `02:00:00:00:00:01`, first byte highest.
    Mac(u64),
    /// An operator or other mark.
    Mark(&'static str),
    /// `#pragma` and the tokens up to the end of its line.
    Pragma(Vec<Token>),
    /// After the last token.
    End,
}

impl Token {
    /// Describes the token for a message.
    pub fn describe(&self) -> String {
        match &self.kind {
            TokenKind::Name(name) => format!("`{name}`"),
            TokenKind::Number(..) => "a number".into(),
            TokenKind::Char(_) => "a character".into(),
            TokenKind::Text(_) => "a text".into(),
            TokenKind::Ipv4(_) => "an IPv4 address".into(),
            TokenKind::Mac(_) => "a MAC address".into(),
            TokenKind::Mark(mark) => format!("`{mark}`"),
            TokenKind::Pragma(_) => "a pragma".into(),
            TokenKind::End => "the end of the file".into(),
        }
    }

    /// Returns whether it is that mark.
    pub fn is_mark(&self, mark: &str) -> bool {
        matches!(self.kind, TokenKind::Mark(own) if own == mark)
    }

    /// Returns its text, if it is a name.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            TokenKind::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// Every mark; longer ones precede their prefixes.
pub(crate) const MARKS: &[&str] = &[
    "<<=", ">>=", "...", "->", "::", "##", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&",
    "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "{", "}", "(", ")", "[", "]", ";", ",",
    ".", ":", "?", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "!", "<", ">", "#", "@",
];

/// Directives of C's preprocessor.
const DIRECTIVES: &[&str] = &[
    "define", "elif", "else", "endif", "error", "if", "ifdef", "ifndef", "include", "line",
    "undef", "warning",
];

/// Returns the tokens of a file; the last one is [`TokenKind::End`].
pub fn tokens_of(sources: &SourceMap, file: u32, diagnostics: &mut Vec<Diagnostic>) -> Vec<Token> {
    let text = sources.files()[file as usize].text.as_str();
    let mut lexer = Lexer { text, file, at: 0, line_is_blank: true, manual: None, diagnostics };
    let mut tokens = vec![];
    while let Some(token) = lexer.next_token() {
        tokens.push(token);
    }
    let end = lexer.token(TokenKind::End, text.len());
    tokens.push(end);
    tokens
}

struct Lexer<'a> {
    text: &'a str,
    file: u32,
    at: usize,
    line_is_blank: bool,
    manual: Option<String>,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Lexer<'a> {
    /// Returns the next token; `None` at the end of the text.
    fn next_token(&mut self) -> Option<Token> {
        loop {
            self.skip_blanks();
            let start = self.at;
            let first = self.rest().chars().next()?;
            if let Some(kind) = self.kind_of(first) {
                return Some(self.token(kind, start));
            }
            self.line_is_blank = false;
        }
    }

    /// Reads one token; returns `None` if it was reported as invalid.
    fn kind_of(&mut self, first: char) -> Option<TokenKind> {
        if first.is_ascii_hexdigit()
            && let Some(mac) = self.mac()
        {
            return Some(mac);
        }
        match first {
            '0'..='9' => self.number(),
            'a'..='z' | 'A'..='Z' | '_' => Some(TokenKind::Name(self.word().to_string())),
            '"' => self.string(),
            '\'' => self.character(),
            '#' if self.at_pragma() => Some(self.pragma()),
            '#' if self.line_is_blank && self.directive().is_some() => {
                self.refuse_directive();
                None
            }
            _ => self.mark(first),
        }
    }

    fn mark(&mut self, first: char) -> Option<TokenKind> {
        let rest = self.rest();
        if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            self.at += mark.len();
            return Some(TokenKind::Mark(mark));
        }
        let start = self.at;
        self.at += first.len_utf8();
        self.report("E0101", start, format!("`{}` has no meaning here", first.escape_debug()));
        None
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// Returns whether `#` is followed by `pragma`.
    fn at_pragma(&self) -> bool {
        let word = self.rest()[1..].trim_start_matches([' ', '\t']);
        word.strip_prefix("pragma")
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    }

    fn pragma(&mut self) -> TokenKind {
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        let end = self.at + length;
        let word = self.rest().find("pragma").expect("at_pragma saw the word");
        let text = &self.text[..end];
        let mut line = Lexer {
            text,
            file: self.file,
            at: self.at + word + "pragma".len(),
            line_is_blank: false,
            manual: None,
            diagnostics: self.diagnostics,
        };
        let mut tokens = vec![];
        while let Some(token) = line.next_token() {
            tokens.push(token);
        }
        self.at = end;
        TokenKind::Pragma(tokens)
    }

    /// Returns the directive of C's preprocessor after `#`.
    fn directive(&self) -> Option<&'a str> {
        let rest = self.rest()[1..].trim_start_matches([' ', '\t']);
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &rest[..end.unwrap_or(rest.len())];
        DIRECTIVES.contains(&word).then_some(word)
    }

    /// Reports a preprocessor directive, and skips its line with continuation lines.
    fn refuse_directive(&mut self) {
        let word = self.directive().unwrap_or_default();
        let (message, help) = match word {
            "include" => (
                "files are not included here",
                "write `import \"file.cnp\"` for a file of this language; C's headers are not \
                 needed here",
            ),
            "define" => (
                "there are no macros here",
                "write `const uint NAME = 5;` for a number, and an `inline` function for one with \
                 arguments",
            ),
            _ => (
                "there is no preprocessor here",
                "use `if` with a constant: the side that is not taken is not even checked",
            ),
        };
        let start = self.at;
        let line = self.rest().lines().next().unwrap_or_default().trim_end().len();
        loop {
            let length = self.rest().find('\n').unwrap_or(self.rest().len());
            let is_continued = self.rest()[..length].trim_end_matches('\r').ends_with('\\');
            self.at += length;
            if !is_continued || self.rest().is_empty() {
                break;
            }
            self.at += 1;
        }
        let error = Diagnostic::error("E0107", self.span(start, start + line), message);
        self.diagnostics.push(error.label(format!("`#{word}` is C's")).help(help));
    }

    /// Skips blanks and comments; keeps a manual block for the next token.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            if rest[..blanks].contains('\n') {
                self.line_is_blank = true;
            }
            self.at += blanks;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                self.block_comment();
            } else {
                return;
            }
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let inside = &self.rest()[2..];
        let Some(length) = inside.find("*/") else {
            self.at = self.text.len();
            let opening = self.span(start, start + 2);
            let error = Diagnostic::error("E0102", opening, "a comment that is never closed");
            self.diagnostics.push(error.help("close it with `*/`"));
            return;
        };
        self.at += 2 + length + 2;
        if let Some(manual) = inside[..length].strip_prefix('*') {
            self.manual = Some(manual.to_string());
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn token(&mut self, kind: TokenKind, start: usize) -> Token {
        let is_first_on_line = std::mem::take(&mut self.line_is_blank);
        let manual = self.manual.take();
        Token { kind, span: self.span(start, self.at), is_first_on_line, manual }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { file: self.file, start: start as u32, end: end as u32 }
    }

    /// Reports an error for the text since `start`.
    fn report(&mut self, code: &'static str, start: usize, message: impl Into<String>) {
        let span = self.span(start, self.at);
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> (Vec<TokenKind>, Vec<&'static str>) {
        let mut sources = SourceMap::default();
        let file = sources.add("test.cnp", text);
        let mut diagnostics = vec![];
        let tokens = tokens_of(&sources, file, &mut diagnostics);
        let kinds = tokens.into_iter().map(|token| token.kind).collect();
        (kinds, diagnostics.into_iter().map(|diagnostic| diagnostic.code).collect())
    }

    fn number(value: u64, suffix: &str) -> TokenKind {
        TokenKind::Number(value.into(), suffix.into())
    }

    #[test]
    fn numbers_of_every_base() {
        let (kinds, errors) = kinds("0 17 0x1F 0b1010 017 1'000'000 5ull 0xfFul");
        assert_eq!(errors, [""; 0]);
        let want = [
            number(0, ""),
            number(17, ""),
            number(31, ""),
            number(10, ""),
            number(15, ""),
            number(1_000_000, ""),
            number(5, "ull"),
            number(255, "ul"),
            TokenKind::End,
        ];
        assert_eq!(kinds, want);
    }

    #[test]
    fn numbers_are_as_wide_as_the_widest_integer() {
        let (found, errors) = kinds(&format!("0x{}", "f".repeat(1024)));
        assert_eq!(errors, [""; 0]);
        assert!(matches!(&found[0], TokenKind::Number(value, _) if value.bits() == 4096));
        assert_eq!(kinds(&format!("0x1{}", "0".repeat(1024))).1, ["E0103"]);
        assert_eq!(kinds(&"9".repeat(1_000_000)).1, ["E0103"]);
    }

    #[test]
    fn addresses_are_not_numbers_with_dots() {
        let (kinds, errors) = kinds("10.0.0.255 02:00:00:00:ab:CD aa:bb:cc:dd:ee:ff v[31:16]");
        assert_eq!(errors, [""; 0]);
        assert_eq!(kinds[0], TokenKind::Ipv4(0x0a00_00ff));
        assert_eq!(kinds[1], TokenKind::Mac(0x0200_0000_abcd));
        assert_eq!(kinds[2], TokenKind::Mac(0xaabb_ccdd_eeff));
        assert_eq!(kinds[5], number(31, ""));
    }

    #[test]
    fn texts_and_characters_have_their_escapes_resolved() {
        let (kinds, errors) = kinds(r#"'a' '\n' '\x7f' '\0' '\'' "a\tb\"\\" "#);
        assert_eq!(errors, [""; 0]);
        let bytes: Vec<_> = [b'a', b'\n', 0x7f, 0, b'\''].map(TokenKind::Char).into();
        assert_eq!(kinds[..5], bytes);
        assert_eq!(kinds[5], TokenKind::Text("a\tb\"\\".into()));
    }

    #[test]
    fn a_manual_block_goes_with_the_token_after_it() {
        let mut sources = SourceMap::default();
        let file = sources.add("test.cnp", "/* no */ a /** purpose: b */\n.element /***/ c");
        let tokens = tokens_of(&sources, file, &mut vec![]);
        assert_eq!(tokens[0].manual, None);
        assert_eq!(tokens[1].manual.as_deref(), Some(" purpose: b "));
        assert!(tokens[1].is_first_on_line);
        assert_eq!(tokens[2].manual, None);
    }

    #[test]
    fn a_pragma_is_one_token() {
        let (kinds, errors) = kinds("# pragma unroll 4 // four\nfor #2 ##");
        assert_eq!(errors, [""; 0]);
        let TokenKind::Pragma(tokens) = &kinds[0] else { panic!("{kinds:?}") };
        assert_eq!(tokens.len(), 2);
        assert_eq!(kinds[2], TokenKind::Mark("#"));
        assert_eq!(kinds[4], TokenKind::Mark("##"));
    }

    #[test]
    fn what_is_no_token_is_reported_and_left_out() {
        let (kinds, errors) = kinds("a ` $ é b 09 1.5 1.2.3.400 \"x\n'ab' 12q /* never");
        let want = [
            "E0101", "E0101", "E0101", "E0103", "E0105", "E0106", "E0102", "E0104", "E0103",
            "E0102",
        ];
        assert_eq!(errors, want);
        assert_eq!(kinds[..2], [TokenKind::Name("a".into()), TokenKind::Name("b".into())]);
    }
}
