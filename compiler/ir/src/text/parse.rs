// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses programs, elements and the graph. The first pass reads the text. A second pass, over the
//! functions only, assigns numbers and types to values, since a name may precede its definition.

use super::body::RawFunction;
use super::cursor::{Cursor, Result};
use super::lex::Kind;
use super::spelling::{self, TABLES, role_name};
use super::{ParseError, resolve};
use crate::{
    Addressing, Element, ElementId, FunctionId, InstanceId, Item, Lifetime, Method, MethodId,
    Object, Port, Program, Space, Table, TableKind,
};
use std::collections::BTreeMap;

/// Parses the text form of a program.
///
/// # Errors
/// The first error, with its position in the text.
pub fn parse(text: &str) -> std::result::Result<Program, ParseError> {
    let mut parser = Parser::new(text, Program::default())?;
    parser.program().map_err(|error| *error)?;
    parser.finish().map_err(|error| *error)
}

/// A reference to a function that may not be known yet: by name, or by index.
#[derive(Clone)]
pub(super) struct FunctionRef {
    pub(super) name: String,
    pub(super) number: Option<u32>,
    pub(super) at: usize,
}

/// A reference to a method before the graph is known: instance and method, each by name or by
/// index.
struct MethodRef {
    instance: Named,
    method: Named,
    at: usize,
}

enum Named {
    Name(String),
    Index(u32),
}

impl Named {
    /// Returns the index among `names`.
    fn among<'n>(&self, mut names: impl Iterator<Item = &'n String>) -> Option<u32> {
        match self {
            Named::Index(index) => Some(*index),
            Named::Name(name) => names.position(|each| each == name).map(|at| at as u32),
        }
    }
}

/// Targets of references that were parsed before their definitions.
pub(super) struct Targets {
    pub(super) functions: Vec<FunctionId>,
    pub(super) methods: Vec<(InstanceId, MethodId)>,
}

/// State of the parser.
pub(super) struct Parser<'t> {
    pub(super) cursor: Cursor<'t>,
    pub(super) program: Program,
    pub(super) functions: BTreeMap<u32, RawFunction>,
    pub(super) next_function: u32,
    /// Until the end, every [`FunctionId`] of the program is an index into this list.
    pub(super) references: Vec<FunctionRef>,
    /// Likewise for the instances of method calls.
    method_references: Vec<MethodRef>,
}

impl<'t> Parser<'t> {
    /// Starts at the beginning of a text, with a program to extend.
    pub(super) fn new(text: &'t str, program: Program) -> std::result::Result<Self, ParseError> {
        Ok(Self {
            cursor: Cursor::new(text)?,
            program,
            functions: BTreeMap::new(),
            next_function: 0,
            references: vec![],
            method_references: vec![],
        })
    }

    fn program(&mut self) -> Result<()> {
        if self.cursor.take_word("program") {
            self.program.name = self.cursor.name("the program's name")?;
        }
        while self.cursor.take_word("file") {
            let file = self.cursor.text("a file name in quotes")?;
            self.program.files.push(file);
        }
        loop {
            self.cursor.skip_separators();
            match self.cursor.word() {
                Some("fn") => {
                    self.cursor.next();
                    self.function(None, None)?;
                }
                Some("element") => {
                    self.cursor.next();
                    self.element()?;
                }
                Some("graph") => {
                    self.cursor.next();
                    self.graph()?;
                }
                _ if self.cursor.is_at_end() => return Ok(()),
                _ => return Err(self.cursor.expected("`fn`, `element`, `graph` or the end")),
            }
        }
    }

    fn finish(mut self) -> Result<Program> {
        let functions = std::mem::take(&mut self.functions);
        for (expected, (number, function)) in functions.iter().enumerate() {
            if *number as usize != expected {
                let gap = format!("functions are numbered without gaps: {expected} is missing");
                return Err(self.cursor.error_at(function.at, gap));
            }
        }
        let references = std::mem::take(&mut self.references);
        let targets = references
            .iter()
            .map(|reference| self.find_function(reference, &functions))
            .collect::<Result<Vec<_>>>()?;
        for element in &mut self.program.elements {
            let methods = element.methods.iter_mut().map(|method| &mut method.function);
            let others = [&mut element.handler].into_iter();
            let optional = element.init.iter_mut().chain(element.signal.iter_mut());
            for function in methods.chain(others).chain(optional) {
                *function = targets[function.index()];
            }
        }
        let methods = std::mem::take(&mut self.method_references);
        let methods = methods.iter().map(|reference| self.find_method(reference));
        let targets = Targets { functions: targets, methods: methods.collect::<Result<_>>()? };
        resolve::resolve(&self.cursor, self.program, functions.into_values().collect(), &targets)
    }

    fn find_method(&self, reference: &MethodRef) -> Result<(InstanceId, MethodId)> {
        let MethodRef { instance, method, at } = reference;
        let instances = &self.program.graph.instances;
        let unknown = |what| self.cursor.error_at(*at, format!("there is no {what} of that name"));
        let named = instance.among(instances.iter().map(|each| &each.name));
        let instance = InstanceId(named.ok_or_else(|| unknown("instance"))?);
        let element = instances.get(instance.index());
        let element = element.and_then(|each| self.program.elements.get(each.element.index()));
        let methods = element.map_or(&[][..], |element| &element.methods);
        let named = method.among(methods.iter().map(|each| &each.name));
        Ok((instance, MethodId(named.ok_or_else(|| unknown("method"))?)))
    }

    /// Parses `instance.method`, each a name or `#3`; resolved once the graph is known.
    pub(super) fn method_ref(&mut self) -> Result<InstanceId> {
        let at = self.cursor.index();
        let instance = self.name_or_index("the instance's name")?;
        self.cursor.sign(".")?;
        let method = self.name_or_index("the method's name")?;
        self.method_references.push(MethodRef { instance, method, at });
        Ok(InstanceId::new(self.method_references.len() - 1))
    }

    fn name_or_index(&mut self, what: &str) -> Result<Named> {
        Ok(match self.cursor.optional_index()? {
            Some(index) => Named::Index(index),
            None => Named::Name(self.cursor.name(what)?),
        })
    }

    fn find_function(
        &self,
        reference: &FunctionRef,
        functions: &BTreeMap<u32, RawFunction>,
    ) -> Result<FunctionId> {
        if let Some(number) = reference.number {
            return match functions.contains_key(&number) {
                true => Ok(FunctionId(number)),
                false => Err(self.cursor.error_at(reference.at, "no function has that number")),
            };
        }
        let mut found = functions.iter().filter(|(_, each)| each.function.name == reference.name);
        match (found.next(), found.next()) {
            (Some((number, _)), None) => Ok(FunctionId(*number)),
            (None, _) => {
                let message = format!("no function has the name `{}`", reference.name);
                Err(self.cursor.error_at(reference.at, message))
            }
            _ => Err(self.cursor.error_at(reference.at, "that name has several functions")),
        }
    }

    /// Parses `@name` or `@#3`, resolved once all functions are known.
    pub(super) fn function_ref(&mut self) -> Result<FunctionId> {
        let at = self.cursor.index();
        let Kind::Function(name) = self.cursor.peek().clone() else {
            return Err(self.cursor.expected("a function, such as `@f`"));
        };
        self.cursor.next();
        let number = self.cursor.optional_index()?;
        self.references.push(FunctionRef { name, number, at });
        Ok(FunctionId::new(self.references.len() - 1))
    }

    fn element(&mut self) -> Result<()> {
        let name = self.cursor.name("the element's name")?;
        let loc = self.cursor.loc();
        let id = ElementId::new(self.program.elements.len());
        let at = self.cursor.index();
        self.cursor.sign("{")?;
        self.program.elements.push(Element {
            name,
            inputs: vec![],
            outputs: vec![],
            state: vec![],
            tables: vec![],
            init: None,
            handler: FunctionId(u32::MAX),
            signal: None,
            methods: vec![],
            await_all: false,
            initiation_interval: 1,
            loc,
        });
        while !self.cursor.take_sign("}") {
            self.element_part(id)?;
            self.cursor.skip_separators();
        }
        if self.program.elements[id.index()].handler == FunctionId(u32::MAX) {
            return Err(self.cursor.error_at(at, "this element has no handler"));
        }
        Ok(())
    }

    fn element_part(&mut self, id: ElementId) -> Result<()> {
        let Some(word) = self.cursor.word().map(str::to_owned) else {
            return Err(self.cursor.expected(ELEMENT_PARTS));
        };
        if let Some(space) = spelling::space(&word) {
            self.cursor.next();
            let name = self.cursor.name("a name")?;
            self.cursor.sign(":")?;
            let kind = TABLES.into_iter().find(|kind| Some(kind.name()) == self.cursor.word());
            if let (Space::TableValue, Some(kind)) = (space, kind) {
                self.cursor.next();
                let table = self.table(name, kind)?;
                self.program.elements[id.index()].tables.push(table);
            } else {
                let object = self.object_type(name, space, Lifetime::Instance)?;
                self.program.elements[id.index()].state.push(object);
            }
            return Ok(());
        }
        if !matches!(word.as_str(), "await_all" | "interval" | "in" | "out" | "init" | "handler")
            && !matches!(word.as_str(), "signal" | "method" | "fn")
        {
            return Err(self.cursor.expected(ELEMENT_PARTS));
        }
        self.cursor.next();
        match word.as_str() {
            "await_all" => self.program.elements[id.index()].await_all = true,
            "interval" => {
                let interval = self.cursor.number_u32()?;
                self.program.elements[id.index()].initiation_interval = interval;
            }
            "in" => {
                let port = self.port()?;
                self.program.elements[id.index()].inputs.push(port);
            }
            "out" => {
                let port = self.port()?;
                self.program.elements[id.index()].outputs.push(port);
            }
            "fn" => {
                self.function(Some(id), None)?;
            }
            role => self.role(id, role)?,
        }
        Ok(())
    }

    /// Parses a function with a role in the element: its body, or `= @name` for one defined
    /// elsewhere.
    fn role(&mut self, id: ElementId, role: &str) -> Result<()> {
        let method = match role {
            "method" => Some(self.cursor.name("the method's name")?),
            _ => None,
        };
        let function = if self.cursor.take_sign("=") {
            self.function_ref()?
        } else {
            let element = &self.program.elements[id.index()].name;
            let name = role_name(element, method.as_deref().unwrap_or(role));
            let at = self.cursor.index();
            let number = Some(self.function(Some(id), Some(name))?);
            self.references.push(FunctionRef { name: String::new(), number, at });
            FunctionId::new(self.references.len() - 1)
        };
        let element = &mut self.program.elements[id.index()];
        match (role, method) {
            ("init", _) => element.init = Some(function),
            ("signal", _) => element.signal = Some(function),
            (_, Some(name)) => element.methods.push(Method { name, function }),
            _ => element.handler = function,
        }
        Ok(())
    }

    fn port(&mut self) -> Result<Port> {
        let name = self.cursor.name("the port's name")?;
        self.cursor.sign(":")?;
        Ok(Port { name, item: self.item()?, loc: self.cursor.loc() })
    }

    pub(super) fn item(&mut self) -> Result<Item> {
        match self.cursor.word() {
            Some("flit") => {
                self.cursor.next();
                Ok(Item::Flit)
            }
            Some("bits") => Ok(Item::Bits(self.bits_type()?)),
            Some("packet") => {
                self.cursor.next();
                self.cursor.sign("<")?;
                let window_bytes = self.cursor.number_u32()?;
                self.cursor.sign(">")?;
                Ok(Item::Packet { window_bytes })
            }
            _ => Err(self.cursor.expected("`flit`, `bits<width>` or `packet<window bytes>`")),
        }
    }

    /// Parses `bits<32>`; returns the width.
    pub(super) fn bits_type(&mut self) -> Result<u32> {
        self.cursor.keyword("bits")?;
        self.cursor.sign("<")?;
        let width = self.cursor.width()?;
        self.cursor.sign(">")?;
        Ok(width)
    }

    fn table(&mut self, name: String, kind: TableKind) -> Result<Table> {
        let key_bits = self.bits_type()?;
        self.cursor.sign("->")?;
        let value_bits = self.bits_type()?;
        self.cursor.sign("[")?;
        let capacity = self.cursor.number_u64()?;
        self.cursor.sign("]")?;
        Ok(Table { name, kind, key_bits, value_bits, capacity, loc: self.cursor.loc() })
    }

    /// Parses an object after the word for its space.
    pub(super) fn object(&mut self, space: Space, usual: Lifetime) -> Result<Object> {
        let name = self.cursor.name("the object's name")?;
        self.cursor.sign(":")?;
        self.object_type(name, space, usual)
    }

    fn object_type(&mut self, name: String, space: Space, usual: Lifetime) -> Result<Object> {
        let (elem_bits, mut addressing) = match self.cursor.take_word("bytes") {
            true => (8, Addressing::Byte),
            false => (self.bits_type()?, Addressing::Element),
        };
        self.cursor.sign("[")?;
        let depth = self.cursor.number_u64()?;
        self.cursor.sign("]")?;
        let (mut lifetime, mut host_visible, mut is_pinned) = (usual, false, false);
        loop {
            match self.cursor.word() {
                Some("bytes") => addressing = Addressing::Byte,
                Some("instance") => lifetime = Lifetime::Instance,
                Some("firing") => lifetime = Lifetime::Firing,
                Some("visible") => host_visible = true,
                Some("pinned") => is_pinned = true,
                _ => break,
            }
            self.cursor.next();
        }
        let mut init = vec![];
        if self.cursor.take_sign("=") {
            self.cursor.sign("{")?;
            init = self.cursor.list("}", |cursor| cursor.literal(Some(elem_bits)))?;
        }
        let loc = self.cursor.loc();
        Ok(Object {
            name,
            space,
            elem_bits,
            depth,
            addressing,
            lifetime,
            init,
            host_visible,
            is_pinned,
            loc,
        })
    }
}

const ELEMENT_PARTS: &str = "a port (`in`, `out`), an object (`reg`, `local`, ...), `table`, \
    `init`, `handler`, `signal`, `method`, `fn`, `await_all`, `interval` or `}`";
