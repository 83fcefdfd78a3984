// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The parser: recursive descent over the tokens of one file, precedence climbing for expressions.
//!
//! After an error, parsing continues after the enclosing statement, section or item, so that one
//! run reports many errors. Recursion is limited, and so is the height of an expression (long
//! chains such as `a + b + ...` grow without recursion), so that later traversals need no limits.
//!
//! C cannot be parsed without knowing which names are types. So each file is parsed twice: first to
//! find the types that it declares, then with those types known, even before their declarations,
//! along with those of its imports. A variable hides a type of the same name to the end of its
//! block. For unknown types the parser goes by shape: `Name name` is a declaration, `(Name) name`
//! and `(Name *)` are casts.

mod config;
mod expressions;
mod items;
mod roles;
mod statements;
mod types;

use crate::ast::{File, Name};
use crate::diagnostic::Diagnostic;
use crate::lexer::{Token, TokenKind, tokens_of};
use crate::source::{SourceMap, Span};
use std::collections::HashSet;

pub use roles::{Block, Role, Roles};

/// Maximum nesting of statements, expressions and types.
const NESTING_MAX: u32 = 200;
/// Maximum height of an expression's tree.
const HEIGHT_MAX: u32 = 1000;
/// Number of errors after which parsing of a file stops.
const ERRORS_MAX: usize = 100;

/// Parses a file by itself. Errors go to `diagnostics`; valid parts are returned in any case.
pub fn parse_file(sources: &SourceMap, file: u32, diagnostics: &mut Vec<Diagnostic>) -> File {
    let first = parse_file_knowing(sources, file, &HashSet::new(), &mut vec![]);
    let types = first.type_names().map(String::from).collect();
    parse_file_knowing(sources, file, &types, diagnostics)
}

/// Parses a file in which `types` are known as types from the start.
pub fn parse_file_knowing(
    sources: &SourceMap,
    file: u32,
    types: &HashSet<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> File {
    let tokens = tokens_of(sources, file, diagnostics);
    parse_tokens(tokens, types, diagnostics).0
}

/// Returns the roles of a file's tokens, parsed by itself: types from its imports are unknown.
/// Parser errors go to `diagnostics`.
pub fn roles_of(tokens: &[Token], diagnostics: &mut Vec<Diagnostic>) -> Roles {
    let (first, _) = parse_tokens(tokens.to_vec(), &HashSet::new(), &mut vec![]);
    let types = first.type_names().map(String::from).collect();
    parse_tokens(tokens.to_vec(), &types, diagnostics).1
}

fn parse_tokens(
    tokens: Vec<Token>,
    types: &HashSet<String>,
    diagnostics: &mut Vec<Diagnostic>,
) -> (File, Roles) {
    let errors_at_start = diagnostics.len();
    let mut parser = Parser {
        tokens,
        at: 0,
        types: types::BUILT_IN.iter().map(|name| name.to_string()).chain(types.clone()).collect(),
        hidden: vec![],
        templates: HashSet::new(),
        nesting: 0,
        height: 0,
        angle_depth: 0,
        diagnostics,
        errors_at_start,
        roles: Roles::default(),
    };
    (parser.file(), parser.roles)
}

/// An error that has been reported: the caller abandons the construct.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    /// Names of types: those known from the start, and those seen so far.
    types: HashSet<String>,
    /// Type names that are hidden by variables.
    hidden: Vec<String>,
    /// Names of template functions seen so far.
    templates: HashSet<String>,
    nesting: u32,
    /// Height of the expression parsed last.
    height: u32,
    /// Nonzero directly between `<` and `>`, where `>` is not an operator.
    angle_depth: u32,
    diagnostics: &'a mut Vec<Diagnostic>,
    errors_at_start: usize,
    roles: Roles,
}

impl Parser<'_> {
    fn token(&self) -> &Token {
        self.ahead(0)
    }

    /// Returns the token `count` positions ahead, or the end of the file if there are fewer.
    fn ahead(&self, count: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + count).min(last)]
    }

    fn is_at_end(&self) -> bool {
        self.token().kind == TokenKind::End
    }

    fn span(&self) -> Span {
        self.token().span
    }

    /// Returns the span of the last consumed token.
    fn last_span(&self) -> Span {
        self.tokens[self.at.saturating_sub(1)].span
    }

    /// Returns the span from `start` to the last consumed token.
    fn span_from(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn advance(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn at_mark(&self, mark: &str) -> bool {
        self.token().is_mark(mark)
    }

    fn at_word(&self, word: &str) -> bool {
        self.token().name() == Some(word)
    }

    /// Records the role of the next token.
    fn note(&mut self, role: Role) {
        self.roles.note(self.span(), role);
    }

    /// Consumes that mark if it is next.
    fn eat(&mut self, mark: &str) -> bool {
        let is_next = self.at_mark(mark);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Consumes that mark if it is next, and records its role.
    fn eat_as(&mut self, mark: &str, role: Role) -> bool {
        let span = self.span();
        let is_next = self.eat(mark);
        if is_next {
            self.roles.note(span, role);
        }
        is_next
    }

    /// Consumes that word if it is next.
    fn eat_word(&mut self, word: &str) -> bool {
        let is_next = self.at_word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Consumes that mark, or reports that it was expected.
    fn expect(&mut self, mark: &str, place: &str) -> Parsed<Span> {
        let span = self.span();
        if self.eat(mark) {
            return Ok(span);
        }
        // These two marks are forgotten most often; they are best reported where they are missing.
        if matches!(mark, ";" | ")") && self.token().is_first_on_line && self.at > 0 {
            let last = &self.tokens[self.at - 1];
            // Other kinds of token may end within a multi-byte character.
            let is_ascii = matches!(last.kind, TokenKind::Name(_) | TokenKind::Mark(_));
            let start = if is_ascii { last.span.end - 1 } else { last.span.start };
            let after = Span { start, ..last.span };
            let found = self.token().describe();
            let message = format!("expected `{mark}` {place}, found {found}");
            return self.fail("E0110", after, message, format!("`{mark}` is missing after this"));
        }
        self.unexpected(&format!("`{mark}` {place}"))
    }

    /// Consumes the `{` of a block, or reports that it was expected.
    fn expect_block(&mut self, kind: Block, place: &str) -> Parsed<Span> {
        let span = self.expect("{", place)?;
        self.roles.note(span, Role::Block(kind));
        Ok(span)
    }

    /// Consumes a name that is not a keyword.
    fn name(&mut self, what: &str) -> Parsed<Name> {
        let span = self.span();
        match self.token().name() {
            Some(text) if !KEYWORDS.contains(&text) => {
                let text = text.to_string();
                self.advance();
                Ok(Name { text, span })
            }
            _ => self.unexpected(what),
        }
    }

    /// Reports that `what` was expected instead of the next token.
    fn unexpected<T>(&mut self, what: &str) -> Parsed<T> {
        let found = self.token().describe();
        let message = format!("expected {what}, found {found}");
        self.fail("E0110", self.span(), message, format!("expected {what}"))
    }

    fn fail<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Parsed<T> {
        self.report(Diagnostic::error(code, span, message).label(label))
    }

    /// Reports a construct that is written differently in this language.
    fn fail_helped<T>(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        (label, help): (&str, impl Into<String>),
    ) -> Parsed<T> {
        self.report(Diagnostic::error(code, span, message).label(label).help(help))
    }

    fn report<T>(&mut self, diagnostic: Diagnostic) -> Parsed<T> {
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() >= self.errors_at_start + ERRORS_MAX {
            self.at = self.tokens.len() - 1;
        }
        Err(Failed)
    }

    /// Parses one nesting level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == NESTING_MAX {
            let message = format!("this is nested more than {NESTING_MAX} levels deep");
            return self.fail("E0111", self.span(), message, "");
        }
        self.nesting += 1;
        let result = parse(self);
        self.nesting -= 1;
        result
    }

    /// Parses a scope; names that its variables hide may be types again after it.
    fn scope<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let outer = self.hidden.len();
        let result = parse(self);
        self.hidden.truncate(outer);
        result
    }

    /// Marks `name` as a variable from here on, even if there is a type of that name.
    fn hide_type(&mut self, name: &Name) {
        if self.types.contains(&name.text) {
            self.hidden.push(name.text.clone());
        }
    }

    /// Parses items separated by commas; the opening bracket is already consumed. A comma before
    /// the closing bracket is allowed.
    fn list<T>(
        &mut self,
        close: &str,
        place: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = vec![];
        while !self.at_mark(close) {
            items.push(item(self)?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect(close, place)?;
        Ok(items)
    }

    /// Recovers from an error: skips to the end of the statement that began at `first`, so that the
    /// next one can be parsed. Braces opened within it belong to it.
    fn skip_statement(&mut self, first: usize) {
        let start = self.at;
        let mut depth = 0u32;
        for token in &self.tokens[first.min(start)..start] {
            match token.kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        while !self.is_at_end() {
            if self.at > start && depth == 0 && self.at_fresh_start() || self.at_section() {
                return;
            }
            match self.token().kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") if depth == 0 => return,
                TokenKind::Mark("}") => {
                    depth -= 1;
                    if depth == 0 {
                        self.advance();
                        self.eat(";");
                        return;
                    }
                }
                TokenKind::Mark(";") if depth == 0 => {
                    self.advance();
                    return;
                }
                _ => {}
            }
            self.advance();
        }
    }

    /// Returns whether a line begins here with a word that can only begin a statement.
    fn at_fresh_start(&self) -> bool {
        let words = ["if", "for", "while", "do", "switch", "return", "break", "continue"];
        self.token().is_first_on_line && self.token().name().is_some_and(|w| words.contains(&w))
    }

    /// Returns whether the manager of a configuration begins here.
    fn at_manager(&self) -> bool {
        self.at_mark(".") && self.ahead(1).name() == Some("manager") && self.ahead(2).is_mark("{")
    }

    /// Returns whether an element or section begins here, which means that a brace is missing
    /// before it.
    fn at_section(&self) -> bool {
        let (word, after) = (self.ahead(1).name(), self.ahead(2));
        self.at_mark(".")
            && match word {
                Some("state" | "init" | "handler" | "signal" | "manager") => after.is_mark("{"),
                Some("method" | "element") => after.name().is_some(),
                _ => false,
            }
    }
}

/// Words that cannot be names.
const KEYWORDS: &[&str] = &[
    "if", "else", "for", "while", "do", "switch", "case", "default", "break", "continue", "return",
    "goto", "struct", "union", "enum", "typedef", "const", "sizeof", "true", "false", "inline",
    "template", "import", "register", "float", "double", "static", "void", "bool",
];

#[cfg(test)]
mod tests;
