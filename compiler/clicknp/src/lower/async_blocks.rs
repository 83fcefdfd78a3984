// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `async` blocks (ClickNP 4.11). Each becomes a function of its own, which receives the locals
//! that the block uses and returns the ones it may change. The meaning is that of the block in
//! place.

use super::assigned;
use super::body::{Body, Returns, Role};
use super::names::{Binding, Scope};
use super::places::{Base, Place};
use super::values::Value;
use super::{Lowered, Reported};
use crate::ast::Block;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Type, layout};
use freeport_ir::{CallOrder, Function, Latency, ObjectRef, Op, Term, Type as IrType, ValueId};

/// Maximum width of all locals passed into or out of a block.
const MOST_BITS: u64 = 1 << 16;

/// A local that the block uses.
struct Shared {
    name: String,
    place: Place,
    span: Span,
    is_written: bool,
}

impl<'a> Body<'_, 'a> {
    pub(super) fn async_block(&mut self, block: &'a Block, span: Span) -> Lowered<()> {
        if self.role != Role::Handler || !self.expanding.is_empty() {
            return Err(self.report(
                Diagnostic::error("E0312", span, "`async` is only allowed in `.handler`")
                    .label("not in a handler")
                    .help("move the block to the handler, or omit `async`"),
            ));
        }
        let shared = self.shared_locals(block, span)?;
        self.at(span);
        let mut args = vec![];
        for local in &shared {
            args.push(self.whole_value(&local.place, span)?);
        }
        let (function, result) = self.async_function(block, &shared, span)?;
        let (latency, order) = (Latency::Async, CallOrder::InOrder);
        let op = Op::Call { function, args, latency, order };
        self.at(span);
        let Some(width) = result else {
            self.builder.push_effect(op);
            return Ok(());
        };
        let whole = self.builder.push(op, IrType::Bits(width));
        let mut bit = 0;
        for local in shared.iter().filter(|local| local.is_written) {
            let width = packed_bits(&local.place.ty) as u32;
            let part = self.builder.extract(whole, bit, width);
            self.store_whole(&local.place, part, span)?;
            bit += width;
        }
        Ok(())
    }

    /// Returns the locals of the handler that the block names.
    fn shared_locals(&mut self, block: &Block, span: Span) -> Lowered<Vec<Shared>> {
        let names = assigned::of_block(block);
        let mut used: Vec<_> = names.used.iter().cloned().collect();
        used.sort();
        let mut shared = vec![];
        let mut bits = 0;
        for name in used {
            let found = self.scopes.iter().rev().find_map(|scope| scope.get(&name));
            let Some((binding, declared)) = found.cloned() else { continue };
            let place = match binding {
                Binding::Variable(place) => place,
                Binding::Packet(_) => return Err(self.packet_in_async(&name, span)),
                Binding::Pointer(_) => return Err(self.pointer_in_async(&name, span)),
                _ => continue,
            };
            if matches!(place.base, Base::Object(ObjectRef::State(_))) {
                continue;
            }
            bits += packed_bits(&place.ty);
            if bits > MOST_BITS {
                return Err(self.report(
                    Diagnostic::error("E0315", span, "too much passes into this `async` block")
                        .label(format!("more than {MOST_BITS} bits of local variables"))
                        .note(declared, "the last of them")
                        .help("keep large arrays in `.state`"),
                ));
            }
            let is_array = matches!(place.ty, Type::Array(..));
            let may_be_written = names.assigned.contains(&name)
                || names.has_pointers
                || is_array && names.passed.contains(&name);
            let is_written = may_be_written && !place.is_const;
            shared.push(Shared { name, place, span: declared, is_written });
        }
        Ok(shared)
    }

    fn pointer_in_async(&mut self, name: &str, span: Span) -> Reported {
        let message = format!("the pointer `{name}` cannot enter an `async` block");
        self.report(
            Diagnostic::error("E0315", span, message)
                .label("the block gets copies of variables, not their places")
                .help("use the variable itself, or make the pointer inside the block"),
        )
    }

    fn packet_in_async(&mut self, name: &str, span: Span) -> Reported {
        let message = format!("the packet `{name}` cannot enter an `async` block");
        self.report(
            Diagnostic::error("E0315", span, message)
                .label("the block runs on its own, and the packet stays with the handler")
                .help("copy what the block needs of it to variables first"),
        )
    }

    /// Lowers the block as a function of its locals; returns the width of its result, if any.
    fn async_function(
        &mut self,
        block: &'a Block,
        shared: &[Shared],
        span: Span,
    ) -> Lowered<(freeport_ir::FunctionId, Option<u32>)> {
        let (element, loc) = (self.element.clone(), self.lowering.sources.loc(span));
        let Some(element) = element else { return Err(self.pointer_in_async("element", span)) };
        let name = format!("{}.async_{}", element.name, loc.line);
        let function = Function::new(name, Some(element.id), loc);
        let lowering = &mut *self.lowering;
        let returns = Returns::Nowhere;
        let mut body = Body::new(lowering, function, Some(element), Role::Async, returns);
        body.moved = assigned::of_block(block).moved;
        for scope in &self.scopes[1..] {
            // Constants and types of the handler are visible inside too.
            let known = scope.iter().filter(|(_, (binding, _))| {
                matches!(binding, Binding::Constant(_) | Binding::Table(_) | Binding::Type(_))
            });
            let known: Scope<'a> =
                known.map(|(name, bound)| (name.clone(), bound.clone())).collect();
            body.scopes.push(known);
        }
        body.scopes.push(Scope::new());
        let mut homes = vec![];
        for local in shared {
            let width = packed_bits(&local.place.ty) as u32;
            let entry = Function::ENTRY;
            let name = Some(local.name.clone());
            let id = body.builder.add_param(entry, IrType::Bits(width), name);
            let home = body.new_local(&local.name, &local.place.ty, local.span);
            body.store_whole(&home, id, span)?;
            let home = Place { is_const: local.place.is_const, ..home };
            let bound = (Binding::Variable(home.clone()), local.span);
            body.scopes.last_mut().expect("just pushed").insert(local.name.clone(), bound);
            homes.push(home);
        }
        body.block(block);
        body.at(span);
        let mut results = vec![];
        let mut width = 0;
        for (home, _) in homes.iter().zip(shared).filter(|(_, local)| local.is_written) {
            width += packed_bits(&home.ty) as u32;
            results.push(body.whole_value(home, span)?);
        }
        let value = match results.as_slice() {
            [] => None,
            [only] => Some(*only),
            _ => Some(body.builder.push(Op::Concat(results), IrType::Bits(width))),
        };
        body.builder.end(Term::Return { value });
        let result = value.map(|_| width);
        body.builder.function_mut().result = result.map(IrType::Bits);
        let function = body.finish();
        Ok((self.lowering.add_function(function), result))
    }

    /// Loads a whole variable as one value, arrays element by element.
    fn whole_value(&mut self, place: &Place, span: Span) -> Lowered<ValueId> {
        let Type::Array(..) = &place.ty else {
            let value = self.load(place, span)?;
            return Ok(self.materialise(&value));
        };
        let (inner, count) = place.ty.innermost();
        let (inner, stride) = (inner.clone(), layout::size_bytes(inner) * 8);
        let mut parts = vec![];
        for at in 0..count {
            let value = self.load(&place.part(at * stride, &inner), span)?;
            parts.push(self.materialise(&value));
        }
        let width = packed_bits(&place.ty) as u32;
        Ok(self.builder.push(Op::Concat(parts), IrType::Bits(width)))
    }

    /// Stores a value made by [`Body::whole_value`].
    fn store_whole(&mut self, place: &Place, id: ValueId, span: Span) -> Lowered<()> {
        let (inner, count) = place.ty.innermost();
        let (inner, stride) = (inner.clone(), layout::size_bytes(inner) * 8);
        let width = inner.value_bits() as u32;
        for at in 0..count {
            let part = self.builder.extract(id, at as u32 * width, width);
            let value = Value::computed(inner.clone(), part);
            self.store(&place.part(at * stride, &inner), &value, span)?;
        }
        Ok(())
    }
}

/// Returns the width of a variable without padding between array elements.
fn packed_bits(ty: &Type) -> u64 {
    let (inner, count) = ty.innermost();
    inner.value_bits().saturating_mul(count)
}
