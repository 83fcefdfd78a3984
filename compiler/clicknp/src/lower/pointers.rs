// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Pointers exist only at compile time: each is a place. A pointer variable that is assigned to
//! stays within one object; its position there is kept in separate variables.

use super::Lowered;
use super::body::Body;
use super::places::{Base, Place};
use super::values::Value;
use crate::ast::Name;
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Type, ULONG, layout};
use freeport_ir::BinaryOp;

/// Index of a pointer variable of a function.
pub type PointerId = usize;

/// A pointer variable.
#[derive(Clone, Debug)]
pub struct PointerVariable {
    /// Its name.
    pub name: String,
    /// The type it points to.
    pub target: Type,
    /// Target, once known.
    pub place: Option<Place>,
    /// Whether it may be assigned to again.
    pub moves: bool,
    /// For one that moves: the variable with the index of the target element.
    pub element: Option<Place>,
    /// For one that moves: the variable with the target bit in the element.
    pub bit: Option<Place>,
    /// Number of scopes open at its declaration.
    pub depth: usize,
}

impl Body<'_, '_> {
    /// Declares a pointer variable that points to `place`, if that is known yet.
    pub fn declare_pointer(
        &mut self,
        name: &Name,
        target: &Type,
        place: Option<Place>,
    ) -> Lowered<()> {
        let id = self.pointers.len();
        // Values computed in an arm of a switch are not available in the next one; variables are.
        let is_in_switch = self.control.iter().any(|control| control.is_switch);
        let is_computed = place.as_ref().is_some_and(|place| !place.is_static());
        let moves = self.moved.contains(&name.text) || is_in_switch && is_computed;
        self.pointers.push(PointerVariable {
            name: name.text.clone(),
            target: target.clone(),
            place: None,
            moves,
            element: None,
            bit: None,
            depth: self.scopes.len(),
        });
        self.declare(name, super::names::Binding::Pointer(id));
        match place {
            Some(place) if matches!(place.base, Base::TableValue(_)) => {
                self.pointers[id].place =
                    Some(Place { ty: target.clone(), bit_field: None, ..place });
                Ok(())
            }
            Some(place) => self.assign_pointer(id, &place, name.span),
            None => Ok(()),
        }
    }

    /// Returns the target of a pointer variable.
    pub fn pointee(&mut self, id: PointerId, span: Span) -> Lowered<Place> {
        let variable = self.pointers[id].clone();
        let Some(mut place) = variable.place else {
            let message = format!("`{}` points to nothing yet", variable.name);
            return Err(self.report(
                Diagnostic::error("E0213", span, message)
                    .label("used before it is set")
                    .help("set it to the address of a variable first"),
            ));
        };
        if let Some(element) = variable.element {
            let value = self.load(&element, span)?;
            place.index = Some(self.materialise(&value));
        }
        if let Some(bit) = variable.bit {
            let value = self.load(&bit, span)?;
            place.dynamic_bit = Some(self.materialise(&value));
        }
        Ok(place)
    }

    /// Makes a pointer variable point to `place`.
    pub fn assign_pointer(&mut self, id: PointerId, place: &Place, span: Span) -> Lowered<()> {
        let place =
            Place { ty: self.pointers[id].target.clone(), bit_field: None, ..place.clone() };
        if let (Base::Packet(packet), None) = (place.base, &self.pointers[id].place) {
            self.check_pointer_into(packet, self.pointers[id].depth, span)?;
        }
        let before = self.pointers[id].place.as_ref().map(|place| place.base);
        let is_found = |base: Base| matches!(base, Base::TableValue(_));
        if is_found(place.base) || before.is_some_and(is_found) {
            let variable = &mut self.pointers[id];
            let name = variable.name.clone();
            // Suppresses errors for its uses.
            variable.place.get_or_insert(place);
            return Err(self.table_pointer_moves(&name, span));
        }
        if !self.pointers[id].moves {
            self.pointers[id].place = Some(place);
            return Ok(());
        }
        match self.pointers[id].place.clone() {
            None => self.begin_moving(id, &place, span),
            Some(before) if before.base == place.base => {}
            Some(before) => {
                let variable = self.pointers[id].name.clone();
                let (from, to) = (self.base_name(before.base), self.base_name(place.base));
                let message =
                    format!("`{variable}` points into `{from}`, and cannot point into `{to}` too");
                return Err(self.report(
                    Diagnostic::error("E0213", span, message)
                        .label("a pointer stays within one variable")
                        .help("use two pointers, or an array and an index"),
                ));
            }
        }
        self.store_position(id, &place, span)
    }

    fn begin_moving(&mut self, id: PointerId, place: &Place, span: Span) {
        let name = self.pointers[id].name.clone();
        let size = layout::size_bytes(&place.ty) * 8;
        let stride = place.stride;
        let moves_in_elements = self.has_elements(place.base);
        let is_aligned = size.is_multiple_of(stride) && place.bit.rem_euclid(stride as i64) == 0;
        let ty = Type::Int(ULONG);
        if moves_in_elements {
            self.pointers[id].element = Some(self.new_local(&name, &ty, span));
        }
        if !moves_in_elements || !is_aligned || place.dynamic_bit.is_some() {
            self.pointers[id].bit = Some(self.new_local(&name, &ty, span));
        }
        let start = Place { bit: 0, index: None, dynamic_bit: None, ..place.clone() };
        self.pointers[id].place = Some(start);
        if moves_in_elements {
            // The target is no longer bounded by the array it began in.
            if let Some(place) = &mut self.pointers[id].place {
                place.window = None;
            }
        }
    }

    /// Stores the position of a moving pointer in its object.
    fn store_position(&mut self, id: PointerId, place: &Place, span: Span) -> Lowered<()> {
        self.at(span);
        let variable = self.pointers[id].clone();
        let stride = place.stride as i64;
        let (element, bit) = (place.bit.div_euclid(stride), place.bit.rem_euclid(stride));
        if variable.bit.is_none() && (bit != 0 || place.dynamic_bit.is_some()) {
            let message = format!("`{}` would point between two elements", variable.name);
            return Err(self.report(
                Diagnostic::error("E0213", span, message)
                    .label("not a multiple of the size of its target")
                    .help("use a pointer to bytes"),
            ));
        }
        if let Some(home) = variable.element {
            let element = self.position(place.index, element as u64);
            self.store(&home, &element, span)?;
        }
        if let Some(home) = variable.bit {
            let bit = self.position(place.dynamic_bit, bit as u64);
            self.store(&home, &bit, span)?;
        }
        Ok(())
    }

    fn position(&mut self, computed: Option<freeport_ir::ValueId>, known: u64) -> Value {
        let known = self.offset(known);
        let id = match computed {
            Some(computed) => {
                let computed = self.builder.resize(computed, 64, false);
                self.builder.binary(BinaryOp::Add, computed, known)
            }
            None => known,
        };
        Value::computed(Type::Int(ULONG), id)
    }
}
