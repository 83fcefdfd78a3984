// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The place that a path names: a variable or a part of one, and the bits of its values.

use super::error::ManagerError;
use crate::layout::{Layout, ValueError};
use freeport_ir::{Bits, InstanceId};
use serde_json::Value;

/// A variable, or a part of one.
pub(super) struct Place {
    pub path: String,
    pub instance: InstanceId,
    pub variable: String,
    /// Layout of an element of the variable.
    pub whole: Layout,
    pub depth: u64,
    /// The element; none for all elements.
    pub index: Option<u64>,
    /// Lowest bit of the part within the element.
    pub lo: u32,
    pub layout: Layout,
}

impl Place {
    pub fn check(&self, index: u64, count: u64) -> Result<(), ManagerError> {
        if index < count {
            return Ok(());
        }
        Err(ManagerError::Index { path: self.path.clone(), index, count })
    }

    /// Descends into the member or element that `rest` begins with and returns what follows.
    pub fn descend<'a>(&mut self, rest: &'a str) -> Result<&'a str, ManagerError> {
        let malformed = || ManagerError::Path(self.path.clone());
        let (lo, layout, behind) = match (&self.layout, rest.strip_prefix('.')) {
            (Layout::Array { element, stride_bits, count }, None) => {
                let (index, behind) = index_in(rest).ok_or_else(malformed)?;
                self.check(index, u64::from(*count))?;
                (index as u32 * stride_bits, (**element).clone(), behind)
            }
            (Layout::Struct { members, .. }, Some(name)) => {
                let (name, behind) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
                let member = members.iter().find(|member| member.name == name);
                let member = member.ok_or_else(|| ManagerError::Unknown {
                    what: "member",
                    name: self.path.clone(),
                    known: members.iter().map(|member| member.name.clone()).collect(),
                })?;
                (member.lo, member.layout.clone(), behind)
            }
            _ => return Err(malformed()),
        };
        self.lo += lo;
        self.layout = layout;
        Ok(behind)
    }

    /// Returns the bits of a value for each element that it sets.
    pub fn values(&self, value: &Value) -> Result<Vec<(u64, Bits)>, ManagerError> {
        let failed = |source| ManagerError::Value { path: self.path.clone(), source };
        let parse = |value| self.layout.parse(value).map_err(failed);
        if let Some(index) = self.index {
            return Ok(vec![(index, parse(value)?)]);
        }
        match value {
            Value::Array(given) if given.len() as u64 > self.depth => {
                let (given, count) = (given.len(), self.depth);
                Err(failed(ValueError::TooMany { given, count }))
            }
            Value::Array(given) => {
                let values = (0..).zip(given);
                values.map(|(index, value)| Ok((index, parse(value)?))).collect()
            }
            Value::Object(given) => given
                .iter()
                .map(|(key, value)| {
                    let index = key.parse().map_err(|_| ManagerError::Path(self.path.clone()))?;
                    self.check(index, self.depth)?;
                    Ok((index, parse(value)?))
                })
                .collect(),
            _ => Err(failed(ValueError::NoArray(value.to_string()))),
        }
    }
}

/// Parses an index in brackets at the beginning of `text` and returns it with what follows.
pub(super) fn index_in(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((digits.parse().ok()?, rest))
}
