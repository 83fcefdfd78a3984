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

/// The code of a user function. It must be pure and total: the same result for the same arguments,
/// on every thread, without panics. Closures `Fn(u64, &[u64]) -> u64` implement it.
///
/// The methods for all elements must return what calls for one element after the other would. Each
/// kind of function needs its own: [`Self::update_same`] and [`Self::update_each`] for updates,
/// [`Self::fold`] for reductions, [`Self::keep`] for filters. Callers have checked all lengths: a
/// value is a whole number of elements, an operand has as many parts as the function has names.
pub trait UserFunction: Send + Sync {
    /// Returns the new element, or the new sigma, whose old one is the operand; for a filter, zero
    /// unless the element is kept.
    fn call(&self, element: Element, value: u64, operands: &[u64]) -> u64;

    /// Replaces every element, with the same operands.
    fn update_same(&self, element: Element, values: &mut [u8], operands: &[u8]) {
        for_element!(element, T => {
            let mut buffer = [0; User::MAX_OPERANDS];
            let operands = extend::<T>(operands, &mut buffer);
            for bytes in values.chunks_exact_mut(size_of::<T>()) {
                let result = self.call(element, Number::to_bits(T::load(bytes)), operands);
                <T as Number>::from_bits(result).store(bytes);
            }
        })
    }

    /// Replaces every element, each with its own operands: all of the first element, then all of
    /// the second.
    fn update_each(&self, element: Element, values: &mut [u8], operands: &[u8]) {
        for_element!(element, T => {
            let width = size_of::<T>();
            let own = operands.len() / (values.len() / width).max(1);
            let mut buffer = [0; User::MAX_OPERANDS];
            for (at, bytes) in values.chunks_exact_mut(width).enumerate() {
                let operands = extend::<T>(&operands[at * own..][..own], &mut buffer);
                let result = self.call(element, Number::to_bits(T::load(bytes)), operands);
                <T as Number>::from_bits(result).store(bytes);
            }
        })
    }

    /// Folds all elements in their order, and returns the last sigma.
    fn fold(&self, element: Element, values: &[u8], sigma: u64) -> u64 {
        for_element!(element, T => {
            values.chunks_exact(size_of::<T>()).fold(sigma, |sigma, bytes| {
                self.call(element, Number::to_bits(T::load(bytes)), &[sigma])
            })
        })
    }

    /// Copies the elements to keep to the front of `kept`, in their order, and returns their length
    /// in bytes. `kept` is as long as `values`; behind the elements it may have any bytes after the
    /// call.
    fn keep(&self, element: Element, values: &[u8], operands: &[u8], kept: &mut [u8]) -> usize {
        for_element!(element, T => {
            let width = size_of::<T>();
            let mut buffer = [0; User::MAX_OPERANDS];
            let operands = extend::<T>(operands, &mut buffer);
            let mut end = 0;
            for bytes in values.chunks_exact(width) {
                let keeps = self.call(element, Number::to_bits(T::load(bytes)), operands);
                kept[end..end + width].copy_from_slice(bytes);
                end += width * usize::from(keeps != 0);
            }
            end
        })
    }
}

impl<F: Fn(u64, &[u64]) -> u64 + Send + Sync> UserFunction for F {
    fn call(&self, _element: Element, value: u64, operands: &[u64]) -> u64 {
        self(value, operands)
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
