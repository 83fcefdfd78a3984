// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Expressions: each is checked and emitted in one traversal.

use super::body::Body;
use super::constants::Constant;
use super::names::Binding;
use super::places::{Base, Place};
use super::values::{Data, Value};
use super::{Lowered, Reported};
use crate::ast::{BinaryOperator, Expr, ExprKind, Name, UnaryOperator};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::spelling::{did_you_mean, nearest};
use crate::types::{Type, ULONG, WINDOW_BYTES, layout};
use freeport_ir::{Bits, ObjectRef};
use std::sync::Arc;

/// Result of an expression.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A value.
    Value(Value),
    /// Something in memory, which can be loaded and assigned to.
    Place(Place),
    /// A pointer to something.
    Pointer(Place),
    /// No value.
    Void,
}

impl<'a> Body<'_, 'a> {
    /// Lowers any expression.
    pub fn operand(&mut self, expr: &'a Expr) -> Lowered<Operand> {
        self.at(expr.span);
        match &expr.kind {
            ExprKind::Number(..)
            | ExprKind::Bool(_)
            | ExprKind::Char(_)
            | ExprKind::Ipv4(_)
            | ExprKind::Mac(_)
            | ExprKind::SizeofType(_) => Ok(Operand::Value(Value::known(self.constant(expr)?))),
            ExprKind::Text(_) => Err(self.misplaced("a text", "only `printf` takes a text", expr)),
            ExprKind::List(_) => Err(self.misplaced(
                "a list",
                "a list is only allowed after `=` in a declaration",
                expr,
            )),
            ExprKind::Name(name, _) => self.named(name, expr.span),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, expr.span),
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right, expr.span),
            ExprKind::Assign(op, target, value) => self.assignment(*op, target, value, expr.span),
            ExprKind::Step { increment, prefix, target } => {
                self.step(*increment, *prefix, target, expr.span)
            }
            ExprKind::Conditional(cond, yes, no) => self.conditional(cond, yes, no, expr.span),
            ExprKind::Call(name, template, args) => self.call(name, template, args, expr.span),
            ExprKind::MethodCall(of, method, args) => self.method_call(of, method, args, expr.span),
            ExprKind::Index(of, at) => self.index(of, at, expr.span),
            ExprKind::Slice(of, high, low) => self.slice(of, high, low, expr.span),
            ExprKind::Member { of, member, through_pointer } => {
                self.member(of, member, *through_pointer)
            }
            ExprKind::Cast(ty, value) => {
                let ty = self.resolve(ty)?;
                self.cast(&ty, value, expr.span)
            }
            ExprKind::SizeofExpr(value) => {
                let ty = match self.type_called(value)? {
                    Some(ty) => ty,
                    None => self.type_of(value)?,
                };
                if let Type::Packet(_) = ty {
                    return Err(self.packet_kept(expr.span));
                }
                let size = Constant::of(ULONG, layout::size_bytes(&ty));
                Ok(Operand::Value(Value::known(size)))
            }
            ExprKind::Comma(left, right) => {
                self.operand(left)?;
                self.operand(right)
            }
        }
    }

    /// Lowers an expression that has a value: a number, struct or union.
    pub fn value(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let operand = self.operand(expr)?;
        self.value_of(operand, expr.span)
    }

    /// Returns the value of an operand.
    pub fn value_of(&mut self, operand: Operand, span: Span) -> Lowered<Value> {
        match operand {
            Operand::Value(value) => Ok(value),
            Operand::Place(place) => self.load(&place, span),
            Operand::Pointer(place) => Err(self.report(
                Diagnostic::error("E0206", span, "a pointer is not a value")
                    .label(format!("this is a pointer to `{}`", place.ty))
                    .help("put `*` before it, or index it, to get what it points to"),
            )),
            Operand::Void => Err(self.report(
                Diagnostic::error("E0206", span, "this has no value")
                    .label("of type `void`")
                    .help("call it as a statement of its own"),
            )),
        }
    }

    /// Lowers an expression whose value is a number.
    pub fn number(&mut self, expr: &'a Expr) -> Lowered<Value> {
        let value = self.value(expr)?;
        self.check_number(&value, expr.span)?;
        Ok(value)
    }

    /// Reports a value that is not a number.
    pub fn check_number(&mut self, value: &Value, span: Span) -> Lowered<()> {
        if value.ty.is_integer() {
            return Ok(());
        }
        let help = match value.ty {
            Type::Packet(_) => "use its `length`, or bytes of its `data`",
            _ => "use one of its members",
        };
        Err(self.report(
            Diagnostic::error("E0207", span, "a number is needed here")
                .label(format!("of type `{}`", value.ty))
                .help(help),
        ))
    }

    /// Lowers an expression, converted to a type as by assignment.
    pub fn value_as(&mut self, expr: &'a Expr, ty: &Type) -> Lowered<Value> {
        let value = self.value(expr)?;
        self.convert(&value, ty, expr.span)
    }

    /// Converts a value to a type, as by assignment.
    pub fn convert(&mut self, value: &Value, ty: &Type, span: Span) -> Lowered<Value> {
        if value.ty.is_integer() && ty.is_integer() {
            return Ok(self.converted(value, ty));
        }
        let are_packets = matches!((&value.ty, ty), (Type::Packet(_), Type::Packet(_)));
        if value.ty == *ty || are_packets {
            return Ok(value.clone());
        }
        let message = format!("expected `{ty}`, found `{}`", value.ty);
        Err(self.report(
            Diagnostic::error("E0206", span, message)
                .label(format!("of type `{}`", value.ty))
                .help("numbers convert to each other; other types must be the same"),
        ))
    }

    fn named(&mut self, name: &str, span: Span) -> Lowered<Operand> {
        match self.lookup(name) {
            Some(Binding::Variable(place)) => Ok(Operand::Place(place)),
            Some(Binding::Pointer(id)) => Ok(Operand::Pointer(self.pointee(id, span)?)),
            Some(Binding::Packet(packet)) => {
                let ty = Type::Packet(WINDOW_BYTES);
                Ok(Operand::Value(Value::computed(ty, packet.id)))
            }
            Some(Binding::OfOtherArm) => Err(self.of_other_arm(name, span)),
            Some(Binding::Wrong) => Err(Reported(())),
            Some(Binding::Constant(constant)) => Ok(Operand::Value(Value::known(constant))),
            Some(Binding::Table(table)) => {
                let object = self.table_object(&table, span);
                let place = Place::whole(object, &table.ty);
                Ok(Operand::Place(Place { is_const: true, ..place }))
            }
            Some(Binding::Keyed(_)) => Err(self.table_as_value(name, span)),
            Some(Binding::Instances(_)) => Err(self.instance_as_value(name, span)),
            Some(Binding::Port(side, at)) => self.port_bits(side, at, span),
            Some(Binding::Type(_)) => Err(self.type_as_value(name, span)),
            Some(Binding::Function(_)) => {
                let message = format!("`{name}` is not a variable");
                Err(self.report(
                    Diagnostic::error("E0205", span, message)
                        .label("a function; a value is needed here")
                        .help("call it: write `(` and its arguments after its name"),
                ))
            }
            None if self.lowering.global_type(name, span)?.is_some() => {
                Err(self.type_as_value(name, span))
            }
            None => Err(self.unknown_name(name, span)),
        }
    }

    /// Returns the type in place of an expression: the parser does not know types that are template
    /// arguments, and those of library files found without an import.
    fn type_called(&mut self, expr: &Expr) -> Lowered<Option<Type>> {
        let ExprKind::Name(name, args) = &expr.kind else { return Ok(None) };
        match self.lookup(name) {
            Some(Binding::Type(ty)) => Ok(Some(ty)),
            None if args.is_empty() => self.lowering.global_type(name, expr.span),
            _ => Ok(None),
        }
    }

    /// Reports a type where a value is needed. The span of `(T)` includes the parentheses.
    fn type_as_value(&mut self, name: &str, span: Span) -> Reported {
        let is_in_parentheses = (span.end - span.start) as usize > name.len();
        let help = match is_in_parentheses {
            true => format!(
                "`({name}) -x` is read as a subtraction, since `{name}` might be a number: write \
                 `({name})(-x)`, or `typename {name}` among the template's parameters"
            ),
            false => "declare a variable of this type and use that".to_string(),
        };
        self.report(
            Diagnostic::error("E0205", span, format!("`{name}` is a type, not a value"))
                .label("a value is needed here")
                .help(help),
        )
    }

    /// Returns the object that holds a constant array: one per element, or one per function.
    fn table_object(&mut self, table: &Arc<super::names::ConstantTable>, span: Span) -> ObjectRef {
        let known = self.tables.iter().find(|(other, _)| Arc::ptr_eq(other, table));
        if let Some((_, object)) = known {
            return *object;
        }
        let object = match self.element.clone() {
            Some(element) => ObjectRef::State(self.lowering.table_state(&element, table, span)),
            None => {
                let local = self.new_object(&table.name, &table.ty, span);
                let object = &mut self.builder.function_mut().locals[local.index()];
                object.init = table.elements.clone();
                ObjectRef::Local(local)
            }
        };
        self.tables.push((table.clone(), object));
        object
    }

    /// Reports an unknown name, with the most similar known one.
    pub fn unknown_name(&mut self, name: &str, span: Span) -> Reported {
        let diagnostic = Diagnostic::error("E0201", span, format!("`{name}` is not defined"))
            .label("nothing has this name here");
        let local = self.scopes.iter().flat_map(|scope| scope.keys());
        let all = local.chain(self.lowering.value_names()).map(String::as_str);
        let otherwise = match name {
            "NULL" | "nullptr" => "`!p` is true if a lookup found nothing; there is no other null",
            _ => "declare it before it is used, or import the file that does",
        };
        let help = did_you_mean(nearest(name, all), otherwise);
        self.report(diagnostic.help(help))
    }

    /// Lowers an assignable expression.
    pub fn target(&mut self, expr: &'a Expr) -> Lowered<Place> {
        let is_constant =
            matches!(expr.kind, ExprKind::Name(..)) && self.try_constant(expr).is_some();
        let operand = self.operand(expr)?;
        if matches!(&operand, Operand::Value(value) if matches!(value.ty, Type::Packet(_))) {
            return Err(self.packet_assigned(expr.span));
        }
        let place = match operand {
            Operand::Place(place) if !place.is_const => place,
            _ if is_constant || matches!(operand, Operand::Place(_)) => {
                return Err(self.report(
                    Diagnostic::error("E0208", expr.span, "a constant cannot be changed")
                        .label("declared `const`")
                        .help("remove `const` from its declaration, or change another variable"),
                ));
            }
            _ => {
                return Err(self.report(
                    Diagnostic::error("E0208", expr.span, "this cannot be assigned to")
                        .label("not a variable or a part of one")
                        .help("assign to a variable, a member, an array element or a slice"),
                ));
            }
        };
        Ok(place)
    }

    fn unary(&mut self, op: UnaryOperator, of: &'a Expr, span: Span) -> Lowered<Operand> {
        match op {
            UnaryOperator::Dereference => match self.decayed(of)? {
                Operand::Pointer(place) => Ok(Operand::Place(place)),
                _ => Err(self.not_a_pointer(of.span)),
            },
            UnaryOperator::AddressOf => {
                let place = match self.operand(of)? {
                    Operand::Place(place) if place.has_address() => place,
                    _ => {
                        return Err(self.report(
                            Diagnostic::error("E0208", span, "this has no address")
                                .label("not a variable or a part of one")
                                .help("copy it to a variable first"),
                        ));
                    }
                };
                Ok(Operand::Pointer(place))
            }
            _ => {
                let value = match op {
                    UnaryOperator::Not => self.condition(of)?,
                    _ => self.number(of)?,
                };
                Ok(Operand::Value(self.unary_value(op, &value)))
            }
        }
    }

    /// Lowers an operand; an array becomes a pointer to its first element.
    pub fn decayed(&mut self, expr: &'a Expr) -> Lowered<Operand> {
        Ok(match self.operand(expr)? {
            Operand::Place(place) => match place.decayed() {
                Some(first) => Operand::Pointer(first),
                None => Operand::Place(place),
            },
            other => other,
        })
    }

    pub(super) fn not_a_pointer(&mut self, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0212", span, "this is neither an array nor a pointer")
                .label("cannot be indexed or followed")
                .help("take an address with `&`, or use the variable itself"),
        )
    }

    /// Reports `->` after a value that is not a pointer.
    fn followed(&mut self, operand: &Operand, span: Span) -> Reported {
        let ty = match operand {
            Operand::Place(place) => Some(&place.ty),
            Operand::Value(value) => Some(&value.ty),
            _ => None,
        };
        if !ty.is_some_and(|ty| matches!(ty, Type::Packet(_) | Type::Record(_))) {
            return self.not_a_pointer(span);
        }
        self.report(
            Diagnostic::error("E0212", span, "this is neither an array nor a pointer")
                .label("not a pointer, so `->` cannot follow it")
                .help("write `.` before the member"),
        )
    }

    /// Lowers `of.member` or `of->member`.
    fn member(&mut self, of: &'a Expr, member: &'a Name, through: bool) -> Lowered<Operand> {
        let operand = if through { self.decayed(of)? } else { self.operand(of)? };
        let operand = match (operand, through) {
            (Operand::Pointer(place), _) => Operand::Place(place),
            (operand, true) => return Err(self.followed(&operand, of.span)),
            (operand, false) => operand,
        };
        let ty = match &operand {
            Operand::Place(place) => place.ty.clone(),
            Operand::Value(value) => value.ty.clone(),
            _ => Type::Void,
        };
        if let (Operand::Value(packet), Type::Packet(_)) = (&operand, &ty) {
            return self.packet_member(of, packet, member);
        }
        let Type::Record(record) = &ty else {
            let message = format!("`.{}` of something that is not a struct or union", member.text);
            return Err(self.report(
                Diagnostic::error("E0205", of.span, message)
                    .label(format!("of type `{ty}`"))
                    .help("only structs, unions, flits and signals have members"),
            ));
        };
        let Some((field, bit)) = layout::find(record, &member.text) else {
            let names = record.fields.iter().filter_map(|field| field.name.as_deref());
            let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
            let message = format!("`{ty}` has no member `{}`", member.text);
            return Err(self.report(
                Diagnostic::error("E0204", member.span, message)
                    .label("no such member")
                    .help(format!("its members are {}", names.join(", "))),
            ));
        };
        match operand {
            Operand::Place(place) => {
                let part = place.part(bit, &field.ty);
                Ok(Operand::Place(Place { bit_field: field.bit_field, ..part }))
            }
            Operand::Value(value) => {
                self.at(member.span);
                self.value_member(&value, &field.ty, bit, field.bit_field, member.span)
            }
            _ => Err(self.not_a_pointer(of.span)),
        }
    }

    /// Returns a member of a value that is not in a variable: numbers are extracted, other types
    /// get a temporary.
    fn value_member(
        &mut self,
        value: &Value,
        ty: &Type,
        bit: u64,
        bit_field: Option<u32>,
        span: Span,
    ) -> Lowered<Operand> {
        if !ty.is_integer() || bit_field.is_some() {
            let home = self.new_temporary(&value.ty, span);
            self.store(&home, value, span)?;
            return Ok(Operand::Place(Place { bit_field, ..home.part(bit, ty) }));
        }
        let id = self.materialise(value);
        let id = self.builder.extract(id, bit as u32, ty.value_bits() as u32);
        Ok(Operand::Value(Value::computed(ty.clone(), id)))
    }

    fn cast(&mut self, ty: &Type, value: &'a Expr, span: Span) -> Lowered<Operand> {
        match ty {
            Type::Pointer(target) => match self.decayed(value)? {
                Operand::Pointer(place) => Ok(Operand::Pointer(place.part(0, target))),
                _ => Err(self.report(
                    Diagnostic::error("E0213", value.span, "a number cannot become a pointer")
                        .label("not an array or an address")
                        .help("pointers are resolved at compile time: cast an array or `&x`"),
                )),
            },
            Type::Void => {
                self.operand(value)?;
                Ok(Operand::Void)
            }
            Type::Packet(_) => Err(self.packet_kept(span)),
            _ => {
                let value = self.value(value)?;
                Ok(Operand::Value(self.convert(&value, ty, span)?))
            }
        }
    }

    /// Returns the type of an expression without evaluating it.
    pub(super) fn type_of(&mut self, expr: &'a Expr) -> Lowered<Type> {
        let kept = self.builder.block();
        let aside = self.builder.new_block();
        self.builder.switch_to(aside);
        let operand = self.operand(expr);
        // The emitted code is in unreachable blocks.
        self.builder.switch_to(kept);
        Ok(match operand? {
            Operand::Value(value) => value.ty,
            Operand::Place(place) => place.ty,
            Operand::Pointer(place) => Type::Pointer(Arc::new(place.ty)),
            Operand::Void => Type::Void,
        })
    }

    fn misplaced(&mut self, what: &str, help: &str, expr: &Expr) -> Reported {
        self.report(
            Diagnostic::error("E0206", expr.span, format!("{what} is not a value here"))
                .label("a number, struct or union is needed")
                .help(help),
        )
    }

    /// Returns a value of all zeros.
    pub fn zero(&self, ty: &Type) -> Value {
        let bits = Bits::zero(ty.value_bits() as u32);
        Value { ty: ty.clone(), bit_field: None, data: Data::Known(bits) }
    }

    /// Returns whether evaluating an expression has no effect and cannot go out of range, so that
    /// it may be evaluated speculatively.
    pub fn is_harmless(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Number(..) | ExprKind::Bool(_) | ExprKind::Char(_) | ExprKind::Ipv4(_) => {
                true
            }
            ExprKind::Mac(_) | ExprKind::Name(..) | ExprKind::SizeofType(_) => true,
            ExprKind::SizeofExpr(_) => true,
            ExprKind::Unary(UnaryOperator::Dereference, _) => false,
            ExprKind::Unary(_, of) | ExprKind::Cast(_, of) => self.is_harmless(of),
            // A load through a pointer may be out of range.
            ExprKind::Member { of, through_pointer: true, .. } => {
                self.points_into_variable(of) && self.is_harmless(of)
            }
            ExprKind::Member { of, .. } => self.is_harmless(of),
            ExprKind::Slice(of, ..) => self.is_harmless(of),
            ExprKind::Binary(_, left, right) => self.is_harmless(left) && self.is_harmless(right),
            ExprKind::Conditional(cond, yes, no) => {
                [cond, yes, no].into_iter().all(|part| self.is_harmless(part))
            }
            _ => false,
        }
    }

    fn points_into_variable(&mut self, pointer: &Expr) -> bool {
        let Some(name) = super::assigned::root(pointer) else { return false };
        let place = match self.lookup(name) {
            Some(Binding::Pointer(id)) => self.pointers[id].place.as_ref(),
            Some(Binding::Variable(_)) => return true,
            _ => None,
        };
        place.is_some_and(|place| matches!(place.base, Base::Object(_)))
    }

    /// Applies the operator of a compound assignment or a step to values.
    pub fn combined(
        &mut self,
        op: BinaryOperator,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> Lowered<Value> {
        self.check_number(left, span)?;
        self.check_number(right, span)?;
        self.at(span);
        Ok(self.binary_value(op, left, right))
    }
}
