// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Places: parts of objects that can be read and written.
//!
//! A place is measured in bits of memory from the start of its object, with C's layout; the
//! object's elements may hold fewer bits than they occupy (`uint13` occupies 16). Constant and
//! computed parts of an offset are separate, so that constant places become plain loads and stores.
//! A place in a packet is measured from the packet's first byte; its elements are the bytes.

use super::body::{Body, stride_bits};
use super::values::{Data, Value};
use super::{Lowered, Reported};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{Type, layout};
use freeport_ir::{BinaryOp, Bits, ObjectRef, Op, Type as IrType, ValueId};

/// Object that a place is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// A variable.
    Object(ObjectRef),
    /// The bytes of a packet.
    Packet(ValueId),
    /// The value of a table's entry, or null.
    TableValue(ValueId),
}

/// A part of an object or a packet.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Base object.
    pub base: Base,
    /// Distance between neighbouring elements, in bits of memory.
    pub stride: u64,
    /// Constant offset from the start of the object, in bits.
    pub bit: i64,
    /// Computed number of elements to add.
    pub index: Option<ValueId>,
    /// Computed number of bits to add (64 bits wide), within the element.
    pub dynamic_bit: Option<ValueId>,
    /// Array that `dynamic_bit` is confined to: its first bit and width. Bits beyond it read as 0
    /// and cannot be written.
    pub window: Option<(i64, u64)>,
    /// Type of the contents.
    pub ty: Type,
    /// Width, if it is a bit field.
    pub bit_field: Option<u32>,
    /// Whether it must not be assigned to.
    pub is_const: bool,
}

impl Place {
    /// Returns the place of a whole object that holds a `ty`.
    pub fn whole(object: ObjectRef, ty: &Type) -> Self {
        Self {
            base: Base::Object(object),
            stride: stride_bits(ty),
            bit: 0,
            index: None,
            dynamic_bit: None,
            window: None,
            ty: ty.clone(),
            bit_field: None,
            is_const: false,
        }
    }

    /// Returns a place of type `ty`, `bits` further on.
    pub fn part(&self, bits: u64, ty: &Type) -> Self {
        let bit = self.bit.saturating_add_unsigned(bits);
        Self { bit, ty: ty.clone(), bit_field: None, ..self.clone() }
    }

    /// Returns the width of the value there.
    pub fn width(&self) -> u64 {
        self.bit_field.map_or(self.ty.value_bits(), u64::from)
    }

    /// Returns whether the place is known at compile time.
    pub fn is_static(&self) -> bool {
        self.index.is_none() && self.dynamic_bit.is_none()
    }

    /// Returns the first element of an array; the array bounds places computed from it.
    pub fn decayed(&self) -> Option<Self> {
        let Type::Array(item, _) = &self.ty else { return None };
        let mut first = self.part(0, item);
        let is_inside = self.bit_in_element() + self.ty.value_bits() <= self.stride;
        let is_object = matches!(self.base, Base::Object(_));
        if is_object && is_inside && self.dynamic_bit.is_none() {
            first.window = Some((self.bit, self.ty.value_bits()));
        }
        Some(first)
    }

    /// Returns whether a pointer can point to it: not to bits within bytes.
    pub fn has_address(&self) -> bool {
        let is_in_byte = self.bit.rem_euclid(8) != 0 || self.dynamic_bit.is_some();
        let is_object = matches!(self.base, Base::Object(_));
        self.bit_field.is_none() && (is_object || !is_in_byte)
    }

    fn bit_in_element(&self) -> u64 {
        self.bit.rem_euclid(self.stride as i64) as u64
    }
}

/// A part of an access that lies within one element.
struct Piece {
    element: u64,
    lo: u32,
    /// Number of bits that the element holds.
    held: u32,
    /// Number of bits of the access.
    width: u32,
}

impl Body<'_, '_> {
    /// Loads the value at a place.
    pub fn load(&mut self, place: &Place, span: Span) -> Lowered<Value> {
        let width = self.value_width(place, span)?;
        if let Some(known) = self.known_element(place) {
            return Ok(Value { ty: place.ty.clone(), bit_field: None, data: Data::Known(known) });
        }
        self.at(span);
        let mut id = self.load_bits(place, width, span)?;
        self.name_value(place, id);
        if place.bit_field.is_some() {
            let is_signed = place.ty.as_integer().is_some_and(|int| int.is_signed);
            id = self.builder.resize(id, place.ty.value_bits() as u32, is_signed);
        }
        let data = Data::Computed(id);
        Ok(Value { ty: place.ty.clone(), bit_field: place.bit_field, data })
    }

    /// Gives a value that is a whole variable the variable's name, for reports.
    fn name_value(&mut self, place: &Place, id: ValueId) {
        let Base::Object(object) = place.base else { return };
        let object = self.object(object);
        let is_whole = object.depth == 1 && place.is_static() && place.bit == 0;
        if is_whole && u64::from(object.elem_bits) == place.width() {
            let name = object.name.clone();
            self.builder.function_mut().values[id.index()].name = Some(name);
        }
    }

    /// Stores a value of the place's type.
    pub fn store(&mut self, place: &Place, value: &Value, span: Span) -> Lowered<()> {
        let width = self.value_width(place, span)?;
        self.at(span);
        let id = self.materialise(value);
        let id = self.builder.resize(id, width, false);
        self.store_bits(place, id, width, span)
    }

    fn value_width(&mut self, place: &Place, span: Span) -> Lowered<u32> {
        match &place.ty {
            Type::Bool | Type::Int(_) | Type::Record(_) => Ok(place.width() as u32),
            other => Err(self.report(
                Diagnostic::error("E0206", span, format!("`{other}` cannot be copied"))
                    .label("a number, a struct or a union is needed here")
                    .help("work on its members or elements"),
            )),
        }
    }

    fn load_bits(&mut self, place: &Place, width: u32, span: Span) -> Lowered<ValueId> {
        if let Some(dynamic) = place.dynamic_bit {
            let (region, first) = self.region(place, span)?;
            let whole = self.load_static(&region, region.width() as u32, span)?;
            let lo = self.add_offset(dynamic, first);
            let op = Op::ExtractDynamic { value: whole, lo, width };
            return Ok(self.builder.push(op, IrType::Bits(width)));
        }
        self.load_static(place, width, span)
    }

    fn load_static(&mut self, place: &Place, width: u32, span: Span) -> Lowered<ValueId> {
        let object = match place.base {
            Base::Object(object) => object,
            Base::Packet(packet) => return self.load_packet(packet, place, width, span),
            Base::TableValue(value) => return Ok(self.load_table_value(value, place, width)),
        };
        let mut parts = vec![];
        for piece in self.pieces(object, place, width, span)? {
            let index = self.element_index(object, place, piece.element);
            let part = match piece.held {
                0 => self.builder.constant(Bits::zero(piece.width)),
                held => {
                    let part = self.builder.load(object, index, piece.lo, held);
                    self.builder.resize(part, piece.width, false)
                }
            };
            parts.push(part);
        }
        match parts.as_slice() {
            [only] => Ok(*only),
            _ => Ok(self.builder.push(Op::Concat(parts), IrType::Bits(width))),
        }
    }

    fn store_bits(&mut self, place: &Place, id: ValueId, width: u32, span: Span) -> Lowered<()> {
        if let Some(dynamic) = place.dynamic_bit {
            let (region, first) = self.region(place, span)?;
            let region_width = region.width() as u32;
            let whole = self.load_static(&region, region_width, span)?;
            let lo = self.add_offset(dynamic, first);
            let op = Op::InsertDynamic { value: whole, lo, part: id };
            let changed = self.builder.push(op, IrType::Bits(region_width));
            return self.store_static(&region, changed, region_width, span);
        }
        self.store_static(place, id, width, span)
    }

    fn store_static(&mut self, place: &Place, id: ValueId, width: u32, span: Span) -> Lowered<()> {
        let object = match place.base {
            Base::Object(object) => object,
            Base::Packet(packet) => return self.store_packet(packet, place, id, span),
            Base::TableValue(value) => {
                self.store_table_value(value, place, id);
                return Ok(());
            }
        };
        let mut done = 0;
        for piece in self.pieces(object, place, width, span)? {
            let index = self.element_index(object, place, piece.element);
            if piece.held > 0 {
                let part = self.builder.extract(id, done, piece.held);
                self.builder.store(object, index, piece.lo, part);
            }
            done += piece.width;
        }
        Ok(())
    }

    /// Returns the constant region that a computed bit moves in, as a place of raw bits, and the
    /// first bit of `place` in it.
    fn region(&mut self, place: &Place, span: Span) -> Lowered<(Place, u64)> {
        let element = place.bit.div_euclid(place.stride as i64) * place.stride as i64;
        let held = match place.base {
            Base::Object(object) => u64::from(self.object(object).elem_bits),
            // The computed bit is within a byte.
            Base::Packet(_) | Base::TableValue(_) => (place.width() + 7).next_multiple_of(8),
        };
        let (start, width) = match place.window {
            Some((start, width)) if start <= place.bit && (place.bit - start) < width as i64 => {
                (start, width)
            }
            _ => (element, held),
        };
        let is_before = place.bit < 0 && matches!(place.base, Base::Object(_));
        if is_before || width > u64::from(u32::MAX) {
            return Err(self.outside(place, span));
        }
        let raw = Type::Int(crate::types::IntType::of_width(width as u32, false));
        let region = Place { bit: start, dynamic_bit: None, ty: raw, ..place.clone() };
        Ok((Place { bit_field: None, ..region }, (place.bit - start) as u64))
    }

    /// Splits an access of `width` bits at the boundaries of elements.
    fn pieces(
        &mut self,
        object: ObjectRef,
        place: &Place,
        width: u32,
        span: Span,
    ) -> Lowered<Vec<Piece>> {
        let object = self.object(object);
        let (elem_bits, depth) = (object.elem_bits, object.depth);
        let Ok(mut bit) = u64::try_from(place.bit) else { return Err(self.outside(place, span)) };
        let mut left = width;
        let mut pieces = vec![];
        while left > 0 {
            let (element, lo) = (bit / place.stride, bit % place.stride);
            let width = u64::from(left).min(place.stride - lo) as u32;
            if place.index.is_none() && element >= depth {
                return Err(self.outside(place, span));
            }
            let held = u64::from(elem_bits).saturating_sub(lo).min(u64::from(width)) as u32;
            pieces.push(Piece { element, lo: lo as u32, held, width });
            bit += u64::from(width);
            left -= width;
        }
        Ok(pieces)
    }

    fn element_index(&mut self, object: ObjectRef, place: &Place, element: u64) -> ValueId {
        match place.index {
            None => self.offset(element),
            Some(index) => {
                self.note_indexed(object);
                self.add_offset(index, element)
            }
        }
    }

    /// Adds a constant to a computed unsigned number, in 64 bits if it needs to grow.
    pub fn add_offset(&mut self, value: ValueId, add: u64) -> ValueId {
        if add == 0 {
            return value;
        }
        let wide = self.builder.resize(value, 64, false);
        let add = self.offset(add);
        self.builder.binary(BinaryOp::Add, wide, add)
    }

    pub(super) fn outside(&mut self, place: &Place, span: Span) -> Reported {
        let object = match place.base {
            Base::Object(object) => self.object(object),
            Base::Packet(_) | Base::TableValue(_) => return self.before_packet(span),
        };
        let name = object.name.clone();
        let bytes = object.depth * place.stride / 8;
        let first = place.bit.div_euclid(8);
        let message = format!("this reaches beyond `{name}`");
        self.report(
            Diagnostic::error("E0214", span, message)
                .label(format!("byte {first} of {bytes}: outside"))
                .help("use an index or an offset inside it"),
        )
    }

    /// Returns the constant at a static place of a constant array.
    fn known_element(&self, place: &Place) -> Option<Bits> {
        let is_here = |object: ObjectRef| place.base == Base::Object(object);
        let (table, _) = self.tables.iter().find(|(_, object)| is_here(*object))?;
        let is_element = place.is_static() && place.bit >= 0 && place.ty.is_integer();
        let is_whole = place.width() == table.ty.innermost().0.value_bits();
        let is_aligned = place.bit.rem_euclid(place.stride as i64) == 0;
        if !(is_element && is_whole && is_aligned) {
            return None;
        }
        table.elements.get((place.bit as u64 / place.stride) as usize).cloned()
    }

    /// Returns the element `index` of the array (or after the pointer) whose first element is
    /// `first`.
    pub fn advanced(&mut self, first: &Place, index: &Value, span: Span) -> Lowered<Place> {
        let size = layout::size_bytes(&first.ty) * 8;
        let is_in_one_element = !self.has_elements(first.base) || first.window.is_some();
        let is_movable = first.dynamic_bit.is_none() || is_in_one_element;
        if let Some(constant) = index.as_constant()
            && is_movable
        {
            let moved = constant.as_i128().and_then(|at| at.checked_mul(i128::from(size)));
            let bit = moved
                .and_then(|moved| i64::try_from(moved.checked_add(i128::from(first.bit))?).ok());
            return match bit {
                Some(bit) => Ok(Place { bit, ..first.clone() }),
                None => Err(self.outside(first, span)),
            };
        }
        self.at(span);
        let is_whole_elements = size.is_multiple_of(first.stride)
            && first.bit.rem_euclid(first.stride as i64) == 0
            && first.dynamic_bit.is_none();
        if is_whole_elements && !is_in_one_element {
            let index = self.scaled(index, size / first.stride);
            let index = self.sum(first.index, index);
            return Ok(Place { index: Some(index), ..first.clone() });
        }
        if is_in_one_element {
            let bits = self.scaled(index, size);
            let bits = self.builder.resize(bits, 64, false);
            let bits = self.sum(first.dynamic_bit, bits);
            return Ok(Place { dynamic_bit: Some(bits), ..first.clone() });
        }
        Ok(self.advanced_across(first, index, size))
    }

    /// Does the same as [`Body::advanced`], if parts of elements are counted across elements.
    fn advanced_across(&mut self, first: &Place, index: &Value, size: u64) -> Place {
        let mut bits = self.scaled(index, size);
        bits = self.builder.resize(bits, 64, false);
        bits = self.sum(first.dynamic_bit, bits);
        bits = self.add_offset(bits, first.bit as u64);
        let stride = self.offset(first.stride);
        if let Some(index) = first.index {
            let index = self.builder.resize(index, 64, false);
            let before = self.builder.binary(BinaryOp::Mul, index, stride);
            bits = self.builder.binary(BinaryOp::Add, before, bits);
        }
        let element = self.builder.binary(BinaryOp::UDiv, bits, stride);
        let rest = self.builder.binary(BinaryOp::URem, bits, stride);
        Place { bit: 0, index: Some(element), dynamic_bit: Some(rest), ..first.clone() }
    }

    /// Returns whether a base has several elements, which places in it may move across.
    pub(super) fn has_elements(&self, base: Base) -> bool {
        match base {
            Base::Object(object) => self.object(object).depth > 1,
            Base::Packet(_) | Base::TableValue(_) => true,
        }
    }

    /// Returns the name for messages.
    pub(super) fn base_name(&self, base: Base) -> String {
        match base {
            Base::Object(object) => self.object(object).name.clone(),
            Base::Packet(packet) | Base::TableValue(packet) => {
                let name = &self.builder.function().values[packet.index()].name;
                name.clone().unwrap_or_else(|| "packet".into())
            }
        }
    }

    /// Multiplies an index by a constant, in 64 bits unless it can stay unchanged.
    fn scaled(&mut self, index: &Value, by: u64) -> ValueId {
        let id = self.materialise(index);
        if by == 1 && !index.is_signed() {
            return id;
        }
        let wide = self.builder.resize(id, 64, index.is_signed());
        if by == 1 {
            return wide;
        }
        let by = self.offset(by);
        self.builder.binary(BinaryOp::Mul, wide, by)
    }

    fn sum(&mut self, left: Option<ValueId>, right: ValueId) -> ValueId {
        let Some(left) = left else { return right };
        let left = self.builder.resize(left, 64, false);
        let right = self.builder.resize(right, 64, false);
        self.builder.binary(BinaryOp::Add, left, right)
    }
}
