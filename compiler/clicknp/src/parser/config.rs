// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The configuration: declarations of instances, and chains of connections.
//!
//! Line ends have no meaning and `;` is optional, so each statement must be self-delimiting: the
//! count of an array of instances and the number of a copy are a single number, name or
//! parenthesised expression.

use super::{Parsed, Parser, Role};
use crate::ast::{
    ConfigNode, ConfigStatement, Connection, EdgeOptions, Element, Expr, InstanceDeclaration, Name,
    ObjectProgram, PortSelector, TemplateArg, TemplateParam,
};
use crate::lexer::TokenKind;

/// Sections that a manager may have.
const MANAGER_SECTIONS: [&str; 3] = ["state", "init", "method"];

impl Parser<'_> {
    /// Returns whether a statement of the configuration begins here.
    pub(super) fn at_config(&self) -> bool {
        if self.token().name().is_none() {
            return self.at_mark("[");
        }
        let starts = |count: usize| {
            let next = self.ahead(count);
            ["::", "->", "[", "#"].iter().any(|mark| next.is_mark(mark))
                || next.is_mark("<")
                    && self.past_angles(count).is_some_and(|past| self.ahead(past).is_mark("::"))
        };
        let mut words = 0;
        while matches!(self.ahead(words).name(), Some("host" | "verilog")) {
            words += 1;
        }
        if self.is_object(words) {
            return true;
        }
        let is_declared = self.ahead(words).name().is_some() && starts(words + 1);
        is_declared || starts(1)
    }

    pub(super) fn config_statement(&mut self) -> Parsed<ConfigStatement> {
        if self.at_mark("[") {
            let message = "a chain begins with the name of an instance or endpoint";
            return self.fail("E0110", self.span(), message, "no port is entered here");
        }
        let start = self.at;
        let mut at = 0;
        while matches!(self.ahead(at).name(), Some("host" | "verilog")) {
            at += 1;
        }
        let has_type = self.is_object(at)
            || self.ahead(at).name().is_some()
                && (self.ahead(at + 1).is_mark("::") || self.ahead(at + 1).is_mark("<"));
        let statement = match has_type {
            true => ConfigStatement::Declare(self.instance()?),
            false => ConfigStatement::Connect(self.chain()?),
        };
        debug_assert!(self.at > start);
        self.roles.note_config(self.tokens[start].span, self.last_span());
        self.eat(";");
        Ok(statement)
    }

    /// Parses `.manager { sections }`, with the parameters of the enclosing group.
    pub(super) fn manager(&mut self, params: &[TemplateParam]) -> Parsed<ConfigStatement> {
        let (start, manual) = (self.span(), self.token().manual.clone());
        self.advance();
        let name = self.name("`manager`")?;
        let span = self.span_from(start);
        let sections = self.sections(&MANAGER_SECTIONS)?;
        Ok(ConfigStatement::Manager(Box::new(Element {
            manual,
            name,
            params: params.to_vec(),
            inputs: vec![],
            outputs: vec![],
            await_all: false,
            interval: None,
            sections,
            span,
        })))
    }

    /// Recovers from an error: skips to the next line, `;` or closing brace.
    pub(super) fn skip_config(&mut self, start: usize) {
        let mut depth = 0u32;
        while !self.is_at_end() && !self.at_section() {
            match self.token().kind {
                TokenKind::Mark("}") if depth == 0 => return,
                TokenKind::Mark("{") => depth += 1,
                TokenKind::Mark("}") => depth -= 1,
                TokenKind::Mark(";") if depth == 0 => {
                    self.advance();
                    return;
                }
                _ if depth == 0 && self.at > start && self.token().is_first_on_line => return,
                _ => {}
            }
            self.advance();
        }
    }

    /// Returns whether `xdp "path"` is `count` tokens ahead.
    fn is_object(&self, count: usize) -> bool {
        let is_path = matches!(self.ahead(count + 1).kind, TokenKind::Text(_));
        self.ahead(count).name() == Some("xdp") && is_path
    }

    /// Parses `xdp "path" [program]`.
    fn object(&mut self) -> Parsed<ObjectProgram> {
        self.advance();
        let TokenKind::Text(text) = self.token().kind.clone() else {
            return self.unexpected("the path of an object in quotation marks");
        };
        let path = Name { text, span: self.span() };
        self.advance();
        let is_named = self.token().name().is_some();
        let program = if is_named { Some(self.name("the name of a program")?) } else { None };
        Ok(ObjectProgram { path, program })
    }

    /// Parses `[host] [verilog] Type<args> :: name[#N] [@]`, possibly with an object's program
    /// instead of the type.
    fn instance(&mut self) -> Parsed<InstanceDeclaration> {
        let start = self.span();
        let (mut host, mut verilog) = (false, false);
        while self.ahead(1).name().is_some() && !self.is_object(0) {
            match self.token().name() {
                Some("host") => host = true,
                Some("verilog") => verilog = true,
                _ => break,
            }
            self.advance();
        }
        let object = if self.is_object(0) { Some(Box::new(self.object()?)) } else { None };
        let element = match &object {
            Some(object) => object.path.clone(),
            None => self.name("the name of an element")?,
        };
        let args = match self.eat_as("<", Role::Arguments) {
            true => self.between_angles(Self::instance_args)?,
            false => vec![],
        };
        self.expect("::", "between an element and the name of its instance")?;
        let name = self.name("the name of an instance")?;
        let count = if self.eat("#") { Some(self.primary()?) } else { None };
        let controlled = self.eat("@");
        if self.at_mark("(") {
            return self.arguments_of_click(&element, &name);
        }
        let span = self.span_from(start);
        let declared = InstanceDeclaration {
            host,
            verilog,
            element,
            object,
            args,
            name,
            count,
            controlled,
            span,
        };
        Ok(declared)
    }

    /// Reports `name :: Element(arguments)`, and `Element :: name(arguments)`.
    fn arguments_of_click<T>(&mut self, first: &Name, second: &Name) -> Parsed<T> {
        let is_upper = |name: &Name| name.text.starts_with(|c: char| c.is_ascii_uppercase());
        let is_turned = is_upper(second) && !is_upper(first);
        let (element, name) = match is_turned {
            true => (&second.text, &first.text),
            false => (&first.text, &second.text),
        };
        let message = match is_turned {
            true => "an instance is declared in the opposite order here",
            false => "arguments of an element follow its own name here",
        };
        let help = format!(
            "write the element first: `{element} :: {name}`, with arguments in angles, \
             `{element}<2> :: {name}`"
        );
        let span = first.span.to(second.span);
        self.fail_helped("E0126", span, message, ("as in Click", help))
    }

    fn instance_args(&mut self) -> Parsed<Vec<(Option<crate::ast::Name>, TemplateArg)>> {
        let mut args = vec![];
        while !self.at_mark(">") {
            let is_named = self.token().name().is_some() && self.ahead(1).is_mark("=");
            let name = match is_named {
                true => {
                    let name = self.name("the name of a parameter")?;
                    self.advance();
                    Some(name)
                }
                false => None,
            };
            args.push((name, self.template_arg()?));
            if !self.eat(",") {
                break;
            }
        }
        Ok(args)
    }

    /// Parses `a [1] -> b -> [2] c`.
    fn chain(&mut self) -> Parsed<Connection> {
        let mut nodes = vec![self.node()?];
        let mut edges = vec![];
        loop {
            let span = self.span();
            if edges.is_empty() {
                self.expect("->", "after the start of a chain")?;
            } else if !self.eat("->") {
                return Ok(Connection { nodes, edges });
            }
            edges.push(EdgeOptions { span, ..self.edge_options()? });
            nodes.push(self.node()?);
        }
    }

    /// Parses `{depth = 64, lossy}`, if present.
    fn edge_options(&mut self) -> Parsed<EdgeOptions> {
        let mut options = EdgeOptions::default();
        if !self.eat_as("{", Role::Options) {
            return Ok(options);
        }
        let parsed = self.list("}", "after the options of an edge", |parser| {
            if parser.eat_word("lossy") {
                options.lossy = true;
            } else if parser.eat_word("depth") {
                parser.expect("=", "after `depth`")?;
                options.depth = Some(parser.conditional()?);
            } else {
                return parser.unexpected("`depth = N` or `lossy`");
            }
            Ok(())
        });
        if parsed.is_err() {
            while !self.is_at_end() && !self.token().is_first_on_line && !self.eat("}") {
                self.advance();
            }
        }
        parsed.map(|_| options)
    }

    /// Parses `[in] name#k [out]`.
    fn node(&mut self) -> Parsed<ConfigNode> {
        let input = self.selector()?;
        if self.token().name().is_some() && self.ahead(1).is_mark("(") {
            return self.undeclared_element();
        }
        let name = self.name("the name of an instance or of an endpoint")?;
        let copy = if self.eat("#") { Some(self.primary()?) } else { None };
        let output = self.selector()?;
        Ok(ConfigNode { input, name, copy, output })
    }

    fn selector(&mut self) -> Parsed<Option<PortSelector>> {
        if !self.eat_as("[", Role::Selector) {
            return Ok(None);
        }
        let is_name = self.token().name().is_some() && self.ahead(1).is_mark("]");
        let selector = match is_name {
            true => PortSelector::Name(self.name("a port")?),
            false => PortSelector::Number(self.port_number()?),
        };
        self.expect("]", "after a port")?;
        Ok(Some(selector))
    }

    fn port_number(&mut self) -> Parsed<Expr> {
        self.outside_angles(Self::conditional)
    }
}
