// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of users: compiled from `uint64_t f(uint64_t v, uint64_t delta)`, registered under an
//! id before the store starts (KV-Direct, operations).
//!
//! The function sees every element as 64 bits: a signed integer with its sign extended, an unsigned
//! integer with zeros, a float as its pattern in the low bits. The low bits of its result are the
//! new element. As a reduction it gets sigma instead of the delta, 8 bytes as they are, and returns
//! the new sigma; as a filter it gets an operand, and keeps the element unless it returns 0.

use crate::element::{Element, for_element};
use crate::error::{Error, check_operand};
use crate::number::Number;
use crate::registry::Kind;
use crate::scalar::Scalar;
use crate::update::Deltas;
use std::fmt;
use std::sync::Arc;

/// A function of a user. It must be pure and total: the same result for the same arguments, without
/// panics. Closures implement it.
///
/// A compiled function may replace the calls for many elements by a loop of its own, which must
/// return the same.
pub trait UserFunction: Send + Sync {
    /// Returns the new element, the new sigma, or whether to keep the element.
    fn call(&self, value: u64, operand: u64) -> u64;

    /// Replaces each value by the result for it and the operand with the same index. Both slices
    /// have the same length.
    fn call_each(&self, values: &mut [u64], operands: &[u64]) {
        for (value, operand) in values.iter_mut().zip(operands) {
            *value = self.call(*value, *operand);
        }
    }

    /// Folds the values in their order.
    fn fold(&self, values: &[u64], sigma: u64) -> u64 {
        values.iter().fold(sigma, |sigma, value| self.call(*value, sigma))
    }
}

impl<F: Fn(u64, u64) -> u64 + Send + Sync> UserFunction for F {
    fn call(&self, value: u64, operand: u64) -> u64 {
        self(value, operand)
    }
}

/// A registered user function.
#[derive(Clone)]
pub struct User {
    kind: Kind,
    name: String,
    elements: Vec<Element>,
    function: Arc<dyn UserFunction>,
}

/// Names of the parts of the operand: one element for an update and a filter.
const DELTA: &[&str] = &["delta"];
const SIGMA: &[&str] = &["sigma"];
const OPERAND: &[&str] = &["operand"];

/// Number of elements that are extended to 64 bits at once: half a page, in the first cache.
const BLOCK: usize = 256;

impl User {
    /// Returns a function to register: its kind, its name in commands, the types of elements it is
    /// for, and the code.
    pub fn new(
        kind: Kind,
        name: impl Into<String>,
        elements: impl Into<Vec<Element>>,
        function: Arc<dyn UserFunction>,
    ) -> Self {
        Self { kind, name: name.into(), elements: elements.into(), function }
    }

    /// Kind of the function.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Name in commands.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Types of elements it is for.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Names of the parts of the operand.
    pub(crate) fn operands(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Update => DELTA,
            Kind::Reduce => SIGMA,
            Kind::Filter => OPERAND,
        }
    }

    /// As [`Update::scalar`](crate::Update::scalar).
    pub(crate) fn scalar(
        &self,
        element: Element,
        value: &mut [u8],
        delta: &[u8],
    ) -> Result<Scalar, Error> {
        self.supports(element)?;
        let original = Scalar::load(element, value)?;
        check_operand(&self.name, DELTA, element.width(), delta)?;
        let delta = Scalar::load(element, delta)?;
        let result = self.function.call(original.bits(), delta.bits());
        value.copy_from_slice(&result.to_le_bytes()[..element.width()]);
        Ok(original)
    }

    /// As [`Update::vector`](crate::Update::vector).
    pub(crate) fn vector(
        &self,
        element: Element,
        values: &mut [u8],
        deltas: Deltas<'_>,
        original: Option<&mut Vec<u8>>,
    ) -> Result<(), Error> {
        self.supports(element)?;
        element.count(values.len())?;
        match deltas {
            Deltas::Same(delta) => check_operand(&self.name, DELTA, element.width(), delta)?,
            Deltas::Each(deltas) => check_operand(&self.name, DELTA, values.len(), deltas)?,
        }
        if let Some(original) = original {
            original.extend_from_slice(values);
        }
        let (mut block, mut operands) = ([0; BLOCK], [0; BLOCK]);
        if let Deltas::Same(delta) = deltas {
            operands.fill(Scalar::load(element, delta)?.bits());
        }
        let bytes = BLOCK * element.width();
        for (at, part) in values.chunks_mut(bytes).enumerate() {
            let count = extend(element, part, &mut block);
            if let Deltas::Each(deltas) = deltas {
                extend(element, &deltas[at * bytes..][..part.len()], &mut operands);
            }
            self.function.call_each(&mut block[..count], &operands[..count]);
            narrow(element, &block[..count], part);
        }
        Ok(())
    }

    /// As [`Reduce::fold`](crate::Reduce::fold), but in the order of the elements: the function
    /// need not be associative.
    pub(crate) fn fold(
        &self,
        element: Element,
        values: &[u8],
        sigma: &[u8],
    ) -> Result<Scalar, Error> {
        self.supports(element)?;
        element.count(values.len())?;
        check_operand(&self.name, SIGMA, size_of::<u64>(), sigma)?;
        let mut block = [0; BLOCK];
        let mut sigma = u64::load(sigma);
        for part in values.chunks(BLOCK * element.width()) {
            let count = extend(element, part, &mut block);
            sigma = self.function.fold(&block[..count], sigma);
        }
        Ok(Scalar::from_bits(element.widest(), sigma))
    }

    /// As [`Filter::keep`](crate::Filter::keep).
    pub(crate) fn keep(
        &self,
        element: Element,
        values: &[u8],
        operand: &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.supports(element)?;
        element.count(values.len())?;
        check_operand(&self.name, OPERAND, element.width(), operand)?;
        let operands = [Scalar::load(element, operand)?.bits(); BLOCK];
        let mut block = [0; BLOCK];
        for part in values.chunks(BLOCK * element.width()) {
            let count = extend(element, part, &mut block);
            self.function.call_each(&mut block[..count], &operands[..count]);
            for (bytes, keeps) in part.chunks_exact(element.width()).zip(&block) {
                if *keeps != 0 {
                    kept.extend_from_slice(bytes);
                }
            }
        }
        Ok(())
    }

    fn supports(&self, element: Element) -> Result<(), Error> {
        if self.elements.contains(&element) {
            return Ok(());
        }
        Err(Error::UnsupportedElement { name: self.name.clone(), element })
    }
}

impl fmt::Debug for User {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = out.debug_struct("User");
        fields.field("kind", &self.kind).field("name", &self.name);
        fields.field("elements", &self.elements).finish_non_exhaustive()
    }
}

/// Extends the elements in `bytes` to 64 bits, and returns their number.
fn extend(element: Element, bytes: &[u8], wide: &mut [u64; BLOCK]) -> usize {
    for_element!(element, T => {
        for (wide, bytes) in wide.iter_mut().zip(bytes.chunks_exact(size_of::<T>())) {
            *wide = Number::to_bits(T::load(bytes));
        }
    });
    bytes.len() / element.width()
}

/// Stores the low bits as elements.
fn narrow(element: Element, wide: &[u64], bytes: &mut [u8]) {
    for_element!(element, T => {
        for (wide, bytes) in wide.iter().zip(bytes.chunks_exact_mut(size_of::<T>())) {
            <T as Number>::from_bits(*wide).store(bytes);
        }
    });
}
