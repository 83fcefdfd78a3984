// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions on strings, which are read as scalars or vectors (KV-Direct, operations). An operation
//! takes effect as a whole: no other one on the same key sees a part of it, and a refused one
//! changes nothing.

use freeport_kv_functions::{Deltas, Element, Filter, Function, Reduce, Scalar, Update};
use thiserror::Error;

use crate::error::Error;
use crate::keyspace::Keyspace;

/// Why an operation with a function did nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OperationError {
    /// The value is no string.
    #[error(transparent)]
    Value(#[from] Error),
    /// The function refuses the value or its operand.
    #[error(transparent)]
    Function(#[from] freeport_kv_functions::Error),
}

impl Keyspace {
    /// Updates a value of one element; returns the original, or none if there is no such key.
    ///
    /// # Errors
    /// See [`OperationError`].
    pub fn update_scalar(
        &mut self,
        key: &[u8],
        now_ms: u64,
        function: &Function<'_, Update>,
        (element, delta): (Element, &[u8]),
    ) -> Result<Option<Scalar>, OperationError> {
        let original = self
            .update_string(key, now_ms, |value| function.scalar(element, value, delta))?
            .transpose()?;
        Ok(original)
    }

    /// Updates every element of a value, and appends the original to `original` if that is given.
    /// Returns whether there is such a key.
    ///
    /// # Errors
    /// See [`OperationError`].
    pub fn update_vector(
        &mut self,
        key: &[u8],
        now_ms: u64,
        function: &Function<'_, Update>,
        (element, deltas): (Element, Deltas<'_>),
        original: Option<&mut Vec<u8>>,
    ) -> Result<bool, OperationError> {
        let done = self.update_string(key, now_ms, |value| {
            function.vector(element, value, deltas, original)
        })?;
        Ok(done.transpose()?.is_some())
    }

    /// Folds all elements of a value, beginning with `sigma`; none: no such key.
    ///
    /// # Errors
    /// See [`OperationError`].
    pub fn reduce(
        &self,
        key: &[u8],
        now_ms: u64,
        function: &Function<'_, Reduce>,
        (element, sigma): (Element, &[u8]),
    ) -> Result<Option<Scalar>, OperationError> {
        let Some(value) = self.string(key, now_ms)? else { return Ok(None) };
        Ok(Some(function.fold(element, value, sigma)?))
    }

    /// Appends the elements for which a condition holds to `kept`. Returns whether there is such a
    /// key.
    ///
    /// # Errors
    /// See [`OperationError`].
    pub fn filter(
        &self,
        key: &[u8],
        now_ms: u64,
        function: &Function<'_, Filter>,
        (element, operand): (Element, &[u8]),
        kept: &mut Vec<u8>,
    ) -> Result<bool, OperationError> {
        let Some(value) = self.string(key, now_ms)? else { return Ok(false) };
        function.keep(element, value, operand, kept)?;
        Ok(true)
    }
}
