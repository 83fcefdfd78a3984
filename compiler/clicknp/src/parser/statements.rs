// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements, loops with their pragmas, and blocks.

use super::{Block as BlockKind, Failed, Parsed, Parser, Role};
use crate::ast::{Block, Loop, LoopKind, Pragma, PragmaKind, Statement, StatementKind, SwitchArm};
use crate::lexer::{Token, TokenKind};
use crate::source::Span;

/// Advice for jumps.
const NO_JUMPS: &str =
    "leave a loop with `break`, or put the code in a function and leave it with `return`";

impl Parser<'_> {
    /// Parses statements between braces. Recovers from errors inside.
    pub(super) fn block(&mut self, place: &str) -> Parsed<Block> {
        self.scope(|parser| parser.block_of_scope(place))
    }

    fn block_of_scope(&mut self, place: &str) -> Parsed<Block> {
        let start = self.expect_block(BlockKind::Statements, place)?;
        let mut statements = vec![];
        while !self.at_mark("}") {
            if self.is_at_end() || self.at_section() {
                let error = "this brace is never closed";
                return self.fail("E0112", start, error, "opened here");
            }
            self.statement_into(&mut statements);
        }
        self.advance();
        Ok(Block { statements, span: self.span_from(start) })
    }

    /// Parses a statement and appends it; after an error, skips to its end instead.
    fn statement_into(&mut self, statements: &mut Vec<Statement>) {
        let at = self.at;
        match self.statement() {
            Ok(statement) => statements.push(statement),
            Err(Failed) => {
                self.skip_statement(at);
                if self.at == at && !self.at_mark("}") && !self.at_section() {
                    self.advance();
                }
            }
        }
    }

    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        let start = self.span();
        let kind = self.nested(Self::statement_kind)?;
        Ok(Statement { kind, span: self.span_from(start) })
    }

    fn statement_kind(&mut self) -> Parsed<StatementKind> {
        if let TokenKind::Pragma(_) = self.token().kind {
            return self.pragmas();
        }
        if self.at_mark("{") {
            return Ok(StatementKind::Block(self.block("")?));
        }
        if self.eat(";") {
            return Ok(StatementKind::Empty);
        }
        let dotted_async = self.at_mark(".") && self.ahead(1).name() == Some("async");
        if dotted_async || self.at_word("async") && self.ahead(1).is_mark("{") {
            self.at += usize::from(dotted_async) + 1;
            return Ok(StatementKind::Async(self.block("after `async`")?));
        }
        match self.token().name() {
            Some("if") => self.if_statement(),
            Some("for" | "while" | "do") => self.loop_statement(vec![]),
            Some("switch") => self.switch(),
            Some("break") => self.simple(StatementKind::Break, "after `break`"),
            Some("continue") => self.simple(StatementKind::Continue, "after `continue`"),
            Some("return") => self.return_statement(),
            Some("goto") => {
                let message = "`goto` is not part of the language";
                self.fail_helped("E0118", self.span(), message, ("a jump", NO_JUMPS))
            }
            Some("case" | "default") => {
                self.fail("E0110", self.span(), "a label of no `switch`", "")
            }
            Some(_) if self.ahead(1).is_mark(":") => {
                let message = "labels are not part of the language";
                self.fail_helped("E0118", self.span(), message, ("nothing can jump here", NO_JUMPS))
            }
            Some(_) if self.at_declaration() => {
                Ok(StatementKind::Declare(self.declarations("a variable")?))
            }
            _ => {
                let value = self.expression()?;
                self.expect(";", "after an expression")?;
                Ok(StatementKind::Expr(value))
            }
        }
    }

    /// Returns whether a declaration begins here, judging by known types and by shape.
    fn at_declaration(&self) -> bool {
        let Some(name) = self.token().name() else { return false };
        let next = self.ahead(1);
        if matches!(name, "struct" | "union" | "enum" | "const" | "register" | "float" | "double") {
            return true;
        }
        if matches!(name, "static") {
            return true;
        }
        if next.name().is_some_and(|word| word != "sizeof") {
            return true;
        }
        if next.is_mark("##") {
            return true;
        }
        if next.is_mark("<") {
            let past = self.past_angles(1);
            return past.is_some_and(|past| self.ahead(past).name().is_some());
        }
        if !next.is_mark("*") {
            return false;
        }
        let mut at = 2;
        while self.ahead(at).is_mark("*") {
            at += 1;
        }
        let ends = ["=", ";", ",", "["].iter().any(|mark| self.ahead(at + 1).is_mark(mark));
        self.ahead(at).name().is_some() && (ends || self.is_type_name(name))
    }

    fn simple(&mut self, kind: StatementKind, place: &str) -> Parsed<StatementKind> {
        self.advance();
        self.expect(";", place)?;
        Ok(kind)
    }

    fn return_statement(&mut self) -> Parsed<StatementKind> {
        self.advance();
        let value = if self.at_mark(";") { None } else { Some(self.expression()?) };
        self.expect(";", "after `return`")?;
        Ok(StatementKind::Return(value))
    }

    fn if_statement(&mut self) -> Parsed<StatementKind> {
        self.advance();
        let cond = self.condition("after `if`")?;
        let then = Box::new(self.statement()?);
        let otherwise = match self.eat_word("else") {
            true => Some(Box::new(self.statement()?)),
            false => None,
        };
        Ok(StatementKind::If(cond, then, otherwise))
    }

    /// Parses an expression in parentheses.
    fn condition(&mut self, place: &str) -> Parsed<crate::ast::Expr> {
        self.expect("(", place)?;
        let cond = self.expression()?;
        self.expect(")", "after the condition")?;
        Ok(cond)
    }

    /// Parses `for`, `while` or `do`, one of which is next.
    fn loop_statement(&mut self, pragmas: Vec<Pragma>) -> Parsed<StatementKind> {
        let start = self.span();
        let repeated = match self.token().name() {
            Some("for") => self.scope(|parser| parser.for_loop(pragmas, start))?,
            Some("while") => {
                self.advance();
                let cond = Some(self.condition("after `while`")?);
                let span = self.span_from(start);
                let body = self.statement()?;
                Loop { pragmas, kind: LoopKind::While, cond, body, span }
            }
            _ => {
                self.advance();
                let body = self.statement()?;
                if !self.eat_word("while") {
                    return self.unexpected("`while` after the body of a `do` loop");
                }
                let cond = Some(self.condition("after `while`")?);
                self.expect(";", "after a `do` loop")?;
                Loop { pragmas, kind: LoopKind::DoWhile, cond, body, span: start }
            }
        };
        Ok(StatementKind::Loop(Box::new(repeated)))
    }

    fn for_loop(&mut self, pragmas: Vec<Pragma>, start: Span) -> Parsed<Loop> {
        self.advance();
        self.expect("(", "after `for`")?;
        let init = match self.eat(";") {
            true => None,
            false => Some(Box::new(self.for_init()?)),
        };
        let cond = if self.at_mark(";") { None } else { Some(self.expression()?) };
        self.expect(";", "after the condition of a `for` loop")?;
        let step = if self.at_mark(")") { None } else { Some(self.expression()?) };
        self.expect(")", "after the head of a `for` loop")?;
        let span = self.span_from(start);
        let body = self.statement()?;
        Ok(Loop { pragmas, kind: LoopKind::For { init, step }, cond, body, span })
    }

    /// Parses a declaration or an expression, with its `;`.
    fn for_init(&mut self) -> Parsed<Statement> {
        let start = self.span();
        let kind = match self.at_declaration() {
            true => StatementKind::Declare(self.declarations("a variable")?),
            false => {
                let value = self.expression()?;
                self.expect(";", "after the start of a `for` loop")?;
                StatementKind::Expr(value)
            }
        };
        Ok(Statement { kind, span: self.span_from(start) })
    }

    fn switch(&mut self) -> Parsed<StatementKind> {
        self.advance();
        let value = self.condition("after `switch`")?;
        let kind = BlockKind::Switch;
        let start = self.expect_block(kind, "after the value of a `switch`")?;
        let mut arms: Vec<SwitchArm> = vec![];
        while !self.at_mark("}") {
            if self.is_at_end() || self.at_section() {
                return self.fail("E0112", start, "this brace is never closed", "opened here");
            }
            if self.at_word("case") || self.at_word("default") {
                let labels: Vec<_> = match self.label() {
                    Ok(label) => vec![label],
                    Err(Failed) => {
                        self.skip_label();
                        vec![]
                    }
                };
                match arms.last_mut() {
                    Some(arm) if arm.statements.is_empty() => arm.labels.extend(labels),
                    _ => arms.push(SwitchArm { labels, statements: vec![] }),
                }
                continue;
            }
            if arms.is_empty() {
                let _ = self.unexpected::<()>("`case` or `default`");
                arms.push(SwitchArm { labels: vec![], statements: vec![] });
            }
            let arm = arms.last_mut().expect("one was there, or was just made");
            let mut statements = std::mem::take(&mut arm.statements);
            self.statement_into(&mut statements);
            if let Some(arm) = arms.last_mut() {
                arm.statements = statements;
            }
        }
        self.advance();
        Ok(StatementKind::Switch(value, arms))
    }

    fn label(&mut self) -> Parsed<(Option<crate::ast::Expr>, Span)> {
        let start = self.span();
        let is_case = self.at_word("case");
        self.advance();
        let value = if is_case { Some(self.conditional()?) } else { None };
        if self.at_mark("...") {
            let message = "a label is one value, not a range";
            let help = "write a label for each value, `case 1: case 2:`, or compare with `if`";
            return self.fail_helped("E0125", self.span(), message, ("a range of GNU C", help));
        }
        let colon = self.expect(":", "after a label of a `switch`")?;
        self.roles.note(colon, Role::Label);
        Ok((value, self.span_from(start)))
    }

    /// Recovers from an error in a label: skips to its end, or to the end of its line.
    fn skip_label(&mut self) {
        while !self.is_at_end() && !self.token().is_first_on_line && !self.at_mark("}") {
            let ends = self.at_mark(":");
            self.advance();
            if ends {
                return;
            }
        }
    }

    /// Parses pragmas, and the loop that they apply to if one follows.
    fn pragmas(&mut self) -> Parsed<StatementKind> {
        let mut pragmas = vec![];
        while let TokenKind::Pragma(tokens) = &self.token().kind {
            let (tokens, span) = (tokens.clone(), self.span());
            pragmas.push(Pragma { kind: self.pragma(tokens)?, span });
            self.advance();
            if matches!(pragmas.last(), Some(Pragma { kind: PragmaKind::Breakpoint(_), .. })) {
                break;
            }
        }
        if matches!(self.token().name(), Some("for" | "while" | "do"))
            && !matches!(pragmas.last(), Some(Pragma { kind: PragmaKind::Breakpoint(_), .. }))
        {
            return self.loop_statement(pragmas);
        }
        let Some(last) = pragmas.pop() else { return Err(Failed) };
        if matches!(last.kind, PragmaKind::Breakpoint(_) | PragmaKind::Ivdep) {
            return Ok(StatementKind::Pragma(last));
        }
        let message = "this pragma is about a loop, and no loop follows it";
        self.fail("E0114", last.span, message, "")
    }

    /// Parses the tokens after `#pragma`.
    fn pragma(&mut self, tokens: Vec<Token>) -> Parsed<PragmaKind> {
        let all = self.span();
        let word = tokens.first().and_then(Token::name).unwrap_or_default().to_string();
        let rest = &tokens[tokens.len().min(1)..];
        let kind = match (word.as_str(), rest) {
            ("unroll", []) => PragmaKind::Unroll(None),
            ("unroll", rest) => PragmaKind::Unroll(Some(self.pragma_value(rest, all)?)),
            ("flatten", []) => PragmaKind::Flatten,
            ("bound", rest) => PragmaKind::Bound(self.pragma_value(rest, all)?),
            ("ivdep", []) => PragmaKind::Ivdep,
            ("breakpoint", []) => PragmaKind::Breakpoint(None),
            ("breakpoint", [Token { kind: TokenKind::Text(name), .. }]) => {
                PragmaKind::Breakpoint(Some(name.clone()))
            }
            _ => {
                let message = format!("there is no pragma `{word}` of this form");
                let pragmas =
                    "there are unroll [N], flatten, bound N, ivdep, breakpoint [\"name\"]";
                return self.fail("E0113", all, message, pragmas);
            }
        };
        Ok(kind)
    }

    /// Parses those tokens as an expression.
    fn pragma_value(&mut self, tokens: &[Token], all: Span) -> Parsed<crate::ast::Expr> {
        let end = Token {
            kind: TokenKind::End,
            span: Span { start: all.end, ..all },
            is_first_on_line: false,
            manual: None,
        };
        let line = tokens.iter().cloned().chain([end]).collect();
        let outer = std::mem::replace(&mut self.tokens, line);
        let at = std::mem::replace(&mut self.at, 0);
        let mut value = self.conditional();
        if value.is_ok() && !self.is_at_end() {
            value = self.unexpected("the end of the pragma");
        }
        self.tokens = outer;
        self.at = at;
        value
    }
}
