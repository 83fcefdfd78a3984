// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Initialisers of declarations: a value, or a list for an array or record.

use super::body::Body;
use super::places::Place;
use super::{Lowered, Reported};
use crate::ast::{Expr, ExprKind};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Field, Record, Type, layout};
use freeport_ir::Bits;

impl<'a> Body<'_, 'a> {
    /// Stores the initialiser into a variable; parts that a list omits become 0.
    pub(super) fn initialise(&mut self, place: &Place, init: &'a Expr) -> Lowered<()> {
        match (&init.kind, &place.ty) {
            (ExprKind::List(items), Type::Array(item, count)) => {
                if items.len() as u64 > *count {
                    return Err(self.too_many(*count, init.span));
                }
                for (at, (label, value)) in items.iter().enumerate() {
                    if let Some(label) = label {
                        return Err(self.no_member(&place.ty, &label.text, label.span));
                    }
                    let stride = layout::size_bytes(item) * 8;
                    let element = place.part(at as u64 * stride, item);
                    self.initialise(&element, value)?;
                }
                self.clear_elements(place, item, items.len() as u64, *count, init.span)
            }
            (ExprKind::List(items), Type::Record(record)) => {
                let record = record.clone();
                self.clear(place, init.span)?;
                let named = self.members_of(&record, items, init.span)?;
                for (field, bit, value) in named {
                    let part = place.part(bit, &field.ty);
                    let part = Place { bit_field: field.bit_field, ..part };
                    self.initialise(&part, value)?;
                }
                Ok(())
            }
            (ExprKind::List(items), _) => match items.as_slice() {
                [(None, value)] => self.initialise(place, value),
                _ => Err(self.too_many(1, init.span)),
            },
            _ => {
                let value = self.value_as(init, &place.ty.clone())?;
                self.store(place, &value, init.span)
            }
        }
    }

    /// Sets a variable to 0.
    pub(super) fn clear(&mut self, place: &Place, span: Span) -> Lowered<()> {
        match &place.ty {
            Type::Array(item, count) => self.clear_elements(place, item, 0, *count, span),
            ty => {
                let zero = self.zero(ty);
                self.store(place, &zero, span)
            }
        }
    }

    fn clear_elements(
        &mut self,
        place: &Place,
        item: &Type,
        from: u64,
        to: u64,
        span: Span,
    ) -> Lowered<()> {
        let (inner, per_item) = item.innermost();
        if (to - from) * per_item > super::body::REGISTER_THRESHOLD {
            let (inner, from, to) = (inner.clone(), from * per_item, to * per_item);
            return self.clear_by_loop(place, &inner, from, to, span);
        }
        for at in from..to {
            let element = place.part(at * layout::size_bytes(item) * 8, item);
            self.clear(&element, span)?;
        }
        Ok(())
    }

    /// Returns the member that each value of a list initialises, with its bit.
    fn members_of<'e>(
        &mut self,
        record: &Record,
        items: &'e [(Option<crate::ast::Name>, Expr)],
        span: Span,
    ) -> Lowered<Vec<(Field, u64, &'e Expr)>> {
        let mut found = vec![];
        let mut next = 0;
        let limit = if record.is_union { 1 } else { record.fields.len() };
        for (label, value) in items {
            let (field, bit) = match label {
                Some(label) => match layout::find(record, &label.text) {
                    Some((field, bit)) => {
                        let same = |other: &Field| other.name == field.name;
                        next = record.fields.iter().position(same).map_or(next, |at| at + 1);
                        (field.clone(), bit)
                    }
                    None => {
                        let name = record.name.clone();
                        return Err(self.no_member_of(&name, &label.text, label.span));
                    }
                },
                None if next < limit => {
                    next += 1;
                    let field = record.fields[next - 1].clone();
                    let bit = field.bit;
                    (field, bit)
                }
                None => return Err(self.too_many(limit as u64, span)),
            };
            found.push((field, bit, value));
        }
        Ok(found)
    }

    /// Returns the elements of a constant array; elements that the list omits are 0.
    pub(super) fn constant_elements(&mut self, ty: &Type, init: &Expr) -> Lowered<Vec<Bits>> {
        match (ty, &init.kind) {
            (Type::Array(item, count), ExprKind::List(items)) => {
                if items.len() as u64 > *count {
                    return Err(self.too_many(*count, init.span));
                }
                let mut all = vec![];
                for (label, value) in items {
                    if let Some(label) = label {
                        return Err(self.no_member(ty, &label.text, label.span));
                    }
                    all.extend(self.constant_elements(item, value)?);
                }
                let (inner, total) = ty.innermost();
                let zero = Bits::zero(inner.value_bits() as u32);
                let total = usize::try_from(total).unwrap_or(usize::MAX);
                // Missing elements at the end of an object are 0 anyway; this keeps rows aligned.
                if total <= MOST_LISTED {
                    all.resize(total, zero);
                }
                Ok(all)
            }
            (Type::Array(..), _) => Err(self.report(
                Diagnostic::error("E0215", init.span, format!("`{ty}` needs a list"))
                    .label("not a list")
                    .help("write the elements between `{` and `}`"),
            )),
            _ => {
                let value = self.constant(init)?;
                Ok(value.converted(ty).map(|constant| vec![constant.bits]).unwrap_or_default())
            }
        }
    }

    /// Returns the initial contents of a state variable, element by element.
    pub(super) fn initial_contents(&mut self, ty: &Type, init: &Expr) -> Lowered<Vec<Bits>> {
        match (ty, &init.kind) {
            (Type::Record(record), ExprKind::List(items)) => {
                let record = record.clone();
                let mut whole = Bits::zero(ty.value_bits() as u32);
                for (field, bit, value) in self.members_of(&record, items, init.span)? {
                    whole = self.inserted(whole, &field, bit, value)?;
                }
                Ok(vec![whole])
            }
            (Type::Array(item, _), ExprKind::List(items)) if !item.innermost().0.is_integer() => {
                let mut all = vec![];
                for (_, value) in items {
                    all.extend(self.initial_contents(item, value)?);
                }
                Ok(all)
            }
            (Type::Record(_), _) => Err(self.report(
                Diagnostic::error("E0215", init.span, format!("`{ty}` needs a list"))
                    .label("not a list")
                    .help("write the members between `{` and `}`, or set them in `.init`"),
            )),
            _ => self.constant_elements(ty, init),
        }
    }

    fn inserted(&mut self, whole: Bits, field: &Field, bit: u64, value: &Expr) -> Lowered<Bits> {
        let parts = self.initial_contents(&field.ty, value)?;
        let (inner, _) = field.ty.innermost();
        let stride = layout::size_bytes(inner) * 8;
        let mut whole = whole;
        for (at, part) in parts.into_iter().enumerate() {
            let part = match field.bit_field {
                Some(width) => part.resize(width),
                None => part,
            };
            whole = whole.insert((bit + at as u64 * stride) as u32, &part);
        }
        Ok(whole)
    }

    fn too_many(&mut self, count: u64, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0215", span, "too many values in this list")
                .label(format!("there is room for {count}"))
                .help("remove some, or make the array larger"),
        )
    }

    fn no_member(&mut self, ty: &Type, member: &str, span: Span) -> Reported {
        self.no_member_of(&ty.to_string(), member, span)
    }

    fn no_member_of(&mut self, ty: &str, member: &str, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0204", span, format!("`{ty}` has no member `{member}`"))
                .label("no such member")
                .help("use the names of its members"),
        )
    }
}

/// Maximum elements of a constant array that are listed in full when the initialiser is shorter.
const MOST_LISTED: usize = 1 << 20;
