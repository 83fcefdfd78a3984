// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The four loops over the elements of a value: update with one delta, update with a delta for
//! each element, fold, and test.
//!
//! Values are unaligned bytes, so elements are loaded and stored bytewise, in chunks of a constant
//! width; the compiler turns these loops into vector instructions.

use crate::number::Number;
use crate::widest::Loop;
use std::hint::black_box;
use std::marker::PhantomData;

/// Number of accumulators of a fold, which is part of its definition: a cache line of `f32`, and
/// enough independent sums to hide the latency of a floating-point addition.
pub(crate) const LANES: usize = 16;

/// Reads `N` operands of the same type that follow each other.
#[inline(always)]
pub(crate) fn load_operands<T: Number, const N: usize>(bytes: &[u8]) -> [T; N] {
    let width = size_of::<T>();
    let bytes = &bytes[..N * width];
    let mut operands = [T::ZERO; N];
    for (at, operand) in operands.iter_mut().enumerate() {
        *operand = T::load(&bytes[at * width..(at + 1) * width]);
    }
    operands
}

/// Returns a zero that the compiler does not know.
///
/// An update that stores either the old element or a new one is otherwise compiled to branches or
/// to masked stores, which take several times longer than storing an element that looks new.
#[inline(always)]
fn hidden_zero<T: Number>() -> T {
    black_box(T::ZERO)
}

/// Replaces every element by `apply(element, delta)`.
pub(crate) struct UpdateSame<'a, T, F, const N: usize> {
    pub values: &'a mut [u8],
    pub delta: [T; N],
    pub apply: F,
}

impl<T: Number, F: Fn(T, [T; N]) -> T, const N: usize> Loop for UpdateSame<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let zero = hidden_zero();
        for bytes in self.values.chunks_exact_mut(size_of::<T>()) {
            (self.apply)(T::load(bytes).xor(zero), self.delta).store(bytes);
        }
    }
}

/// Replaces every element by `apply(element, its delta)`.
pub(crate) struct UpdateEach<'a, T, F, const N: usize> {
    pub values: &'a mut [u8],
    /// The operands of the first element, then those of the second.
    pub deltas: &'a [u8],
    pub apply: F,
    pub number: PhantomData<T>,
}

impl<T: Number, F: Fn(T, [T; N]) -> T, const N: usize> Loop for UpdateEach<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let zero = hidden_zero::<T>();
        let deltas = self.deltas.chunks_exact(N * size_of::<T>());
        for (bytes, delta) in self.values.chunks_exact_mut(size_of::<T>()).zip(deltas) {
            (self.apply)(T::load(bytes).xor(zero), load_operands(delta)).store(bytes);
        }
    }
}

/// Folds all elements. Integers have no order, and the compiler chooses one. Otherwise element `i`
/// enters lane `i % LANES`, in the order of the indices; then the upper half of the lanes is merged
/// into the lower half until one is left.
pub(crate) struct Fold<'a, T, A, E, M> {
    pub values: &'a [u8],
    /// Neutral element, with which each lane begins.
    pub neutral: A,
    pub enter: E,
    pub merge: M,
    pub number: PhantomData<T>,
}

impl<T, A, E, M> Loop for Fold<'_, T, A, E, M>
where
    T: Number,
    A: Number,
    E: Fn(A, T) -> A,
    M: Fn(A, A) -> A,
{
    type Output = A;

    #[inline(always)]
    fn run(self) -> A {
        if !A::HAS_ORDER {
            let mut sigma = self.neutral;
            for bytes in self.values.chunks_exact(size_of::<T>()) {
                sigma = (self.enter)(sigma, T::load(bytes));
            }
            return sigma;
        }
        let mut lanes = [self.neutral; LANES];
        let mut lines = self.values.chunks_exact(LANES * size_of::<T>());
        for line in &mut lines {
            let elements: [T; LANES] = load_operands(line);
            for (lane, element) in lanes.iter_mut().zip(elements) {
                *lane = (self.enter)(*lane, element);
            }
        }
        let rest = lines.remainder().chunks_exact(size_of::<T>());
        for (lane, bytes) in lanes.iter_mut().zip(rest) {
            *lane = (self.enter)(*lane, T::load(bytes));
        }
        let mut half = LANES / 2;
        while half > 0 {
            for at in 0..half {
                lanes[at] = (self.merge)(lanes[at], lanes[at + half]);
            }
            half /= 2;
        }
        lanes[0]
    }
}

/// Sets the flag of each element for which `holds` to 1, and the others to 0.
pub(crate) struct Test<'a, T, F, const N: usize> {
    pub values: &'a [u8],
    pub operands: [T; N],
    /// One for each element.
    pub flags: &'a mut [u8],
    pub holds: F,
}

impl<T: Number, F: Fn(T, [T; N]) -> bool, const N: usize> Loop for Test<'_, T, F, N> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (bytes, flag) in self.values.chunks_exact(size_of::<T>()).zip(self.flags) {
            *flag = u8::from((self.holds)(T::load(bytes), self.operands));
        }
    }
}
