// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses functions: header, locals, blocks and terminators. Until [`resolve`](super::resolve)
//! runs, a value's index is a position in the list of names seen so far.

use super::cursor::Result;
use super::lex::{Kind, ValueName};
use super::parse::Parser;
use super::spelling;
use crate::{
    Bits, Block, BlockId, Element, ElementId, Function, Inst, Lifetime, Loc, LoopInfo, Space,
    Spaces, TableId, Target, Term, TrapCode, Type, Unroll, ValueId,
};
use std::collections::HashMap;

/// A function whose values lack their numbers and some of their types.
pub(super) struct RawFunction {
    pub(super) function: Function,
    /// Index of the token where it begins.
    pub(super) at: usize,
    /// Values seen so far, by provisional index.
    pub(super) names: Vec<NamedValue>,
    /// Defined values, in the order of the text.
    pub(super) definitions: Vec<usize>,
    /// Cases of switches without a written width: block and case.
    pub(super) unsized_cases: Vec<(usize, usize, usize)>,
}

/// A value by name.
pub(super) struct NamedValue {
    pub(super) name: ValueName,
    /// Token of its first occurrence.
    pub(super) at: usize,
    pub(super) is_defined: bool,
    /// Its type, if written.
    pub(super) ty: Option<Type>,
}

/// State of the parser inside a body.
pub(super) struct Body {
    pub(super) raw: RawFunction,
    pub(super) owner: Option<ElementId>,
    by_name: HashMap<ValueName, usize>,
    labels: Vec<Label>,
    by_label: HashMap<String, usize>,
}

struct Label {
    at: usize,
    block: Option<BlockId>,
}

impl Body {
    /// Creates a body without blocks that begins at a token.
    pub(super) fn new(name: String, owner: Option<ElementId>, at: usize) -> Self {
        let mut function = Function::new(name, owner, Loc::default());
        function.blocks.clear();
        let raw =
            RawFunction { function, at, names: vec![], definitions: vec![], unsized_cases: vec![] };
        let (by_name, by_label) = (HashMap::new(), HashMap::new());
        Self { raw, owner, by_name, labels: vec![], by_label }
    }
}

impl Parser<'_> {
    /// Parses a function after its keyword; returns its number.
    pub(super) fn function(
        &mut self,
        owner: Option<ElementId>,
        default_name: Option<String>,
    ) -> Result<u32> {
        let at = self.cursor.index();
        let name = match (self.cursor.peek().clone(), default_name) {
            (Kind::Function(name), _) => {
                self.cursor.next();
                name
            }
            (_, Some(name)) => name,
            _ => return Err(self.cursor.expected("the function's name, such as `@f`")),
        };
        let number = self.cursor.optional_index()?.unwrap_or(self.next_function);
        let mut function = Function::new(name, owner, Loc::default());
        function.blocks.clear();
        let raw =
            RawFunction { function, at, names: vec![], definitions: vec![], unsized_cases: vec![] };
        let (by_name, by_label) = (HashMap::new(), HashMap::new());
        let mut body = Body { raw, owner, by_name, labels: vec![], by_label };
        self.body(&mut body)?;
        self.next_function = number.wrapping_add(1);
        if self.functions.insert(number, body.raw).is_some() {
            return Err(self.cursor.error_at(at, format!("function {number} occurs twice")));
        }
        Ok(number)
    }

    fn body(&mut self, body: &mut Body) -> Result<()> {
        let params = match self.cursor.take_sign("(") {
            true => self.params(body)?,
            false => vec![],
        };
        if self.cursor.take_sign("->") {
            body.raw.function.result = Some(self.ty(body.owner)?);
        }
        body.raw.function.inline = self.cursor.take_word("inline");
        body.raw.function.loc = self.cursor.loc();
        self.cursor.sign("{")?;
        self.locals(body)?;
        let mut params = Some(params);
        while !self.cursor.take_sign("}") {
            let block = self.block(body, params.take())?;
            body.raw.function.blocks.push(block);
        }
        if body.raw.function.blocks.is_empty() {
            return Err(self.cursor.error_at(body.raw.at, "a function has at least one block"));
        }
        self.resolve_labels(body)
    }

    fn locals(&mut self, body: &mut Body) -> Result<()> {
        loop {
            self.cursor.skip_separators();
            // A label may be any word, but only a label is followed by `:` or `(`.
            let is_declaration = matches!(self.cursor.peek_second(), Kind::Word(_) | Kind::Text(_))
                || matches!(self.cursor.peek_second(), Kind::Value(_));
            let space = self.cursor.word().and_then(spelling::space);
            match space {
                Some(space) if is_declaration => {
                    self.cursor.next();
                    let object = self.object(space, Lifetime::Firing)?;
                    body.raw.function.locals.push(object);
                }
                _ if is_declaration && self.cursor.take_word("unused") => {
                    let value = self.define(body)?;
                    self.cursor.sign(":")?;
                    body.raw.names[value.index()].ty = Some(self.ty(body.owner)?);
                }
                _ => return Ok(()),
            }
        }
    }

    fn params(&mut self, body: &mut Body) -> Result<Vec<ValueId>> {
        let mut params = vec![];
        while !self.cursor.take_sign(")") {
            if !params.is_empty() {
                self.cursor.sign(",")?;
            }
            let value = self.define(body)?;
            self.cursor.sign(":")?;
            body.raw.names[value.index()].ty = Some(self.ty(body.owner)?);
            params.push(value);
        }
        Ok(params)
    }

    /// Parses a block; the parameters of the entry are in the function's header.
    fn block(&mut self, body: &mut Body, params: Option<Vec<ValueId>>) -> Result<Block> {
        let at = self.cursor.index();
        let label = self.label(body)?;
        let id = BlockId::new(body.raw.function.blocks.len());
        if body.labels[label.index()].block.replace(id).is_some() {
            return Err(self.cursor.error_at(at, "a block of that name already exists"));
        }
        let mut block = Block::new(Term::Return { value: None });
        block.params = match params {
            Some(params) => params,
            None if self.cursor.take_sign("(") => self.params(body)?,
            None => vec![],
        };
        if self.cursor.take_word("loop") {
            block.loop_info = Some(self.loop_info()?);
        }
        self.cursor.sign(":")?;
        loop {
            self.cursor.skip_separators();
            if let Some(term) = self.term(body)? {
                block.term = term;
                block.term_loc = self.cursor.loc();
                self.cursor.skip_separators();
                return Ok(block);
            }
            let inst = self.inst(body)?;
            block.insts.push(inst);
        }
    }

    fn loop_info(&mut self) -> Result<LoopInfo> {
        self.cursor.sign("(")?;
        self.cursor.keyword("bound")?;
        let bound = self.cursor.number_u64()?;
        let mut info =
            LoopInfo { bound, unroll: Unroll::Auto, independent: false, is_watched: false };
        while !self.cursor.take_sign(")") {
            self.cursor.sign(",")?;
            if self.cursor.take_word("flatten") {
                info.unroll = Unroll::Flatten;
            } else if self.cursor.take_word("independent") {
                info.independent = true;
            } else if self.cursor.take_word("watched") {
                info.is_watched = true;
            } else if !self.cursor.take_word("unroll") {
                return Err(self
                    .cursor
                    .expected("`unroll`, `flatten`, `independent` or `watched`"));
            } else if self.cursor.take_word("full") {
                info.unroll = Unroll::Full;
            } else {
                info.unroll = Unroll::By(self.cursor.number_u32()?);
            }
        }
        Ok(info)
    }

    fn inst(&mut self, body: &mut Body) -> Result<Inst> {
        let mut result = None;
        if matches!(self.cursor.peek(), Kind::Value(_)) {
            let value = self.define(body)?;
            if self.cursor.take_sign(":") {
                body.raw.names[value.index()].ty = Some(self.ty(body.owner)?);
            }
            self.cursor.sign("=")?;
            result = Some(value);
        }
        let op = self.op(body)?;
        Ok(Inst { result, op, loc: self.cursor.loc() })
    }

    /// Parses a terminator, if one is next.
    fn term(&mut self, body: &mut Body) -> Result<Option<Term>> {
        let Some(word) = self.cursor.word() else { return Ok(None) };
        let word = word.to_owned();
        if !["jump", "br", "switch", "done", "suspend", "ret", "trap"].contains(&word.as_str()) {
            return Ok(None);
        }
        self.cursor.next();
        let term = match word.as_str() {
            "jump" => Term::Jump(self.target(body)?),
            "br" => {
                let cond = self.value(body)?;
                self.cursor.sign(",")?;
                let if_true = self.target(body)?;
                self.cursor.sign(",")?;
                Term::Branch { cond, if_true, if_false: self.target(body)? }
            }
            "switch" => self.switch(body)?,
            "done" => Term::Done { mask: self.optional_value(body)? },
            "suspend" => {
                let mask = self.optional_value(body)?;
                if mask.is_some() {
                    self.cursor.sign(",")?;
                }
                Term::Suspend { mask, resume: self.target(body)? }
            }
            "ret" => Term::Return { value: self.optional_value(body)? },
            _ if self.cursor.take_word("loop_bound") => Term::Trap(TrapCode::LoopBound),
            _ if self.cursor.take_word("watchdog") => Term::Trap(TrapCode::Watchdog),
            _ => {
                if !self.cursor.take_word("user") {
                    return Err(self.cursor.expected("`loop_bound`, `watchdog` or `user`"));
                }
                Term::Trap(TrapCode::User(self.cursor.number_u32()?))
            }
        };
        Ok(Some(term))
    }

    fn switch(&mut self, body: &mut Body) -> Result<Term> {
        let value = self.value(body)?;
        self.cursor.sign("{")?;
        let mut cases: Vec<(Bits, Target)> = vec![];
        let block = body.raw.function.blocks.len();
        while !self.cursor.take_word("else") {
            let at = self.cursor.index();
            let (bits, has_width) = self.cursor.case_literal()?;
            if !has_width {
                body.raw.unsized_cases.push((block, cases.len(), at));
            }
            self.cursor.sign("->")?;
            let target = self.target(body)?;
            self.cursor.sign(",")?;
            cases.push((bits, target));
        }
        self.cursor.sign("->")?;
        let default = self.target(body)?;
        self.cursor.sign("}")?;
        Ok(Term::Switch { value, cases, default })
    }

    fn target(&mut self, body: &mut Body) -> Result<Target> {
        let block = self.label(body)?;
        let args = match self.cursor.take_sign("(") {
            true => self.values(body, ")")?,
            false => vec![],
        };
        Ok(Target { block, args })
    }

    /// Parses a block's name; until the function ends, its index is a position in the list of
    /// labels.
    fn label(&mut self, body: &mut Body) -> Result<BlockId> {
        let at = self.cursor.index();
        let Some(word) = self.cursor.word().map(str::to_owned) else {
            return Err(self.cursor.expected("the name of a block"));
        };
        self.cursor.next();
        let index = *body.by_label.entry(word).or_insert_with(|| {
            body.labels.push(Label { at, block: None });
            body.labels.len() - 1
        });
        Ok(BlockId::new(index))
    }

    fn resolve_labels(&self, body: &mut Body) -> Result<()> {
        for block in &mut body.raw.function.blocks {
            for target in block.term.targets_mut() {
                let label = &body.labels[target.block.index()];
                target.block = match label.block {
                    Some(block) => block,
                    None => return Err(self.cursor.error_at(label.at, "no block has that name")),
                };
            }
        }
        Ok(())
    }

    /// Parses the name of a value that is defined here.
    pub(super) fn define(&mut self, body: &mut Body) -> Result<ValueId> {
        let at = self.cursor.index();
        let value = self.value(body)?;
        let named = &mut body.raw.names[value.index()];
        if named.is_defined {
            return Err(self.cursor.error_at(at, "this value is defined above"));
        }
        (named.is_defined, named.at) = (true, at);
        body.raw.definitions.push(value.index());
        Ok(value)
    }

    pub(super) fn value(&mut self, body: &mut Body) -> Result<ValueId> {
        let at = self.cursor.index();
        let Kind::Value(name) = self.cursor.peek().clone() else {
            return Err(self.cursor.expected("a value, such as `%x`"));
        };
        self.cursor.next();
        let names = &mut body.raw.names;
        let index = *body.by_name.entry(name).or_insert_with_key(|name| {
            names.push(NamedValue { name: name.clone(), at, is_defined: false, ty: None });
            names.len() - 1
        });
        Ok(ValueId::new(index))
    }

    pub(super) fn optional_value(&mut self, body: &mut Body) -> Result<Option<ValueId>> {
        match self.cursor.peek() {
            Kind::Value(_) => self.value(body).map(Some),
            _ => Ok(None),
        }
    }

    /// Parses values separated by commas, up to and including `close`.
    pub(super) fn values(&mut self, body: &mut Body, close: &str) -> Result<Vec<ValueId>> {
        let mut values = vec![];
        while !self.cursor.take_sign(close) {
            if !values.is_empty() {
                self.cursor.sign(",")?;
            }
            values.push(self.value(body)?);
        }
        Ok(values)
    }

    pub(super) fn ty(&mut self, owner: Option<ElementId>) -> Result<Type> {
        match self.cursor.word() {
            Some("bits") => Ok(Type::Bits(self.bits_type()?)),
            Some("ref") => Ok(Type::Ref(self.spaces()?)),
            Some("packet") => {
                self.cursor.next();
                Ok(Type::Packet)
            }
            Some("handle") => {
                self.cursor.next();
                self.cursor.sign("<")?;
                let table = self.table_ref(owner)?;
                self.cursor.sign(">")?;
                Ok(Type::Handle(table))
            }
            _ => Err(self.cursor.expected("a type (`bits`, `ref`, `handle` or `packet`)")),
        }
    }

    /// Parses `ref<stack|packet>`.
    pub(super) fn spaces(&mut self) -> Result<Spaces> {
        self.cursor.keyword("ref")?;
        self.cursor.sign("<")?;
        let mut spaces = Spaces::default();
        while !self.cursor.take_sign(">") {
            if spaces != Spaces::default() {
                self.cursor.sign("|")?;
            }
            let space: Option<Space> = self.cursor.word().and_then(spelling::space);
            let Some(space) = space else { return Err(self.cursor.expected("a memory space")) };
            self.cursor.next();
            spaces = spaces.union(Spaces::of(space));
        }
        Ok(spaces)
    }

    pub(super) fn table_ref(&mut self, owner: Option<ElementId>) -> Result<TableId> {
        let tables = self.owner_element(owner).map_or(&[][..], |element| &element.tables);
        let names = tables.iter().map(|table| table.name.clone()).collect();
        self.named(names, "table").map(TableId)
    }

    pub(super) fn owner_element(&self, owner: Option<ElementId>) -> Option<&Element> {
        self.program.elements.get(owner?.index())
    }
}
