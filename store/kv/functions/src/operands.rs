// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of the operands of a function.

use std::fmt;

/// Names of the parts of one operand, in their order. Each part is an element, except that sigma of
/// a reduction has 8 bytes.
///
/// Two are equal if their names are. They are shown with commas between them.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a>(Names<'a>);

#[derive(Clone, Copy, Debug)]
enum Names<'a> {
    BuiltIn(&'static [&'static str]),
    User(&'a [String]),
}

impl<'a> Operands<'a> {
    /// Names of a built-in function.
    pub(crate) fn built_in(names: &'static [&'static str]) -> Self {
        Self(Names::BuiltIn(names))
    }

    /// Names of a user function.
    pub(crate) fn user(names: &'a [String]) -> Self {
        Self(Names::User(names))
    }

    /// Number of parts.
    pub fn len(&self) -> usize {
        match self.0 {
            Names::BuiltIn(names) => names.len(),
            Names::User(names) => names.len(),
        }
    }

    /// The function has no operand.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of each part.
    pub fn iter(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let (built_in, user): (&[&str], &[String]) = match self.0 {
            Names::BuiltIn(names) => (names, &[]),
            Names::User(names) => (&[], names),
        };
        built_in.iter().copied().chain(user.iter().map(String::as_str))
    }
}

impl PartialEq for Operands<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Operands<'_> {}

impl fmt::Display for Operands<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(out, "{separator}{name}")?;
        }
        Ok(())
    }
}
