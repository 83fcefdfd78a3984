// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions of users: compiled beforehand, and registered under an id before the store starts
//! (KV-Direct, operations).

use crate::element::Element;
use crate::error::{Error, check_operand};
use crate::number::Number;
use crate::operands::Operands;
use crate::registry::Kind;
use crate::scalar::Scalar;
use crate::update::Deltas;
use crate::user_function::UserFunction;
use std::fmt;
use std::sync::Arc;

/// A user function to register.
#[derive(Clone)]
pub struct User {
    kind: Kind,
    name: String,
    elements: Vec<Element>,
    operands: Vec<String>,
    function: Arc<dyn UserFunction>,
}

/// Number of bytes of a value that a filter tests at once, within the first cache. It is a multiple
/// of every width.
const BLOCK_BYTES: usize = 8 << 10;

impl User {
    /// Maximum number of operands.
    pub const MAX_OPERANDS: usize = 16;

    /// Returns a function to register: its kind, its name in commands, the types of elements it is
    /// for, and the code. It has one operand: `delta` of an update, `sigma` of a reduction,
    /// `operand` of a filter.
    pub fn new(
        kind: Kind,
        name: impl Into<String>,
        elements: impl Into<Vec<Element>>,
        function: Arc<dyn UserFunction>,
    ) -> Self {
        let operand = match kind {
            Kind::Update => "delta",
            Kind::Reduce => "sigma",
            Kind::Filter => "operand",
        };
        let operands = vec![operand.to_owned()];
        Self { kind, name: name.into(), elements: elements.into(), operands, function }
    }

    /// Names the operands of an update or a filter, each of which is an element: none to
    /// [`Self::MAX_OPERANDS`]. A reduction has `sigma` and no other.
    #[must_use]
    pub fn with_operands(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { operands: names.into_iter().map(Into::into).collect(), ..self }
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
    pub fn operands(&self) -> Operands<'_> {
        Operands::user(&self.operands)
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
        self.check(element, delta, 1)?;
        self.function.update_same(element, value, delta);
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
        let count = element.count(values.len())?;
        match deltas {
            Deltas::Same(delta) => self.check(element, delta, 1)?,
            Deltas::Each(deltas) => self.check(element, deltas, count)?,
        }
        if let Some(original) = original {
            original.extend_from_slice(values);
        }
        match deltas {
            Deltas::Same(delta) => self.function.update_same(element, values, delta),
            Deltas::Each(deltas) => self.function.update_each(element, values, deltas),
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
        check_operand(&self.name, self.operands(), size_of::<u64>(), sigma)?;
        let sigma = self.function.fold(element, values, u64::load(sigma));
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
        self.check(element, operand, 1)?;
        for block in values.chunks(BLOCK_BYTES) {
            // Room for one block, so that memory grows with the elements that are kept.
            let end = kept.len();
            kept.resize(end + block.len(), 0);
            let length = self.function.keep(element, block, operand, &mut kept[end..]);
            kept.truncate(end + length);
        }
        Ok(())
    }

    fn supports(&self, element: Element) -> Result<(), Error> {
        if self.elements.contains(&element) {
            return Ok(());
        }
        Err(Error::UnsupportedElement { name: self.name.clone(), element })
    }

    /// Checks that there are operands for `count` elements.
    fn check(&self, element: Element, operands: &[u8], count: usize) -> Result<(), Error> {
        // The product overflows for the longest possible values; no operand is as long as that.
        let expected = count.saturating_mul(self.operands.len() * element.width());
        check_operand(&self.name, self.operands(), expected, operands)
    }
}

impl fmt::Debug for User {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = out.debug_struct("User");
        fields.field("kind", &self.kind).field("name", &self.name);
        fields.field("elements", &self.elements).field("operands", &self.operands);
        fields.finish_non_exhaustive()
    }
}
