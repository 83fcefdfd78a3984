// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports of elements, and operations on them: a name, `name[i]` of an array, or a number from 1.

use super::body::{Body, Role};
use super::constants::Constant;
use super::expressions::Operand;
use super::names::Binding;
use super::values::Value;
use super::{Lowered, Reported, Side};
use crate::ast::{self, Expr, ExprKind};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Type, UINT, ULONG};
use freeport_ir::{BinaryOp, Bits, Item, Loc, Op, Port, PortId, Target, Term, Type as IrType};

/// Maximum ports on one side of an element: its masks are numbers of 64 bits.
pub const MOST_PORTS: u64 = 64;

/// A port, or an array of them.
#[derive(Clone, Debug)]
pub struct PortShape {
    /// Its name.
    pub name: String,
    /// Index of its first port in the IR.
    pub first: u32,
    /// Number of ports.
    pub count: u32,
    /// Whether it was declared with `[N]`.
    pub is_array: bool,
    /// The type of its items.
    pub ty: Type,
    /// Kind of item it carries.
    pub item: Item,
    /// Location of the declaration.
    pub span: Span,
}

impl PortShape {
    /// Returns its ports in the IR.
    pub fn ports(&self, loc: Loc) -> Vec<Port> {
        let name = |at: u32| match self.is_array {
            true => format!("{}[{at}]", self.name),
            false => self.name.clone(),
        };
        (0..self.count).map(|at| Port { name: name(at), item: self.item, loc }).collect()
    }
}

/// Port of an operation.
enum Choice {
    /// Known at compile time.
    Known(PortId),
    /// One of `count` ports starting at `first`, with an index from 0.
    Computed { at: Value, first: u32, count: u32 },
}

impl<'a> Body<'_, 'a> {
    /// Resolves the ports of one side.
    pub(super) fn port_shapes(&mut self, ports: &[ast::Port]) -> Lowered<Vec<PortShape>> {
        let mut shapes: Vec<PortShape> = vec![];
        let mut first = 0;
        for port in ports {
            let ty = self.resolve(&port.ty)?;
            let item = self.item_of(&ty, port.ty.span)?;
            let count = match &port.count {
                Some(count) => self.constant_u64(count)?,
                None => 1,
            };
            if count == 0 || u64::from(first) + count > MOST_PORTS {
                let message = format!("an element with {} ports on a side", first as u64 + count);
                return Err(self.report(
                    Diagnostic::error("E0408", port.name.span, message)
                        .label(format!("an array has 1 port or more, a side at most {MOST_PORTS}"))
                        .help("use several elements"),
                ));
            }
            let (name, is_array) = (port.name.text.clone(), port.count.is_some());
            let (count, span) = (count as u32, port.name.span);
            shapes.push(PortShape { name, first, count, is_array, ty, item, span });
            first += count;
        }
        Ok(shapes)
    }

    /// Returns the kind of item of a port of a type.
    pub(super) fn item_of(&mut self, ty: &Type, span: Span) -> Lowered<Item> {
        match ty {
            ty if ty.is_flit() => Ok(Item::Flit),
            Type::Bool | Type::Int(_) | Type::Record(_) => Ok(Item::Bits(ty.value_bits() as u32)),
            Type::Packet(window) => Ok(Item::Packet { window_bytes: *window }),
            _ => Err(self.report(
                Diagnostic::error("E0402", span, format!("no port carries `{ty}`"))
                    .label("a port carries packets, flits, numbers, structs or unions")
                    .help("put it in a struct"),
            )),
        }
    }

    fn shapes(&self, side: Side) -> &[PortShape] {
        match (&self.element, side) {
            (Some(element), Side::Input) => &element.inputs,
            (Some(element), Side::Output) => &element.outputs,
            (None, _) => &[],
        }
    }

    fn inputs(&self) -> u32 {
        self.shapes(Side::Input).iter().map(|port| port.count).sum()
    }

    /// Returns a bitmap of input ports; of type `uint` if it fits.
    fn bitmap(&self, bits: u64) -> Constant {
        let ty = if self.inputs() > UINT.width { ULONG } else { UINT };
        Constant::of(ty, bits)
    }

    /// Returns the bits of an input port, or of an array of them.
    pub(super) fn port_mask(&self, at: usize) -> Constant {
        let Some(port) = self.shapes(Side::Input).get(at) else { return self.bitmap(0) };
        let ones = u64::MAX >> (64 - port.count);
        self.bitmap(ones << port.first)
    }

    pub(super) fn port_bits(&mut self, side: Side, at: usize, span: Span) -> Lowered<Operand> {
        match side {
            Side::Input => Ok(Operand::Value(Value::known(self.port_mask(at)))),
            Side::Output => Err(self.wrong_side(side, span)),
        }
    }

    /// Returns `name[at]` of an array of input ports, as a bit of the bitmap.
    pub(super) fn indexed_port_bits(
        &mut self,
        of: &'a Expr,
        at: &'a Expr,
        span: Span,
    ) -> Lowered<Option<Operand>> {
        let ExprKind::Name(name, _) = &of.kind else { return Ok(None) };
        let Some(Binding::Port(side, port)) = self.lookup(name) else { return Ok(None) };
        if side == Side::Output {
            return Err(self.wrong_side(side, span));
        }
        let (first, count) = self.array_port(side, port, of.span)?;
        let at_value = self.number(at)?;
        if let Some(constant) = at_value.as_constant() {
            let at = self.checked_index(&constant, count, at.span)?;
            let bits = self.bitmap(1 << (first + at));
            return Ok(Some(Operand::Value(Value::known(bits))));
        }
        self.at(span);
        let one = self.bitmap(1 << first);
        let width = one.bits.width();
        let by = self.materialise(&at_value);
        let by = self.builder.resize(by, width.max(at_value.width()), at_value.is_signed());
        let wide = self.builder.constant(one.bits.resize(width.max(at_value.width())));
        let bits = self.builder.binary(BinaryOp::Shl, wide, by);
        let bits = self.builder.resize(bits, width, false);
        Ok(Some(Operand::Value(Value::computed(one.ty, bits))))
    }

    fn array_port(&mut self, side: Side, at: usize, span: Span) -> Lowered<(u32, u32)> {
        let port = self.shapes(side)[at].clone();
        if port.is_array {
            return Ok((port.first, port.count));
        }
        let message = format!("`{}` is one port, not an array", port.name);
        Err(self.report(
            Diagnostic::error("E0404", span, message)
                .label("indexed as an array")
                .help("declare it with `[N]`, or omit the index"),
        ))
    }

    fn checked_index(&mut self, at: &Constant, count: u32, span: Span) -> Lowered<u32> {
        match at.as_u64().filter(|at| *at < u64::from(count)) {
            Some(at) => Ok(at as u32),
            None => Err(self.report(
                Diagnostic::error("E0404", span, "no such port in the array")
                    .label(format!("indexes go from 0 to {}", count - 1))
                    .help("use an index inside it"),
            )),
        }
    }

    /// Resolves the first argument of an operation to a port and the type of its items.
    fn choice(&mut self, expr: &'a Expr, side: Side) -> Lowered<(Choice, Type)> {
        if let ExprKind::Name(name, _) = &expr.kind
            && let Some(Binding::Port(found, at)) = self.lookup(name)
        {
            let port = self.checked_side(found, side, at, expr.span)?;
            if port.is_array {
                let message = format!("`{}` is an array of {} ports", port.name, port.count);
                return Err(self.report(
                    Diagnostic::error("E0404", expr.span, message)
                        .label("which of them?")
                        .help("write the index after it, such as `[0]`"),
                ));
            }
            return Ok((Choice::Known(PortId(port.first)), port.ty));
        }
        if let ExprKind::Index(of, at) = &expr.kind
            && let ExprKind::Name(name, _) = &of.kind
            && let Some(Binding::Port(found, port_at)) = self.lookup(name)
        {
            let port = self.checked_side(found, side, port_at, of.span)?;
            let (first, count) = self.array_port(found, port_at, of.span)?;
            let at_value = self.number(at)?;
            if let Some(constant) = at_value.as_constant() {
                let at = self.checked_index(&constant, count, at.span)?;
                return Ok((Choice::Known(PortId(first + at)), port.ty));
            }
            return Ok((Choice::Computed { at: at_value, first, count }, port.ty));
        }
        self.numbered(expr, side)
    }

    /// Resolves a port by its number, from 1.
    fn numbered(&mut self, expr: &'a Expr, side: Side) -> Lowered<(Choice, Type)> {
        let value = self.number(expr)?;
        let shapes = self.shapes(side).to_vec();
        let count: u32 = shapes.iter().map(|port| port.count).sum();
        if let Some(constant) = value.as_constant() {
            let number = constant.as_u64().filter(|n| (1..=u64::from(count)).contains(n));
            let Some(number) = number else {
                return Err(self.report(
                    Diagnostic::error("E0404", expr.span, "there is no port of this number")
                        .label(format!("the element has {count} there, numbered from 1"))
                        .help("use the name of a port"),
                ));
            };
            let at = number as u32 - 1;
            let port = shapes.iter().find(|port| at >= port.first && at < port.first + port.count);
            let ty = port.map_or(Type::Void, |port| port.ty.clone());
            return Ok((Choice::Known(PortId(at)), ty));
        }
        let ty = shapes.first().map_or(Type::Void, |port| port.ty.clone());
        if shapes.iter().any(|port| port.ty != ty) || count == 0 {
            return Err(self.report(
                Diagnostic::error("E0404", expr.span, "the port's number is not known here")
                    .label("the ports are of different types, so a constant is needed")
                    .help("use `if` or `switch`, with a port's name in each branch"),
            ));
        }
        let one = Value::known(Constant::of(crate::types::INT, 1));
        let at = self.binary_value(ast::BinaryOperator::Sub, &value, &one);
        Ok((Choice::Computed { at, first: 0, count }, ty))
    }

    fn checked_side(
        &mut self,
        found: Side,
        wanted: Side,
        at: usize,
        span: Span,
    ) -> Lowered<PortShape> {
        if found != wanted {
            return Err(self.wrong_side(found, span));
        }
        Ok(self.shapes(found)[at].clone())
    }

    fn wrong_side(&mut self, found: Side, span: Span) -> Reported {
        let (is, needed) = match found {
            Side::Input => ("an input", "an output"),
            Side::Output => ("an output", "an input"),
        };
        self.report(
            Diagnostic::error("E0403", span, format!("this is {is} port"))
                .label(format!("{needed} port is needed here"))
                .help("inputs are before `->` in the element's head, outputs after it"),
        )
    }

    /// Reports a port operation where ports are unavailable.
    fn check_ports(&mut self, span: Span) -> Lowered<()> {
        let help = match (self.role, &self.element) {
            (Role::Handler, _) | (Role::Function, Some(_)) => return Ok(()),
            (Role::Async, _) => "read before the `async` block, and put after it",
            (Role::Function | Role::Constant, _) => {
                "make it a function of the element: move it inside"
            }
            _ => "only `.handler` reads and writes ports",
        };
        Err(self.report(
            Diagnostic::error("E0312", span, "ports cannot be used here")
                .label("a port operation")
                .help(help),
        ))
    }

    /// Lowers `get_input_port()`.
    pub(super) fn ready_bitmap(&mut self, span: Span) -> Lowered<Operand> {
        self.check_ports(span)?;
        self.at(span);
        let width = self.inputs().max(1);
        let mask = self.builder.push(Op::ReadyMask, IrType::Bits(width));
        let zero = self.bitmap(0);
        let id = self.builder.resize(mask, zero.bits.width(), false);
        Ok(Operand::Value(Value::computed(zero.ty, id)))
    }

    /// Lowers `test_input_port(port)`.
    pub(super) fn test_port(&mut self, port: &'a Expr, span: Span) -> Lowered<Operand> {
        self.check_ports(span)?;
        let (choice, _) = self.choice(port, Side::Input)?;
        self.on_port(choice, &Type::Bool, span, &mut |body, port| {
            Some(body.builder.push(Op::Ready(port), IrType::Bits(1)))
        })
    }

    /// Lowers `read_input_port(port)` or `peek_input_port(port)`.
    pub(super) fn read_port(
        &mut self,
        port: &'a Expr,
        is_peek: bool,
        span: Span,
    ) -> Lowered<Operand> {
        self.check_ports(span)?;
        let (choice, ty) = self.choice(port, Side::Input)?;
        let item = ty.ir();
        if item == IrType::Packet && matches!(choice, Choice::Computed { .. }) {
            return Err(self.report(
                Diagnostic::error("E0404", port.span, "the port's number is not known here")
                    .label("a packet is read from a port that is known at compile time")
                    .help("use `switch`, and read and put the packet in each arm"),
            ));
        }
        self.on_port(choice, &ty, span, &mut |body, port| {
            let op = if is_peek { Op::Peek(port) } else { Op::Take(port) };
            Some(body.builder.push(op, item))
        })
    }

    /// Lowers `set_output_port(port, item)`.
    pub(super) fn put(&mut self, port: &'a Expr, item: &'a Expr, span: Span) -> Lowered<Operand> {
        self.check_ports(span)?;
        let (choice, ty) = self.choice(port, Side::Output)?;
        let value = self.value_as(item, &ty)?;
        self.at(span);
        let value = self.materialise(&value);
        self.on_port(choice, &Type::Void, span, &mut |body, port| {
            body.builder.push_effect(Op::Put { port, value });
            None
        })
    }

    /// Applies an operation to the chosen port; if it is computed, with a case for each port.
    fn on_port(
        &mut self,
        choice: Choice,
        ty: &Type,
        span: Span,
        act: &mut dyn FnMut(&mut Self, PortId) -> Option<freeport_ir::ValueId>,
    ) -> Lowered<Operand> {
        self.at(span);
        let (at, first, count) = match choice {
            Choice::Known(port) => {
                return Ok(match act(self, port) {
                    Some(id) => Operand::Value(Value::computed(ty.clone(), id)),
                    None => Operand::Void,
                });
            }
            Choice::Computed { at, first, count } => (at, first, count),
        };
        let result = (*ty != Type::Void).then(|| self.new_temporary(ty, span));
        if let Some(result) = &result {
            self.clear(result, span)?;
        }
        let exit = self.builder.new_block();
        let id = self.materialise(&at);
        let width = at.width().max(8);
        let value = self.builder.resize(id, width, at.is_signed());
        let blocks: Vec<_> = (0..count).map(|_| self.builder.new_block()).collect();
        let case = |(at, block): (usize, &freeport_ir::BlockId)| {
            (Bits::from_u64(width, at as u64), Target::to(*block))
        };
        let cases = blocks.iter().enumerate().map(case).collect();
        self.builder.end(Term::Switch { value, cases, default: Target::to(exit) });
        for (at, block) in blocks.iter().enumerate() {
            self.builder.switch_to(*block);
            let id = act(self, PortId(first + at as u32));
            if let (Some(id), Some(result)) = (id, &result) {
                self.store(result, &Value::computed(ty.clone(), id), span)?;
            }
            self.builder.jump(exit);
        }
        self.builder.switch_to(exit);
        match result {
            Some(result) => Ok(Operand::Value(self.load(&result, span)?)),
            None => Ok(Operand::Void),
        }
    }
}
