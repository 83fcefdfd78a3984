// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds of kernels: functions applied to all elements of an array in one call.

/// How a kernel applies its function `f` to the elements of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelKind {
    /// Replaces each element `v` by `f(v, operands...)`, of the same width.
    Map,
    /// Folds all elements in their order: `sigma = f(v, sigma)`, of 64 bits.
    Fold,
    /// Evaluates the condition `f(v, operands...)`, of one bit, for each element.
    Test,
}
