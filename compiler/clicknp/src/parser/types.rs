// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types, declarators, records and enums.

use super::{Block, Failed, Parsed, Parser, Role};
use crate::ast::{
    Declaration, Enum, Expr, MemoryQualifier, Name, Record, TemplateArg, TemplateParam, TypeExpr,
    TypeKind,
};
use crate::lexer::TokenKind;
use crate::source::Span;

/// Names of built-in types.
pub(super) const BUILT_IN: &[&str] = &[
    "void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "flit",
    "packet", "ClSignal", "unsigned", "signed", "table", "size_t",
];

impl Parser<'_> {
    /// Returns whether that name is known to be a type.
    pub(super) fn is_type_name(&self, name: &str) -> bool {
        let is_declared = self.types.contains(name) && !self.hidden.iter().any(|own| own == name);
        is_declared || is_sized_name(name)
    }

    /// Returns whether a type certainly begins here.
    pub(super) fn at_type(&self) -> bool {
        let words = ["struct", "union", "enum", "const", "float", "double"];
        self.at_table_kind()
            || self.token().name().is_some_and(|it| words.contains(&it) || self.is_type_name(it))
    }

    /// Parses a type with its pointers, without array dimensions.
    pub(super) fn type_expr(&mut self) -> Parsed<TypeExpr> {
        self.nested(|parser| {
            parser.eat_word("const");
            let mut ty = parser.type_without_pointers()?;
            parser.eat_word("const");
            parser.pointers(&mut ty);
            Ok(ty)
        })
    }

    /// Parses any number of `*`.
    pub(super) fn pointers(&mut self, ty: &mut TypeExpr) {
        while self.eat_as("*", Role::Pointer) {
            ty.pointers += 1;
            self.eat_word("const");
        }
        ty.span = self.span_from(ty.span);
    }

    pub(super) fn type_without_pointers(&mut self) -> Parsed<TypeExpr> {
        let start = self.span();
        let kind = match self.token().name() {
            Some("struct" | "union") => self.record_type()?,
            Some("enum") => {
                self.advance();
                TypeKind::Named(self.name("the name of an enum")?.text, vec![])
            }
            Some("float" | "double") => return self.float_type(),
            Some("unsigned" | "signed" | "long" | "short") => self.c_integer_type(),
            Some("int" | "uint") if self.ahead(1).is_mark("<") => {
                let signed = self.at_word("int");
                self.advance();
                self.eat_as("<", Role::Arguments);
                let width = Box::new(self.between_angles(Self::conditional)?);
                TypeKind::Bits { signed, width }
            }
            Some("void" | "bool") => self.named_type("a type")?,
            _ => self.named_type("a type")?,
        };
        Ok(TypeExpr { kind, pointers: 0, span: self.span_from(start) })
    }

    fn named_type(&mut self, what: &str) -> Parsed<TypeKind> {
        let text = match self.token().name() {
            Some(word @ ("void" | "bool")) => {
                let text = word.to_string();
                self.advance();
                text
            }
            _ => self.name(what)?.text,
        };
        if self.eat("##") {
            return Ok(TypeKind::Pasted(text, Box::new(self.primary()?)));
        }
        let has_args = self.at_mark("<") && !self.ahead(1).is_mark("<");
        let args = if has_args { self.template_args()? } else { vec![] };
        Ok(TypeKind::Named(text, args))
    }

    fn float_type<T>(&mut self) -> Parsed<T> {
        let message = "floating-point numbers are not part of the language";
        let help = "use integers, scaled as needed: thousandths in a `uint`, or a fixed number of \
                    fraction bits";
        self.fail_helped("E0105", self.span(), message, ("no type here", help))
    }

    /// Parses C's integer types of several words as the equivalent type of one word.
    fn c_integer_type(&mut self) -> TypeKind {
        let (mut is_unsigned, mut is_signed) = (false, false);
        let mut base = "";
        while let Some(word) = self.token().name() {
            match word {
                "unsigned" => is_unsigned = true,
                "signed" => is_signed = true,
                "char" => base = "char",
                "short" => base = "short",
                "long" => base = "long",
                "int" if base.is_empty() => base = "int",
                "int" => {}
                _ => break,
            }
            self.advance();
        }
        let name = match (base, is_unsigned, is_signed) {
            ("char", false, true) => "int8_t",
            ("char", ..) => "uchar",
            ("short", true, _) => "ushort",
            ("short", ..) => "short",
            ("long", true, _) => "ulong",
            ("long", ..) => "long",
            (_, true, _) => "uint",
            _ => "int",
        };
        TypeKind::Named(name.to_string(), vec![])
    }

    /// Parses `struct name`, or a whole record.
    fn record_type(&mut self) -> Parsed<TypeKind> {
        let start = self.span();
        let is_union = self.at_word("union");
        self.advance();
        let name = match self.at_mark("{") {
            true => None,
            false => Some(self.name("the name of a struct or union, or `{`")?),
        };
        if let Some(name) = &name {
            self.types.insert(name.text.clone());
        }
        if !self.eat_as("{", Role::Block(Block::Record)) {
            let name = name.map(|name| name.text).ok_or(Failed)?;
            return Ok(TypeKind::Named(name, vec![]));
        }
        let mut members = vec![];
        while !self.at_mark("}") && !self.is_at_end() && !self.at_section() {
            let at = self.at;
            let member = |parser: &mut Self| parser.declarations("a member");
            match self.nested(|parser| parser.scope(member)) {
                Ok(more) => members.extend(more),
                Err(Failed) => self.skip_statement(at),
            }
        }
        self.expect("}", "after the members")?;
        let span = self.span_from(start);
        Ok(TypeKind::Record(Box::new(Record { name, is_union, members, span })))
    }

    /// Parses `enum [name] { A, B = 3 }`; `enum` is next.
    pub(super) fn enum_definition(&mut self) -> Parsed<Enum> {
        let start = self.span();
        self.advance();
        let name = match self.at_mark("{") {
            true => None,
            false => Some(self.name("the name of an enum, or `{`")?),
        };
        if let Some(name) = &name {
            self.types.insert(name.text.clone());
        }
        self.reject_forward("an enum", start)?;
        self.expect_block(Block::Enum, "before the values")?;
        let variants = self.list("}", "after the values", |parser| {
            let name = parser.name("the name of a value")?;
            let value = if parser.eat("=") { Some(parser.conditional()?) } else { None };
            Ok((name, value))
        })?;
        Ok(Enum { name, variants })
    }

    /// Parses variables or members of one type, including the final `;`.
    pub(super) fn declarations(&mut self, what: &str) -> Parsed<Vec<Declaration>> {
        let start = self.span();
        self.reject_storage(what)?;
        let (place, is_const) = self.qualifiers();
        let table_kind = match self.at_table_kind() {
            true => Some(self.name("the kind of a table")?),
            false => None,
        };
        if is_const && self.token().name().is_some() && self.ahead(1).is_mark("=") {
            let name = self.token().name().unwrap_or_default();
            let help = format!("write its type: `const uint {name} = ...;`");
            let label = ("the type precedes the name", help);
            return self.fail_helped("E0110", self.span(), "a constant without a type", label);
        }
        let base = self.type_without_pointers()?;
        let is_const = self.eat_word("const") || is_const;
        let is_record = matches!(base.kind, TypeKind::Record(_));
        let mut all = vec![];
        if is_record && self.at_mark(";") {
            let span = self.span_from(start);
            all.push(Declaration { span, ..plain(base.clone(), None, start) });
        } else {
            loop {
                let declaration = self.declarator(&base, what)?;
                let table_kind = table_kind.clone();
                all.push(Declaration { place, is_const, table_kind, ..declaration });
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect(";", "after a declaration")?;
        Ok(all)
    }

    /// Reports C's storage and usage qualifiers.
    fn reject_storage(&mut self, what: &str) -> Parsed<()> {
        let is_word = matches!(self.token().name(), Some("static" | "extern" | "volatile"));
        if !is_word || self.ahead(1).name().is_none() {
            return Ok(());
        }
        let word = self.token().name().unwrap_or_default().to_string();
        let help = match what {
            _ if word != "static" => format!("remove `{word}`"),
            "a variable" => "declare variables that are kept from one firing to the next in \
                             `.state { ... }`, without `static`"
                .to_string(),
            _ => "remove `static`".to_string(),
        };
        let message = format!("`{word}` is not part of the language");
        self.fail_helped("E0122", self.span(), message, ("not a type", help))
    }

    /// Returns whether a kind of table is next, before the word `table`.
    pub(super) fn at_table_kind(&self) -> bool {
        let is_kind = ["lru", "lpm", "array"].iter().any(|kind| self.at_word(kind));
        is_kind && self.ahead(1).name() == Some("table") && self.ahead(2).is_mark("<")
    }

    /// Parses `register`, `local`, `global`, `const` in any order.
    pub(super) fn qualifiers(&mut self) -> (Option<MemoryQualifier>, bool) {
        let (mut place, mut is_const) = (None, false);
        loop {
            // `local` and `global` are names unless a type follows.
            let is_qualifier = self.ahead(1).name().is_some();
            match self.token().name() {
                Some("register") => place = Some(MemoryQualifier::Register),
                Some("local") if is_qualifier => place = Some(MemoryQualifier::Local),
                Some("global") if is_qualifier => place = Some(MemoryQualifier::Global),
                Some("const") => is_const = true,
                _ => return (place, is_const),
            }
            self.advance();
        }
    }

    /// Parses pointers, name, dimensions, width and initialiser of one variable of that type.
    pub(super) fn declarator(&mut self, base: &TypeExpr, what: &str) -> Parsed<Declaration> {
        let start = self.span();
        let mut ty = base.clone();
        self.pointers(&mut ty);
        self.reject_function_pointer()?;
        let is_unnamed_field = self.at_mark(":");
        let name = match is_unnamed_field {
            true => None,
            false => Some(self.name(&format!("the name of {what}"))?),
        };
        if let Some(name) = &name {
            self.hide_type(name);
        }
        let dimensions = self.dimensions()?;
        let bit_width = if self.eat(":") { Some(self.conditional()?) } else { None };
        let init = if self.eat("=") { Some(self.initialiser()?) } else { None };
        let span = self.span_from(start);
        Ok(Declaration { dimensions, bit_width, init, span, ..plain(ty, name, start) })
    }

    pub(super) fn reject_function_pointer(&mut self) -> Parsed<()> {
        if self.at_mark("(") && self.ahead(1).is_mark("*") {
            let message = "function pointers are not part of the language";
            return self.fail("E0117", self.span(), message, "");
        }
        Ok(())
    }

    /// Parses any number of `[N]`.
    pub(super) fn dimensions(&mut self) -> Parsed<Vec<Option<Expr>>> {
        let mut dimensions = vec![];
        while self.eat("[") {
            let is_open = self.at_mark("]");
            let length = if is_open { None } else { Some(self.outside_angles(Self::conditional)?) };
            dimensions.push(length);
            self.expect("]", "after an array's length")?;
        }
        Ok(dimensions)
    }

    /// Parses the text between `<` and `>`; the `<` is already consumed.
    pub(super) fn between_angles<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        self.angle_depth += 1;
        let result = parse(self);
        self.angle_depth -= 1;
        let result = result?;
        self.close_angle()?;
        Ok(result)
    }

    /// Parses the contents of other brackets, where `>` is an operator again.
    pub(super) fn outside_angles<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Parsed<T>,
    ) -> Parsed<T> {
        let depth = std::mem::take(&mut self.angle_depth);
        let result = parse(self);
        self.angle_depth = depth;
        result
    }

    /// Consumes one `>`, also from the start of `>>`, `>=` or `>>=`.
    fn close_angle(&mut self) -> Parsed<()> {
        self.note(Role::AngleEnd);
        let rest = match self.token().kind {
            TokenKind::Mark(">") => {
                self.advance();
                return Ok(());
            }
            TokenKind::Mark(">>") => ">",
            TokenKind::Mark(">=") => "=",
            TokenKind::Mark(">>=") => ">=",
            _ => return self.unexpected("`>`"),
        };
        let token = &mut self.tokens[self.at];
        token.kind = TokenKind::Mark(rest);
        token.span.start += 1;
        Ok(())
    }

    /// Parses `<a, b>`; the `<` is next.
    pub(super) fn template_args(&mut self) -> Parsed<Vec<TemplateArg>> {
        self.eat_as("<", Role::Arguments);
        self.between_angles(|parser| {
            let mut args = vec![];
            while !parser.at_mark(">") && !parser.at_mark(">>") {
                args.push(parser.template_arg()?);
                if !parser.eat(",") {
                    break;
                }
            }
            Ok(args)
        })
    }

    /// Parses a type or a constant; a lone name that is not a known type becomes a constant.
    pub(super) fn template_arg(&mut self) -> Parsed<TemplateArg> {
        if self.at_type() || self.ahead(1).is_mark("*") && self.ends_argument(2) {
            return Ok(TemplateArg::Type(self.type_expr()?));
        }
        Ok(TemplateArg::Value(self.conditional()?))
    }

    fn ends_argument(&self, count: usize) -> bool {
        let token = self.ahead(count);
        [",", ">", ">>"].iter().any(|mark| token.is_mark(mark))
    }

    /// Parses `<uint N = 2, T>`, if present.
    pub(super) fn template_params(&mut self) -> Parsed<Vec<TemplateParam>> {
        if !self.eat_as("<", Role::Parameters) {
            return Ok(vec![]);
        }
        self.between_angles(|parser| {
            let mut params = vec![];
            while !parser.at_mark(">") {
                params.push(parser.template_param()?);
                if !parser.eat(",") {
                    break;
                }
            }
            Ok(params)
        })
    }

    fn template_param(&mut self) -> Parsed<TemplateParam> {
        let is_marked_type =
            self.ahead(1).name().is_some() && (self.eat_word("typename") || self.eat_word("class"));
        let is_lone = !is_marked_type && self.ahead(1).name().is_none() && !self.at_type();
        let ty = match is_lone || is_marked_type {
            true => None,
            false => Some(self.type_expr()?),
        };
        let name = self.name("the name of a parameter")?;
        if is_marked_type {
            self.types.insert(name.text.clone());
        }
        let default = if self.eat("=") { Some(self.template_arg()?) } else { None };
        Ok(TemplateParam { ty, name, default })
    }
}

/// Returns the type of that name.
pub(super) fn plain_type(name: &str, span: Span) -> TypeExpr {
    TypeExpr { kind: TypeKind::Named(name.to_string(), vec![]), pointers: 0, span }
}

/// Returns a declaration without optional parts.
pub(super) fn plain(ty: TypeExpr, name: Option<Name>, span: Span) -> Declaration {
    Declaration {
        place: None,
        table_kind: None,
        is_const: false,
        ty,
        name,
        dimensions: vec![],
        bit_width: None,
        init: None,
        span,
    }
}

/// Returns whether a name has the form `uint13`, `int64_t` or similar.
fn is_sized_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("uint").or_else(|| name.strip_prefix("int")) else {
        return false;
    };
    let digits = rest.strip_suffix("_t").unwrap_or(rest);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
