// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets: values that a handler reads from a port, inspects, changes and puts.
//!
//! A packet variable is a name for the one packet it was initialised with; nothing else can name
//! it. So a place in a packet is the packet's IR value and an offset, and aliases are always known.
//! Bytes are loaded and stored whole; bits within them are read, changed and written back.

use super::body::{Body, Role};
use super::expressions::Operand;
use super::names::Binding;
use super::places::{Base, Place};
use super::values::Value;
use super::{Lowered, Reported};
use crate::ast::{self, Expr, ExprKind, Name};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{LONG, Type, UINT, WINDOW_BYTES};
use freeport_ir::interp::TAIL_LIMIT_BYTES;
use freeport_ir::{BinaryOp, Op, Type as IrType, ValueId};

/// A packet variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketVariable {
    /// The packet.
    pub id: ValueId,
    /// Whether it must not be changed.
    pub is_const: bool,
}

impl<'a> Body<'_, 'a> {
    /// Loads `width` bits of a packet.
    pub(super) fn load_packet(
        &mut self,
        packet: ValueId,
        place: &Place,
        width: u32,
        span: Span,
    ) -> Lowered<ValueId> {
        let (first, bytes) = covering(place, width);
        let offset = self.packet_offset(place, first, span)?;
        let op = Op::PacketLoad { packet, offset, bytes };
        let id = self.builder.push(op, IrType::Bits(bytes * 8));
        let lo = place.bit.rem_euclid(8) as u32;
        Ok(self.builder.extract(id, lo, width))
    }

    /// Stores a value of the place's width into a packet.
    pub(super) fn store_packet(
        &mut self,
        packet: ValueId,
        place: &Place,
        value: ValueId,
        span: Span,
    ) -> Lowered<()> {
        let width = self.builder.function().width_of(value);
        let (first, bytes) = covering(place, width);
        let offset = self.packet_offset(place, first, span)?;
        let mut whole = value;
        if width != bytes * 8 {
            let load = Op::PacketLoad { packet, offset, bytes };
            let before = self.builder.push(load, IrType::Bits(bytes * 8));
            let lo = place.bit.rem_euclid(8) as u32;
            let op = Op::Insert { value: before, lo, part: value };
            whole = self.builder.push(op, IrType::Bits(bytes * 8));
        }
        self.builder.push_effect(Op::PacketStore { packet, offset, value: whole });
        Ok(())
    }

    /// Adds the computed bytes of a place and `first` constant ones. An offset before the packet's
    /// start becomes a huge number, which is out of range like one beyond the packet's end.
    fn packet_offset(&mut self, place: &Place, first: i64, span: Span) -> Lowered<ValueId> {
        match place.index {
            None if first < 0 => Err(self.before_packet(span)),
            None => Ok(self.builder.number(32, first as u64)),
            Some(index) if first == 0 => Ok(index),
            Some(index) => {
                let index = self.builder.resize(index, 64, false);
                let first = self.offset(first as u64);
                Ok(self.builder.binary(BinaryOp::Add, index, first))
            }
        }
    }

    pub(super) fn before_packet(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0214", span, "this reaches before the packet")
                .label("a negative offset")
                .help(
                    "make room in front with `adjust_head(p, -n)`; offsets then count from there",
                ),
        )
    }

    /// Lowers `packet name = read_input_port(port);`.
    pub(super) fn declare_packet(
        &mut self,
        one: &'a ast::Declaration,
        name: &'a Name,
    ) -> Lowered<()> {
        let outcome = self.first_packet(one, name);
        let id = match outcome {
            Ok(id) => id,
            // Suppresses errors for its uses.
            Err(_) => self.builder.function_mut().add_value(IrType::Packet, None),
        };
        self.bind_packet(name, id, one.is_const);
        outcome.map(|_| ())
    }

    /// Returns the initial packet of a packet variable.
    fn first_packet(&mut self, one: &'a ast::Declaration, name: &Name) -> Lowered<ValueId> {
        if one.place.is_some() || !one.dimensions.is_empty() {
            return Err(self.packet_kept(one.span));
        }
        let Some(init) = one.init.as_ref().filter(|init| gives_packet(init)) else {
            let span = one.init.as_ref().map_or(name.span, |init| init.span);
            return Err(self.report(
                Diagnostic::error(
                    "E0320",
                    span,
                    format!("`{}` is neither read from a port nor new", name.text),
                )
                .label("a packet variable is one packet, from its declaration on")
                .help(
                    "write `= read_input_port(port)`, or `= new_packet(length)` for one of zeros",
                ),
            ));
        };
        let value = self.value(init)?;
        let value = self.convert(&value, &Type::Packet(WINDOW_BYTES), init.span)?;
        Ok(self.materialise(&value))
    }

    /// Lowers `new_packet(length)`.
    pub(super) fn new_packet(&mut self, length: &'a Expr, span: Span) -> Lowered<Operand> {
        if !matches!(self.role, Role::Handler | Role::Function) || self.element.is_none() {
            return Err(self.report(
                Diagnostic::error("E0312", span, "a packet cannot be made here")
                    .label("nothing could be done with it")
                    .help("make it in `.handler`, or in a function of the element"),
            ));
        }
        let value = self.number(length)?;
        if let Some(constant) = value.as_constant()
            && constant.as_u64().is_none_or(|length| length > TAIL_LIMIT_BYTES as u64)
        {
            return Err(self.report(
                Diagnostic::error("E0324", length.span, "no packet has this length")
                    .label(format!("a new packet has 0 to {TAIL_LIMIT_BYTES} bytes"))
                    .help("make it shorter; `adjust_tail(p, n)` adds bytes later"),
            ));
        }
        self.at(span);
        let length = self.materialise(&value);
        let id = self.builder.push(Op::NewPacket { length }, IrType::Packet);
        Ok(Operand::Value(Value::computed(Type::Packet(WINDOW_BYTES), id)))
    }

    /// Gives a packet its name.
    pub(super) fn bind_packet(&mut self, name: &Name, id: ValueId, is_const: bool) {
        self.builder.function_mut().values[id.index()].name = Some(name.text.clone());
        self.declare(name, Binding::Packet(PacketVariable { id, is_const }));
    }

    /// Returns the packet variable that an expression names.
    pub(super) fn packet_named(&mut self, expr: &Expr) -> Option<PacketVariable> {
        let ExprKind::Name(name, _) = &expr.kind else { return None };
        match self.lookup(name) {
            Some(Binding::Packet(packet)) => Some(packet),
            _ => None,
        }
    }

    /// Lowers `of.length` and `of.data`.
    pub(super) fn packet_member(
        &mut self,
        of: &'a Expr,
        packet: &Value,
        member: &Name,
    ) -> Lowered<Operand> {
        let id = self.materialise(packet);
        match member.text.as_str() {
            "length" => {
                self.at(member.span);
                let id = self.builder.push(Op::PacketLength(id), IrType::Bits(UINT.width));
                Ok(Operand::Value(Value::computed(Type::Int(UINT), id)))
            }
            "data" => {
                let Some(variable) = self.packet_named(of) else {
                    return Err(self.report(
                        Diagnostic::error("E0320", of.span, "this packet has no name")
                            .label("its bytes are reached through a variable")
                            .help("write `packet p = ...;` before, and `p.data` here"),
                    ));
                };
                let ty = Type::uint(8);
                Ok(Operand::Pointer(Place {
                    base: Base::Packet(variable.id),
                    stride: 8,
                    bit: 0,
                    index: None,
                    dynamic_bit: None,
                    window: None,
                    ty,
                    bit_field: None,
                    is_const: variable.is_const,
                }))
            }
            other => Err(self.report(
                Diagnostic::error(
                    "E0204",
                    member.span,
                    format!("`packet` has no member `{other}`"),
                )
                .label("no such member")
                .help("its members are `length`, `data`"),
            )),
        }
    }

    /// Lowers `adjust_head(packet, by)` and `adjust_tail(packet, by)`.
    pub(super) fn adjust(
        &mut self,
        is_head: bool,
        packet: &'a Expr,
        by: &'a Expr,
        span: Span,
    ) -> Lowered<Operand> {
        let Some(variable) = self.packet_named(packet) else {
            let value = self.value(packet)?;
            return Err(self.report(
                Diagnostic::error("E0206", packet.span, "a packet variable is needed here")
                    .label(format!("of type `{}`", value.ty))
                    .help("give the name of a packet first, and the number of bytes second"),
            ));
        };
        if variable.is_const {
            return Err(self.report(
                Diagnostic::error("E0208", packet.span, "a constant cannot be changed")
                    .label("declared `const`")
                    .help("remove `const` from its declaration, or change another variable"),
            ));
        }
        let by = self.number(by)?;
        let by = self.converted(&by, &Type::Int(LONG));
        self.at(span);
        let (packet, delta) = (variable.id, self.materialise(&by));
        let op = match is_head {
            true => Op::PacketAdjustHead { packet, delta },
            false => Op::PacketAdjustTail { packet, delta },
        };
        let id = self.builder.push(op, IrType::Bits(1));
        Ok(Operand::Value(Value::computed(Type::Bool, id)))
    }

    /// Reports an assignment to a packet variable.
    pub(super) fn packet_assigned(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0321", span, "a packet variable cannot be assigned again")
                .label("it is one packet, from its declaration on")
                .help("declare another variable, or put the packet where the choice is made"),
        )
    }

    /// Reports a packet where only values with a place in memory are allowed.
    pub(super) fn packet_kept(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0322", span, "a packet cannot be kept")
                .label(
                    "packets are local variables of handlers, and parameters of `inline` functions",
                )
                .help("put it to a port, and keep what you need of it in numbers"),
        )
    }

    /// Declares a parameter that is a packet; returns its index among the function's parameters.
    pub(super) fn packet_parameter(
        &mut self,
        param: &'a ast::Declaration,
        is_inline: bool,
    ) -> Lowered<()> {
        if !is_inline || self.role != Role::Function || !param.dimensions.is_empty() {
            return Err(self.packet_kept(param.span));
        }
        let id = self.builder.add_param(freeport_ir::Function::ENTRY, IrType::Packet, None);
        if let Some(name) = &param.name {
            self.bind_packet(name, id, param.is_const);
        }
        Ok(())
    }

    /// Checks that a pointer declared with `depth` scopes open may begin to point into a packet: it
    /// must not outlive the packet.
    pub(super) fn check_pointer_into(
        &mut self,
        packet: ValueId,
        depth: usize,
        span: Span,
    ) -> Lowered<()> {
        let outlives = self.scopes.iter().skip(depth).flat_map(|scope| scope.values()).any(
            |(binding, _)| matches!(binding, Binding::Packet(variable) if variable.id == packet),
        );
        if !outlives {
            return Ok(());
        }
        Err(self.report(
            Diagnostic::error("E0213", span, "this pointer lives longer than the packet")
                .label("declared outside the packet's block")
                .help("declare the pointer where it is set"),
        ))
    }

    /// Invalidates declarations in an arm of a switch that only its own blocks compute: packets,
    /// and pointers into them and into values of tables. The names remain, so that a use in a later
    /// arm is reported with the reason.
    pub(super) fn leave_arm(&mut self) {
        let pointers = &self.pointers;
        let Some(scope) = self.scopes.last_mut() else { return };
        let packet_of = |binding: &Binding<'_>| match binding {
            Binding::Packet(packet) => Some(Base::Packet(packet.id)),
            _ => None,
        };
        let packets: Vec<Base> = scope.values().filter_map(|(bound, _)| packet_of(bound)).collect();
        for (binding, _) in scope.values_mut() {
            let is_gone = match binding {
                Binding::Packet(_) => true,
                Binding::Pointer(id) => pointers[*id].place.as_ref().is_some_and(|place| {
                    matches!(place.base, Base::TableValue(_)) || packets.contains(&place.base)
                }),
                _ => false,
            };
            if is_gone {
                *binding = Binding::OfOtherArm;
            }
        }
    }

    pub(super) fn of_other_arm(&mut self, name: &str, span: Span) -> Reported {
        self.report(
            Diagnostic::error(
                "E0323",
                span,
                format!("`{name}` belongs to another arm of the switch"),
            )
            .label("not set here")
            .help("declare it before the `switch`, or put braces around each arm"),
        )
    }
}

/// Returns the first byte that `width` bits at a place touch, without computed offsets, and the
/// number of bytes.
pub(super) fn covering(place: &Place, width: u32) -> (i64, u32) {
    let lo = place.bit.rem_euclid(8) as u32;
    (place.bit.div_euclid(8), (lo + width).div_ceil(8))
}

fn gives_packet(init: &Expr) -> bool {
    let names = ["read_input_port", "peek_input_port", "new_packet"];
    matches!(&init.kind, ExprKind::Call(name, ..) if names.contains(&name.text.as_str()))
}
