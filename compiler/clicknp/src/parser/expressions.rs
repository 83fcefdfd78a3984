// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expressions, by precedence climbing. Every function stores the height of its tree in
//! `Parser::height`.

use super::{HEIGHT_MAX, Parsed, Parser, Role};
use crate::ast::{BinaryOperator, Expr, ExprKind, Name, UnaryOperator};
use crate::lexer::TokenKind;
use crate::source::Span;

/// Maximum tokens examined to distinguish `f<3>(x)` from a comparison.
const TEMPLATE_TOKENS_MAX: usize = 64;

impl Parser<'_> {
    /// Parses an expression that may contain commas.
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        let mut left = self.assignment()?;
        while self.at_mark(",") {
            let height = self.height;
            self.advance();
            let right = self.assignment()?;
            left = self.join(left, height, right, ExprKind::Comma)?;
        }
        Ok(left)
    }

    /// Parses an expression without commas.
    pub(super) fn assignment(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let target = parser.conditional()?;
            let TokenKind::Mark(mark) = parser.token().kind else { return Ok(target) };
            let Some(operator) = assignment_operator(mark) else { return Ok(target) };
            let height = parser.height;
            parser.advance();
            let value = parser.assignment()?;
            parser.join(target, height, value, |target, value| {
                ExprKind::Assign(operator, target, value)
            })
        })
    }

    /// Parses an expression without commas and assignments, such as a constant.
    pub(super) fn conditional(&mut self) -> Parsed<Expr> {
        let cond = self.binary(0)?;
        if !self.at_mark("?") {
            return Ok(cond);
        }
        self.nested(|parser| {
            let height = parser.height;
            parser.advance();
            let if_true = parser.expression()?;
            let height = height.max(parser.height);
            let colon = parser.expect(":", "after the second operand of `?`")?;
            parser.roles.note(colon, Role::Conditional);
            let if_false = parser.conditional()?;
            let span = cond.span.to(if_false.span);
            parser.grow(height.max(parser.height), span)?;
            let (cond, if_true) = (Box::new(cond), Box::new(if_true));
            Ok(Expr { kind: ExprKind::Conditional(cond, if_true, Box::new(if_false)), span })
        })
    }

    /// Parses operators that bind at least as tightly as `level`.
    fn binary(&mut self, level: u8) -> Parsed<Expr> {
        let mut left = self.unary()?;
        loop {
            let TokenKind::Mark(mark) = self.token().kind else { return Ok(left) };
            let Some((operator, own_level)) = binary_operator(mark) else { return Ok(left) };
            let is_closing = self.angle_depth > 0 && mark.starts_with('>');
            if own_level < level || is_closing {
                return Ok(left);
            }
            let height = self.height;
            self.advance();
            let right = self.binary(own_level + 1)?;
            left = self
                .join(left, height, right, |left, right| ExprKind::Binary(operator, left, right))?;
        }
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let operator = match self.token().kind {
            TokenKind::Mark("-") => UnaryOperator::Minus,
            TokenKind::Mark("+") => UnaryOperator::Plus,
            TokenKind::Mark("~") => UnaryOperator::BitNot,
            TokenKind::Mark("!") => UnaryOperator::Not,
            TokenKind::Mark("*") => UnaryOperator::Dereference,
            TokenKind::Mark("&") => UnaryOperator::AddressOf,
            TokenKind::Mark(mark @ ("++" | "--")) => {
                let increment = mark == "++";
                self.note(Role::Prefix);
                return self.wrap_next(start, |target| ExprKind::Step {
                    increment,
                    prefix: true,
                    target,
                });
            }
            TokenKind::Mark("(") if self.at_cast() => return self.cast(),
            TokenKind::Name(ref name) if name == "sizeof" => return self.sizeof(),
            _ => return self.postfix(),
        };
        self.note(Role::Prefix);
        self.wrap_next(start, |value| ExprKind::Unary(operator, value))
    }

    /// Consumes an operator, parses its operand, and combines the two.
    fn wrap_next(&mut self, start: Span, kind: impl FnOnce(Box<Expr>) -> ExprKind) -> Parsed<Expr> {
        self.nested(|parser| {
            parser.advance();
            let value = parser.unary()?;
            let span = start.to(value.span);
            parser.grow(parser.height, span)?;
            Ok(Expr { kind: kind(Box::new(value)), span })
        })
    }

    /// Returns whether the `(` here begins a cast.
    fn at_cast(&self) -> bool {
        let Some(name) = self.ahead(1).name() else { return false };
        let after = self.ahead(2);
        if matches!(name, "struct" | "union" | "enum" | "const" | "float" | "double") {
            return true;
        }
        if self.is_type_name(name) {
            // A variable may have the name of a type; these tokens cannot follow a type.
            return [")", "*", "<", "##"].iter().any(|mark| after.is_mark(mark))
                || after.name().is_some();
        }
        if after.is_mark("*") {
            let mut at = 3;
            while self.ahead(at).is_mark("*") {
                at += 1;
            }
            return self.ahead(at).is_mark(")");
        }
        after.is_mark(")")
            && match &self.ahead(3).kind {
                TokenKind::Name(_) | TokenKind::Number(..) | TokenKind::Char(_) => true,
                TokenKind::Text(_) | TokenKind::Ipv4(_) | TokenKind::Mac(_) => true,
                TokenKind::Mark(mark) => matches!(*mark, "(" | "{" | "~" | "!"),
                _ => false,
            }
    }

    fn cast(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.nested(|parser| {
            parser.advance();
            let ty = parser.outside_angles(Self::type_expr)?;
            let end = parser.expect(")", "after the type of a cast")?;
            parser.roles.note(end, Role::CastEnd);
            let value = match parser.at_mark("{") {
                true => parser.initialiser()?,
                false => parser.unary()?,
            };
            let span = start.to(value.span);
            parser.grow(parser.height, span)?;
            Ok(Expr { kind: ExprKind::Cast(ty, Box::new(value)), span })
        })
    }

    fn sizeof(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let is_type = self.ahead(1).is_mark("(") && {
            self.advance();
            let is_type = self.at_cast() && !self.is_lone_unknown_name();
            self.at -= 1;
            is_type
        };
        if !is_type {
            return self.wrap_next(start, ExprKind::SizeofExpr);
        }
        self.advance();
        self.advance();
        let ty = self.outside_angles(Self::type_expr)?;
        self.expect(")", "after the type")?;
        self.height = 1;
        Ok(Expr { kind: ExprKind::SizeofType(ty), span: self.span_from(start) })
    }

    /// Returns whether `(name)` is next and the name is not a known type.
    fn is_lone_unknown_name(&self) -> bool {
        let is_known = self.ahead(1).name().is_some_and(|name| self.is_type_name(name));
        self.ahead(2).is_mark(")") && !is_known
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut value = self.primary()?;
        loop {
            let TokenKind::Mark(mark) = self.token().kind else { return Ok(value) };
            let height = self.height;
            let of = Box::new(value);
            let start = of.span;
            let kind = match mark {
                "[" => self.index(of)?,
                "." | "->" => {
                    self.note(Role::Member);
                    self.advance();
                    let member = self.name("the name of a member")?;
                    self.height = 0;
                    match mark == "." && self.eat("(") {
                        true => ExprKind::MethodCall(of, member, self.arguments()?),
                        false => ExprKind::Member { of, member, through_pointer: mark == "->" },
                    }
                }
                "++" | "--" => {
                    self.note(Role::Postfix);
                    self.advance();
                    ExprKind::Step { increment: mark == "++", prefix: false, target: of }
                }
                _ => return Ok(*of),
            };
            if matches!(kind, ExprKind::Step { .. }) {
                self.height = 0;
            }
            let span = self.span_from(start);
            self.grow(height.max(self.height), span)?;
            value = Expr { kind, span };
        }
    }

    /// Parses `[i]` or `[hi:lo]`; stores the height of its contents.
    fn index(&mut self, of: Box<Expr>) -> Parsed<ExprKind> {
        self.advance();
        self.outside_angles(|parser| {
            let first = Box::new(parser.expression()?);
            let height = parser.height;
            if !parser.eat_as(":", Role::Slice) {
                parser.expect("]", "after an index")?;
                return Ok(ExprKind::Index(of, first));
            }
            let last = Box::new(parser.expression()?);
            parser.expect("]", "after a bit range")?;
            parser.height = parser.height.max(height);
            Ok(ExprKind::Slice(of, first, last))
        })
    }

    /// Parses a literal, a name, a call or an expression in parentheses.
    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        self.height = 1;
        let kind = match self.token().kind.clone() {
            TokenKind::Number(value, suffix) => ExprKind::Number(value, suffix),
            TokenKind::Char(byte) => ExprKind::Char(byte),
            TokenKind::Text(text) => ExprKind::Text(text),
            TokenKind::Ipv4(address) => ExprKind::Ipv4(address),
            TokenKind::Mac(address) => ExprKind::Mac(address),
            TokenKind::Name(name) if name == "true" || name == "false" => {
                ExprKind::Bool(name == "true")
            }
            TokenKind::Name(_) => return self.name_or_call(),
            TokenKind::Mark("(") => {
                self.advance();
                let inner = self.outside_angles(Self::expression)?;
                self.expect(")", "after an expression in parentheses")?;
                return Ok(Expr { span: self.span_from(span), ..inner });
            }
            _ => return self.unexpected("an expression"),
        };
        self.advance();
        Ok(Expr { kind, span })
    }

    fn name_or_call(&mut self) -> Parsed<Expr> {
        if self.at_word("new") && self.ahead(1).name().is_some() {
            let message = "memory cannot be allocated at run time";
            return self.fail("E0119", self.span(), message, "every array has a fixed size");
        }
        let name = self.name("an expression")?;
        let args = match self.at_mark("<") && self.at_template_args(&name) {
            true => self.template_args()?,
            false => vec![],
        };
        if !self.at_mark("(") {
            self.height = 1;
            let span = self.span_from(name.span);
            return Ok(Expr { kind: ExprKind::Name(name.text, args), span });
        }
        self.advance();
        let values = self.arguments()?;
        let span = self.span_from(name.span);
        self.grow(self.height, span)?;
        Ok(Expr { kind: ExprKind::Call(name, args, values), span })
    }

    /// Parses the arguments of a call, after its `(`; stores the height of the tallest.
    fn arguments(&mut self) -> Parsed<Vec<Expr>> {
        let mut height = 0;
        let values = self.outside_angles(|parser| {
            parser.list(")", "after the arguments", |parser| {
                let value = parser.assignment()?;
                height = height.max(parser.height);
                Ok(value)
            })
        })?;
        self.height = height;
        Ok(values)
    }

    /// Returns whether the `<` after `name` begins template arguments: the name is a known
    /// template, or only a constant is between the `<` and a matching `>` that is followed by `(`.
    fn at_template_args(&self, name: &Name) -> bool {
        self.templates.contains(&name.text)
            || self.past_angles(0).is_some_and(|past| self.ahead(past).is_mark("("))
    }

    /// Finds the end of the `<` that is `open` tokens ahead: the distance to the token after `>`.
    pub(super) fn past_angles(&self, open: usize) -> Option<usize> {
        let (mut angles, mut brackets) = (0u32, 0u32);
        for at in open..open + TEMPLATE_TOKENS_MAX {
            match self.ahead(at).kind {
                TokenKind::Mark("(" | "[") => brackets += 1,
                // A bracket opened before the `<` closes, so the `<` is a comparison.
                TokenKind::Mark(")" | "]") => brackets = brackets.checked_sub(1)?,
                TokenKind::Mark("<" | ">" | ">>" | "<<") if brackets > 0 => {}
                TokenKind::Mark("<") => angles += 1,
                TokenKind::Mark(">") => angles = angles.checked_sub(1)?,
                TokenKind::Mark(">>") => angles = angles.checked_sub(2)?,
                TokenKind::Mark("," | "*" | "+" | "-" | "/" | "%" | "##" | "=" | "<<") => {}
                TokenKind::Mark(_) | TokenKind::Pragma(_) | TokenKind::End => return None,
                _ => {}
            }
            if angles == 0 {
                return Some(at + 1);
            }
        }
        None
    }

    /// Parses the text after `=` in a declaration: an expression or a list in braces.
    pub(super) fn initialiser(&mut self) -> Parsed<Expr> {
        let start = self.span();
        if !self.eat("{") {
            return self.assignment();
        }
        let mut height = 0;
        let items = self.nested(|parser| {
            parser.list("}", "after the values", |parser| {
                if parser.at_mark("[") {
                    let message = "a list contains its elements in order";
                    let help =
                        "write those before it too, `{ 0, 7 }`; values omitted at the end are 0";
                    let label = ("elements have no number here", help);
                    return parser.fail_helped("E0124", parser.span(), message, label);
                }
                let member = match parser.eat(".") {
                    true => {
                        let member = parser.name("the name of a member")?;
                        parser.expect("=", "after the name of a member")?;
                        Some(member)
                    }
                    false => None,
                };
                let value = parser.initialiser()?;
                height = height.max(parser.height);
                Ok((member, value))
            })
        })?;
        let span = self.span_from(start);
        self.grow(height, span)?;
        Ok(Expr { kind: ExprKind::List(items), span })
    }

    /// Combines two operands, the first with the given height, the second just parsed.
    fn join(
        &mut self,
        left: Expr,
        left_height: u32,
        right: Expr,
        kind: impl FnOnce(Box<Expr>, Box<Expr>) -> ExprKind,
    ) -> Parsed<Expr> {
        let span = left.span.to(right.span);
        self.grow(left_height.max(self.height), span)?;
        Ok(Expr { kind: kind(Box::new(left), Box::new(right)), span })
    }

    /// Sets the height of a tree whose tallest child has height `child`.
    fn grow(&mut self, child: u32, span: Span) -> Parsed<()> {
        self.height = child + 1;
        if self.height > HEIGHT_MAX {
            let message = format!("an expression of more than {HEIGHT_MAX} levels");
            return self.fail("E0111", Span { end: span.start, ..span }, message, "split it up");
        }
        Ok(())
    }
}

/// Returns the operator of an assignment mark; the inner `None` is `=`.
fn assignment_operator(mark: &str) -> Option<Option<BinaryOperator>> {
    let operator = match mark {
        "=" => return Some(None),
        "==" | "<=" | ">=" | "!=" => return None,
        _ => mark.strip_suffix('=')?,
    };
    binary_operator(operator).map(|(operator, _)| Some(operator))
}

/// Returns the operator of a mark and its precedence.
fn binary_operator(mark: &str) -> Option<(BinaryOperator, u8)> {
    use BinaryOperator::*;
    Some(match mark {
        "||" => (Or, 0),
        "&&" => (And, 1),
        "|" => (BitOr, 2),
        "^" => (BitXor, 3),
        "&" => (BitAnd, 4),
        "==" => (Eq, 5),
        "!=" => (Ne, 5),
        "<" => (Lt, 6),
        "<=" => (Le, 6),
        ">" => (Gt, 6),
        ">=" => (Ge, 6),
        "<<" => (Shl, 7),
        ">>" => (Shr, 7),
        "+" => (Add, 8),
        "-" => (Sub, 8),
        "*" => (Mul, 9),
        "/" => (Div, 9),
        "%" => (Rem, 9),
        _ => return None,
    })
}
