// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Top-level items of a file: imports, types, constants, functions, elements, groups.

use super::types::{plain, plain_type};
use super::{Block, Failed, Parsed, Parser, Role};
use crate::ast::{
    Declaration, Element, File, Function, Group, Import, Port, Section, TopItem, TypeExpr,
    TypeKind, Typedef,
};
use crate::lexer::TokenKind;
use crate::source::Span;

/// Sections that an element may have.
const ELEMENT_SECTIONS: [&str; 5] = ["state", "init", "handler", "signal", "method"];

impl Parser<'_> {
    /// Parses every item up to the end.
    pub(super) fn file(&mut self) -> File {
        let mut file = File::default();
        while !self.is_at_end() {
            let at = self.at;
            let is_config = self.at_config();
            match self.item() {
                Ok(items) => file.items.extend(items),
                Err(Failed) if is_config && !self.at_mark("}") => self.skip_config(at),
                Err(Failed) => self.skip_item(at),
            }
        }
        file
    }

    fn item(&mut self) -> Parsed<Vec<TopItem>> {
        if self.eat(";") {
            return Ok(vec![]);
        }
        if self.at_manager() {
            let manager = self.scope(|parser| parser.manager(&[]))?;
            return Ok(vec![TopItem::Config(manager)]);
        }
        if self.at_mark(".") {
            return Ok(vec![TopItem::Element(self.scope(Self::element)?)]);
        }
        match self.token().name() {
            Some("import") => Ok(vec![TopItem::Import(self.import()?)]),
            Some("typedef") => self.typedefs(),
            Some("enum") => self.enum_item(),
            Some("const") => {
                let constants = self.declarations("a constant")?;
                Ok(constants.into_iter().map(TopItem::Const).collect())
            }
            Some("elementclass") if self.ahead(1).name().is_some() => {
                let message = "`elementclass` is called `group` here";
                let help = "write `group Name (packet in -> packet out) { ... }`; `begin` and \
                            `end` are its ports, in place of `input` and `output`";
                self.fail_helped("E0126", self.span(), message, ("as in Click", help))
            }
            Some("group") if self.ahead(1).name().is_some() => {
                Ok(vec![TopItem::Group(self.scope(Self::group)?)])
            }
            Some(_) if self.ahead(1).is_mark("(") && self.is_undeclared_element() => {
                self.undeclared_element()
            }
            _ if self.at_config() => Ok(vec![TopItem::Config(self.config_statement()?)]),
            Some(_) => self.record_or_function(),
            None => self.unexpected("an element, a function or a statement of the configuration"),
        }
    }

    /// Recovers from an error: skips to a likely start of an item.
    fn skip_item(&mut self, start: usize) {
        let mut depth = 0u32;
        while !self.is_at_end() {
            let begins_element = self.at_section() && self.ahead(1).name() == Some("element");
            let begins_word = self.token().is_first_on_line && self.at_item_word();
            if self.at > start && (begins_element || depth == 0 && begins_word) {
                return;
            }
            match self.token().kind {
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.advance();
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
            if depth == 0 && self.token().is_first_on_line && self.at_config() {
                return;
            }
        }
    }

    /// Returns whether `Name(arguments) ->` or `Name(arguments) ::` is next.
    fn is_undeclared_element(&self) -> bool {
        let mut depth = 0u32;
        let mut at = 1;
        loop {
            match self.ahead(at).kind {
                TokenKind::Mark("(") => depth += 1,
                TokenKind::Mark(")") => depth -= 1,
                TokenKind::Mark("{" | "}" | ";") | TokenKind::End => return false,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return ["->", "::", "["].iter().any(|mark| self.ahead(at).is_mark(mark));
            }
        }
    }

    /// Reports an element in place of an instance name.
    pub(super) fn undeclared_element<T>(&mut self) -> Parsed<T> {
        let name = self.token().name().unwrap_or_default().to_string();
        let message = format!("`{name}(...)` is not how an instance is named");
        let help = format!(
            "declare an instance first, `{name} :: name` or `{name}<arguments> :: name`, and put \
             its name here; packets come from `from_tor`, and go to `to_tor`"
        );
        self.fail_helped("E0126", self.span(), message, ("as in Click", help))
    }

    /// Reports a declaration without a definition.
    pub(super) fn reject_forward(&mut self, what: &str, start: Span) -> Parsed<()> {
        if !self.at_mark(";") {
            return Ok(());
        }
        let message = format!("{what} is declared here and not defined");
        let help = "remove this: names may be used before they are defined";
        self.fail_helped("E0123", self.span_from(start), message, ("a forward declaration", help))
    }

    fn at_item_word(&self) -> bool {
        let words = ["import", "typedef", "struct", "union", "enum", "const", "template", "inline"];
        let name = self.token().name();
        name.is_some_and(|name| words.contains(&name) || name == "group" && !self.at_config())
    }

    fn import(&mut self) -> Parsed<Import> {
        let start = self.span();
        self.advance();
        let TokenKind::Text(path) = self.token().kind.clone() else {
            return self.unexpected("the path of a file in quotation marks");
        };
        self.advance();
        let span = self.span_from(start);
        self.eat(";");
        Ok(Import { path, span })
    }

    fn typedefs(&mut self) -> Parsed<Vec<TopItem>> {
        self.advance();
        let base = self.type_without_pointers()?;
        let mut items = vec![];
        loop {
            let mut ty = base.clone();
            self.pointers(&mut ty);
            self.reject_function_pointer()?;
            let name = self.name("the name of the type")?;
            self.types.insert(name.text.clone());
            let dimensions = self.dimensions()?;
            items.push(TopItem::Typedef(Typedef { name, ty, dimensions }));
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";", "after a type")?;
        Ok(items)
    }

    fn enum_item(&mut self) -> Parsed<Vec<TopItem>> {
        let item = TopItem::Enum(self.enum_definition()?);
        self.expect(";", "after an enum")?;
        Ok(vec![item])
    }

    /// Parses `struct name { ... };`, or a function.
    fn record_or_function(&mut self) -> Parsed<Vec<TopItem>> {
        let (first, start) = (self.at, self.span());
        let is_record = matches!(self.token().name(), Some("struct" | "union"));
        let template = match self.eat_word("template") {
            true => self.template_params()?,
            false => vec![],
        };
        let mut is_inline = false;
        while self.at_word("inline") || self.at_word("static") {
            is_inline |= self.at_word("inline");
            self.advance();
        }
        let mut is_constant = self.at_word("const");
        let mut result = match is_constant {
            true => plain_type("const", start),
            false => self.type_without_pointers()?,
        };
        is_constant |= self.at_word("const");
        if is_constant && template.is_empty() {
            // Handles `static const T name` and `T const name`.
            self.at = first;
            while self.eat_word("static") || self.eat_word("inline") {}
            let constants = self.declarations("a constant")?;
            return Ok(constants.into_iter().map(TopItem::Const).collect());
        }
        if is_record && !matches!(result.kind, TypeKind::Record(_)) {
            self.reject_forward("a struct or union", start)?;
        }
        if let TypeKind::Record(record) = &result.kind
            && self.eat(";")
        {
            return Ok(vec![TopItem::Record((**record).clone())]);
        }
        self.pointers(&mut result);
        self.reject_function_pointer()?;
        let name = self.name("the name of a function")?;
        if !self.at_mark("(") {
            if self.at_mark("=") || self.at_mark(";") || self.at_mark("[") || self.at_mark(",") {
                let message = format!("`{}` is a variable outside any element", name.text);
                let help = "put it in the `.state { ... }` of the element that uses it, or write \
                            `const` before it if it never changes";
                return self.fail_helped("E0116", name.span, message, ("a global variable", help));
            }
            return self.unexpected("`(` after the name of a function");
        }
        if !template.is_empty() {
            self.templates.insert(name.text.clone());
        }
        let function = self.scope(|parser| parser.function_from(start, result, name))?;
        Ok(vec![TopItem::Function(Function { template, is_inline, ..function })])
    }

    /// Parses a function from its parameters on.
    fn function_from(
        &mut self,
        start: Span,
        result: TypeExpr,
        name: crate::ast::Name,
    ) -> Parsed<Function> {
        self.expect("(", "before the parameters")?;
        let is_void = self.at_word("void") && self.ahead(1).is_mark(")");
        if is_void {
            self.advance();
        }
        let params = self.list(")", "after the parameters", Self::parameter)?;
        let span = self.span_from(start);
        self.reject_forward("a function", start)?;
        let body = self.block("before the body of a function")?;
        Ok(Function { template: vec![], is_inline: false, result, name, params, body, span })
    }

    fn parameter(&mut self) -> Parsed<Declaration> {
        let start = self.span();
        if self.at_mark("...") {
            return self.fail("E0120", start, "a function has a fixed number of parameters", "");
        }
        let is_const = self.at_word("const");
        let ty = self.type_expr()?;
        self.reject_function_pointer()?;
        let name = self.name("the name of a parameter")?;
        self.hide_type(&name);
        let dimensions = self.dimensions()?;
        let span = self.span_from(start);
        Ok(Declaration { is_const, dimensions, span, ..plain(ty, Some(name), start) })
    }

    /// Parses `.element ...`; its `.` is next.
    fn element(&mut self) -> Parsed<Element> {
        let (start, manual) = (self.span(), self.token().manual.clone());
        self.advance();
        if !self.eat_word("element") {
            return self.unexpected("`element` after `.`");
        }
        let name = self.name("the name of an element")?;
        self.reject_forward("an element", start)?;
        let params = self.template_params()?;
        let (inputs, outputs) = self.ports()?;
        let await_all = self.eat_word("await");
        if await_all && !self.eat_word("all") {
            return self.unexpected("`all` after `await`");
        }
        let interval = match self.at_word("interval") {
            true => {
                self.note(Role::Keyword);
                self.advance();
                Some(self.conditional()?)
            }
            false => None,
        };
        let span = self.span_from(start);
        self.reject_forward("an element", start)?;
        let sections = self.sections(&ELEMENT_SECTIONS)?;
        Ok(Element { manual, name, params, inputs, outputs, await_all, interval, sections, span })
    }

    /// Parses `(inputs -> outputs)`.
    fn ports(&mut self) -> Parsed<(Vec<Port>, Vec<Port>)> {
        let bracket = self.expect("(", "before the ports")?;
        self.roles.note(bracket, Role::Ports);
        let mut inputs = vec![];
        while !self.at_mark("->") {
            inputs.push(self.port()?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("->", "between inputs and outputs")?;
        let outputs = self.list(")", "after the ports", Self::port)?;
        Ok((inputs, outputs))
    }

    fn port(&mut self) -> Parsed<Port> {
        let ty = self.type_expr()?;
        let name = self.name("the name of a port")?;
        self.hide_type(&name);
        let count = match self.eat("[") {
            true => {
                let count = self.conditional()?;
                self.expect("]", "after the number of ports")?;
                Some(count)
            }
            false => None,
        };
        Ok(Port { ty, name, count })
    }

    /// Parses `{ sections }`; allowed are sections with these names, and functions.
    pub(super) fn sections(&mut self, allowed: &[&str]) -> Parsed<Vec<Section>> {
        let start = self.expect_block(Block::Sections, "before the sections of an element")?;
        let mut sections = vec![];
        while !self.at_mark("}") {
            let begins_element = self.at_mark(".") && self.ahead(1).name() == Some("element");
            if self.is_at_end() || begins_element || self.at_manager() {
                return self.fail("E0112", start, "this brace is never closed", "opened here");
            }
            let at = self.at;
            match self.section(allowed) {
                Ok(section) => sections.push(section),
                Err(Failed) => self.skip_section(at),
            }
        }
        self.advance();
        Ok(sections)
    }

    /// Recovers from an error: skips to the next section or to the brace that ends the element.
    fn skip_section(&mut self, start: usize) {
        if self.at > start && self.at_section() {
            return;
        }
        self.skip_statement(start);
        if self.at == start {
            self.advance();
        }
    }

    fn section(&mut self, allowed: &[&str]) -> Parsed<Section> {
        let start = self.span();
        if !self.eat(".") {
            return Ok(Section::Function(self.element_function(start)?));
        }
        let word = self.token().name().unwrap_or_default().to_string();
        if !allowed.contains(&word.as_str()) {
            let message = format!("there is no section `.{word}`");
            let label = format!("there are .{}", allowed.join(", ."));
            return self.fail("E0115", self.span(), message, label);
        }
        self.advance();
        let place = format!("after `.{word}`");
        Ok(match word.as_str() {
            "state" => Section::State(self.state(&place)?, self.span_from(start)),
            "init" => Section::Init(self.block(&place)?, self.span_from(start)),
            "handler" => Section::Handler(self.block(&place)?, self.span_from(start)),
            "signal" => Section::Signal(self.block(&place)?, self.span_from(start)),
            _ => Section::Method(self.element_function(start)?),
        })
    }

    fn state(&mut self, place: &str) -> Parsed<Vec<Declaration>> {
        let start = self.expect_block(Block::State, place)?;
        let mut declarations = vec![];
        while !self.at_mark("}") {
            if self.is_at_end() || self.at_section() {
                return self.fail("E0112", start, "this brace is never closed", "opened here");
            }
            let at = self.at;
            match self.declarations("a variable") {
                Ok(more) => declarations.extend(more),
                Err(Failed) => {
                    self.skip_statement(at);
                    if self.at == at && !self.at_mark("}") && !self.at_section() {
                        self.advance();
                    }
                }
            }
        }
        self.advance();
        Ok(declarations)
    }

    fn element_function(&mut self, start: Span) -> Parsed<Function> {
        let template = match self.eat_word("template") {
            true => self.template_params()?,
            false => vec![],
        };
        self.eat_word("static");
        let is_inline = self.eat_word("inline");
        // It is a variable, which is not allowed here.
        let (_, is_const) = self.qualifiers();
        if self.at_table_kind() {
            self.advance();
        }
        let result = self.type_expr()?;
        let name = self.name("the name of a function")?;
        if ["=", ";", "[", ","].iter().any(|mark| self.at_mark(mark)) {
            let message = format!("`{}` is declared outside `.state`", name.text);
            let help = match is_const {
                true => "put it in `.state { ... }`, or at the top of the file",
                false => {
                    "put it in `.state { ... }`: variables there live as long as the \
                     instance, and all sections can use them"
                }
            };
            let label = ("a variable of the element", help);
            return self.fail_helped("E0121", name.span, message, label);
        }
        if !template.is_empty() {
            self.templates.insert(name.text.clone());
        }
        let function = self.scope(|parser| parser.function_from(start, result, name))?;
        Ok(Function { template, is_inline, ..function })
    }

    /// Parses `group name(ports) { configuration }`; `group` is next.
    fn group(&mut self) -> Parsed<Group> {
        let (start, manual) = (self.span(), self.token().manual.clone());
        self.advance();
        let name = self.name("the name of a group")?;
        let params = self.template_params()?;
        let (inputs, outputs) = self.ports()?;
        let span = self.span_from(start);
        let place = "before the configuration of a group";
        let brace = self.expect_block(Block::Group, place)?;
        let mut statements = vec![];
        while !self.eat("}") {
            if self.is_at_end() || self.at_section() && !self.at_manager() {
                return self.fail("E0112", brace, "this brace is never closed", "opened here");
            }
            if self.eat(";") {
                continue;
            }
            let at = self.at;
            let statement = match self.at_manager() {
                true => self.scope(|parser| parser.manager(&params)),
                false => self.config_statement(),
            };
            match statement {
                Ok(statement) => statements.push(statement),
                Err(Failed) => self.skip_config(at),
            }
        }
        Ok(Group { manual, name, params, inputs, outputs, statements, span })
    }
}
