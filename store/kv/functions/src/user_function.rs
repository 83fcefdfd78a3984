// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The code of a user function.
//!
//! One method is the definition: it takes one element. The others take all elements of a value
//! where they lie, so that compiled code has loops of its own, of vector instructions.
//!
//! One element is 64 bits: a signed integer with its sign extended, an unsigned integer with zeros,
//! a float as its pattern in the low bits. So are the operands, except sigma, which is 64 bits as
//! they are. The low bits of a result are the new element. Elements of a value are little-endian
//! and without alignment, and so are operands for all elements.

use crate::element::{Element, for_element};
use crate::number::Number;
use crate::user::User;
use std::error;
use std::fmt;

/// The code of a user function. It must be pure: the same result for the same arguments, on every
/// thread, without panics. Closures `Fn(u64, &[u64]) -> u64` implement it.
///
/// The methods for all elements must return what calls for one element after the other would. Each
/// kind of function needs its own: [`Self::update_same`] and [`Self::update_each`] for updates,
/// [`Self::fold`] for reductions, [`Self::keep`] for filters. Callers have checked all lengths: a
/// value is a whole number of elements, an operand has as many parts as the function has names.
pub trait UserFunction: Send + Sync {
    /// Returns the new element, or the new sigma, whose old one is the operand; for a filter, zero
    /// unless the element is kept.
    ///
    /// # Errors
    /// The call was ended without a result.
    fn call(&self, element: Element, value: u64, operands: &[u64]) -> Result<u64, Trap>;

    /// A call may end without a result. Then updates of vectors keep a copy of the value until they
    /// have succeeded.
    fn can_trap(&self) -> bool;

    /// Replaces every element, with the same operands.
    ///
    /// # Errors
    /// A call was ended. The caller restores `values`.
    fn update_same(
        &self,
        element: Element,
        values: &mut [u8],
        operands: &[u8],
    ) -> Result<(), Trap> {
        for_element!(element, T => {
            let mut buffer = [0; User::MAX_OPERANDS];
            let operands = extend::<T>(operands, &mut buffer);
            for bytes in values.chunks_exact_mut(size_of::<T>()) {
                let result = self.call(element, Number::to_bits(T::load(bytes)), operands)?;
                <T as Number>::from_bits(result).store(bytes);
            }
            Ok(())
        })
    }

    /// Replaces every element, each with its own operands: all of the first element, then all of
    /// the second.
    ///
    /// # Errors
    /// A call was ended. The caller restores `values`.
    fn update_each(
        &self,
        element: Element,
        values: &mut [u8],
        operands: &[u8],
    ) -> Result<(), Trap> {
        for_element!(element, T => {
            let width = size_of::<T>();
            let own = operands.len() / (values.len() / width).max(1);
            let mut buffer = [0; User::MAX_OPERANDS];
            for (at, bytes) in values.chunks_exact_mut(width).enumerate() {
                let operands = extend::<T>(&operands[at * own..][..own], &mut buffer);
                let result = self.call(element, Number::to_bits(T::load(bytes)), operands)?;
                <T as Number>::from_bits(result).store(bytes);
            }
            Ok(())
        })
    }

    /// Folds all elements in their order, and returns the last sigma.
    ///
    /// # Errors
    /// A call was ended.
    fn fold(&self, element: Element, values: &[u8], sigma: u64) -> Result<u64, Trap> {
        for_element!(element, T => {
            values.chunks_exact(size_of::<T>()).try_fold(sigma, |sigma, bytes| {
                self.call(element, Number::to_bits(T::load(bytes)), &[sigma])
            })
        })
    }

    /// Copies the elements to keep to the front of `kept`, in their order, and returns their length
    /// in bytes. `kept` is as long as `values`; behind the elements it may have any bytes after the
    /// call.
    ///
    /// # Errors
    /// A call was ended.
    fn keep(
        &self,
        element: Element,
        values: &[u8],
        operands: &[u8],
        kept: &mut [u8],
    ) -> Result<usize, Trap> {
        for_element!(element, T => {
            let width = size_of::<T>();
            let mut buffer = [0; User::MAX_OPERANDS];
            let operands = extend::<T>(operands, &mut buffer);
            let mut end = 0;
            for bytes in values.chunks_exact(width) {
                let keeps = self.call(element, Number::to_bits(T::load(bytes)), operands)?;
                kept[end..end + width].copy_from_slice(bytes);
                end += width * usize::from(keeps != 0);
            }
            Ok(end)
        })
    }
}

impl<F: Fn(u64, &[u64]) -> u64 + Send + Sync> UserFunction for F {
    fn call(&self, _element: Element, value: u64, operands: &[u64]) -> Result<u64, Trap> {
        Ok(self(value, operands))
    }

    fn can_trap(&self) -> bool {
        false
    }
}

/// Extends operands to 64 bits. There are at most [`User::MAX_OPERANDS`].
#[inline(always)]
fn extend<'a, T: Number>(operands: &[u8], buffer: &'a mut [u64; User::MAX_OPERANDS]) -> &'a [u64] {
    let count = operands.len() / size_of::<T>();
    for (wide, bytes) in buffer.iter_mut().zip(operands.chunks_exact(size_of::<T>())) {
        *wide = T::load(bytes).to_bits();
    }
    &buffer[..count]
}

/// A call was ended without a result. The value says why, as part of a sentence: "a loop ran more
/// rounds than its bound".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trap(pub &'static str);

impl fmt::Display for Trap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl error::Error for Trap {}
