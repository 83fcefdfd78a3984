// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The functions of a store, by id.
//!
//! A [`RegistryBuilder`] takes the functions of users and becomes a [`Registry`], which nothing can
//! change: functions are fixed before the first request (KV-Direct, operations).

use crate::element::Element;
use crate::error::{Error, RefusedFunction};
use crate::filter::Filter;
use crate::operands::Operands;
use crate::reduce::Reduce;
use crate::scalar::Scalar;
use crate::update::{Deltas, Update};
use crate::user::User;
use std::fmt;

/// Kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Replaces elements: `f(v, delta) -> v`.
    Update,
    /// Folds elements: `f(v, sigma) -> sigma`.
    Reduce,
    /// Selects elements: `f(v, operand) -> bool`.
    Filter,
}

/// The functions that requests can name. Ids and names of built-in functions never change:
///
/// | id | update | parts of delta |
/// |---|---|---|
/// | 1 | `exchange` | `new` |
/// | 2 | `compare_exchange` | `expected`, `new` |
/// | 3 | `add` | `amount` |
/// | 4 | `subtract` | `amount` |
/// | 5 | `multiply` | `factor` |
/// | 6 | `add_saturating` | `amount` |
/// | 7 | `subtract_saturating` | `amount` |
/// | 8 | `minimum` | `other` |
/// | 9 | `maximum` | `other` |
/// | 10 | `clamp` | `low`, `high` |
/// | 11 | `and` | `mask` |
/// | 12 | `or` | `mask` |
/// | 13 | `xor` | `mask` |
/// | 14 | `shift_left` | `distance` |
/// | 15 | `shift_right` | `distance` |
/// | 16 | `add_wrapping_at` | `amount`, `threshold` |
/// | 17 | `add_if_at_most` | `amount`, `limit` |
/// | 18 | `subtract_if_at_least` | `amount`, `lowest` |
/// | 19 | `subtract_refilling` | `amount`, `lowest`, `refill` |
///
/// | id | reduction | sigma |
/// |---|---|---|
/// | 32 | `sum` | `sigma` |
/// | 33 | `product` | `sigma` |
/// | 34 | `minimum` | `sigma` |
/// | 35 | `maximum` | `sigma` |
/// | 36 | `and` | `sigma` |
/// | 37 | `or` | `sigma` |
/// | 38 | `xor` | `sigma` |
/// | 39 | `count_nonzero` | `sigma` |
/// | 40 | `sum_of_squares` | `sigma` |
/// | 41 | `sum_of_magnitudes` | `sigma` |
///
/// | id | filter | parts of operand |
/// |---|---|---|
/// | 64 | `equal` | `other` |
/// | 65 | `not_equal` | `other` |
/// | 66 | `less` | `bound` |
/// | 67 | `at_most` | `bound` |
/// | 68 | `greater` | `bound` |
/// | 69 | `at_least` | `bound` |
/// | 70 | `nonzero` | |
/// | 71 | `within` | `low`, `high` |
/// | 72 | `any_bit` | `mask` |
/// | 73 | `masked_equal` | `mask`, `pattern` |
///
/// Ids from 128 are for user functions, all others are reserved. Id 0 stays without a function, so
/// that a request of zeros is an error. Names are unique among the functions of a kind.
#[derive(Clone, Debug)]
pub struct Registry {
    /// One for each id.
    entries: Vec<Option<Entry>>,
    user_functions: usize,
}

/// How to call a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature<'a> {
    /// Id in protocols.
    pub id: u8,
    /// Kind of the function.
    pub kind: Kind,
    /// Name in commands.
    pub name: &'a str,
    /// Names of the parts of the delta or operand, of which each is an element; for a reduction,
    /// the one of sigma, which has 8 bytes.
    pub operands: Operands<'a>,
    /// Types of elements it is for.
    pub elements: &'a [Element],
}

/// Collects the functions of a registry.
#[derive(Clone, Debug)]
pub struct RegistryBuilder {
    registry: Registry,
}

#[derive(Clone, Debug)]
enum Entry {
    Update(Update),
    Reduce(Reduce),
    Filter(Filter),
    User(User),
}

/// A function of the kind of `B`: built-in, or of a user.
#[derive(Clone, Copy, Debug)]
pub enum Function<'a, B> {
    /// A built-in function.
    BuiltIn(B),
    /// A user function of the same kind.
    User(&'a User),
}

impl Registry {
    /// Least id of a user function.
    pub const FIRST_USER_ID: u8 = 128;

    /// Returns a registry of the built-in functions.
    pub fn built_in() -> Self {
        let mut entries = vec![None; usize::from(u8::MAX) + 1];
        let updates = Update::ALL.map(|update| (update.id(), Entry::Update(update)));
        let reductions = Reduce::ALL.map(|reduce| (reduce.id(), Entry::Reduce(reduce)));
        let filters = Filter::ALL.map(|filter| (filter.id(), Entry::Filter(filter)));
        for (id, entry) in updates.into_iter().chain(reductions).chain(filters) {
            entries[usize::from(id)] = Some(entry);
        }
        Self { entries, user_functions: 0 }
    }

    /// Returns a builder with the built-in functions.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder { registry: Self::built_in() }
    }

    /// Returns the update with this id.
    ///
    /// # Errors
    /// [`Error::UnknownFunction`] or [`Error::WrongKind`].
    #[inline]
    pub fn update(&self, id: u8) -> Result<Function<'_, Update>, Error> {
        match self.entry(id)? {
            Entry::Update(update) => Ok(Function::BuiltIn(*update)),
            Entry::User(user) if user.kind() == Kind::Update => Ok(Function::User(user)),
            other => Err(other.is_not(id, Kind::Update)),
        }
    }

    /// Returns the reduction with this id.
    ///
    /// # Errors
    /// [`Error::UnknownFunction`] or [`Error::WrongKind`].
    #[inline]
    pub fn reduce(&self, id: u8) -> Result<Function<'_, Reduce>, Error> {
        match self.entry(id)? {
            Entry::Reduce(reduce) => Ok(Function::BuiltIn(*reduce)),
            Entry::User(user) if user.kind() == Kind::Reduce => Ok(Function::User(user)),
            other => Err(other.is_not(id, Kind::Reduce)),
        }
    }

    /// Returns the filter with this id.
    ///
    /// # Errors
    /// [`Error::UnknownFunction`] or [`Error::WrongKind`].
    #[inline]
    pub fn filter(&self, id: u8) -> Result<Function<'_, Filter>, Error> {
        match self.entry(id)? {
            Entry::Filter(filter) => Ok(Function::BuiltIn(*filter)),
            Entry::User(user) if user.kind() == Kind::Filter => Ok(Function::User(user)),
            other => Err(other.is_not(id, Kind::Filter)),
        }
    }

    /// Returns the signature of the function of a kind with this name, in lower or upper case.
    pub fn named(&self, kind: Kind, name: &str) -> Option<Signature<'_>> {
        let is_named = |signature: &Signature<'_>| {
            signature.kind == kind && signature.name.eq_ignore_ascii_case(name)
        };
        self.signatures().find(is_named)
    }

    /// Returns the signature of the function with this id.
    ///
    /// # Errors
    /// [`Error::UnknownFunction`].
    pub fn signature(&self, id: u8) -> Result<Signature<'_>, Error> {
        Ok(self.entry(id)?.signature(id))
    }

    /// Returns the signatures of all functions, in the order of their ids.
    pub fn signatures(&self) -> impl Iterator<Item = Signature<'_>> {
        let entries = (0..=u8::MAX).zip(&self.entries);
        entries.filter_map(|(id, entry)| Some(entry.as_ref()?.signature(id)))
    }

    /// Number of user functions.
    #[inline]
    pub fn user_functions(&self) -> usize {
        self.user_functions
    }

    #[inline]
    fn entry(&self, id: u8) -> Result<&Entry, Error> {
        self.entries[usize::from(id)].as_ref().ok_or(Error::UnknownFunction { id })
    }
}

impl RegistryBuilder {
    /// Registers a user function.
    ///
    /// # Errors
    /// The id or the name is taken, the id is reserved, the name or one of an operand has letters
    /// that commands do not allow, there are too many operands, or the function is for no element.
    pub fn register(&mut self, id: u8, user: User) -> Result<(), RefusedFunction> {
        let name = user.name().to_owned();
        if id < Registry::FIRST_USER_ID {
            return Err(RefusedFunction::ReservedId { id });
        }
        if let Ok(holder) = self.registry.entry(id) {
            return Err(RefusedFunction::DuplicateId { id, name: holder.name().into() });
        }
        if !is_name(&name) {
            return Err(RefusedFunction::Name { name });
        }
        if let Some(Signature { id, .. }) = self.registry.named(user.kind(), &name) {
            return Err(RefusedFunction::DuplicateName { name, id });
        }
        if user.elements().is_empty() {
            return Err(RefusedFunction::NoElement { name });
        }
        check_operands(&user)?;
        self.registry.entries[usize::from(id)] = Some(Entry::User(user));
        self.registry.user_functions += 1;
        Ok(())
    }

    /// Returns the registry, to which no function can be added.
    pub fn freeze(self) -> Registry {
        self.registry
    }
}

/// Checks the number of operands of a user function, and their names.
fn check_operands(user: &User) -> Result<(), RefusedFunction> {
    let (name, kind, operands) = (user.name(), user.kind(), user.operands());
    let count = operands.len();
    let is_allowed = match kind {
        Kind::Update | Kind::Filter => count <= User::MAX_OPERANDS,
        Kind::Reduce => count == 1,
    };
    if !is_allowed {
        return Err(RefusedFunction::OperandCount { name: name.into(), kind, count });
    }
    for (at, operand) in operands.iter().enumerate() {
        if !is_name(operand) || operands.iter().take(at).any(|other| other == operand) {
            let operand = operand.into();
            return Err(RefusedFunction::OperandName { name: name.into(), operand });
        }
    }
    Ok(())
}

/// Whether commands can name a function so.
fn is_name(name: &str) -> bool {
    const LONGEST: usize = 64;
    let is_part = |letter: u8| matches!(letter, b'a'..=b'z' | b'0'..=b'9' | b'_');
    name.len() <= LONGEST
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_part)
}

impl Entry {
    fn kind(&self) -> Kind {
        match self {
            Self::Update(_) => Kind::Update,
            Self::Reduce(_) => Kind::Reduce,
            Self::Filter(_) => Kind::Filter,
            Self::User(user) => user.kind(),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Update(update) => update.name(),
            Self::Reduce(reduce) => reduce.name(),
            Self::Filter(filter) => filter.name(),
            Self::User(user) => user.name(),
        }
    }

    fn operands(&self) -> Operands<'_> {
        match self {
            Self::Update(update) => Operands::built_in(update.operands()),
            Self::Reduce(_) => Operands::built_in(&["sigma"]),
            Self::Filter(filter) => Operands::built_in(filter.operands()),
            Self::User(user) => user.operands(),
        }
    }

    fn elements(&self) -> &[Element] {
        match self {
            Self::User(user) => user.elements(),
            _ => &Element::ALL,
        }
    }

    fn signature(&self, id: u8) -> Signature<'_> {
        let (kind, name) = (self.kind(), self.name());
        Signature { id, kind, name, operands: self.operands(), elements: self.elements() }
    }

    #[cold]
    fn is_not(&self, id: u8, wanted: Kind) -> Error {
        Error::WrongKind { id, name: self.name().into(), kind: self.kind(), wanted }
    }
}

impl Function<'_, Update> {
    /// Updates a value of one element; see [`Update::scalar`].
    ///
    /// # Errors
    /// Those of [`Update::scalar`], and [`Error::UnsupportedElement`].
    #[inline]
    pub fn scalar(
        &self,
        element: Element,
        value: &mut [u8],
        delta: &[u8],
    ) -> Result<Scalar, Error> {
        match self {
            Self::BuiltIn(update) => update.scalar(element, value, delta),
            Self::User(user) => user.scalar(element, value, delta),
        }
    }

    /// Updates every element of a value; see [`Update::vector`].
    ///
    /// # Errors
    /// Those of [`Update::vector`], and [`Error::UnsupportedElement`].
    #[inline]
    pub fn vector(
        &self,
        element: Element,
        values: &mut [u8],
        deltas: Deltas<'_>,
        original: Option<&mut Vec<u8>>,
    ) -> Result<(), Error> {
        match self {
            Self::BuiltIn(update) => update.vector(element, values, deltas, original),
            Self::User(user) => user.vector(element, values, deltas, original),
        }
    }
}

impl Function<'_, Reduce> {
    /// Type of sigma; see [`Reduce::sigma`]. That of a user function is [`Element::widest`].
    pub fn sigma(&self, element: Element) -> Element {
        match self {
            Self::BuiltIn(reduce) => reduce.sigma(element),
            Self::User(_) => element.widest(),
        }
    }

    /// Sigma for commands that give none; see [`Reduce::initial`]. User functions begin with zero.
    pub fn initial(&self, element: Element) -> Scalar {
        match self {
            Self::BuiltIn(reduce) => reduce.initial(element),
            Self::User(_) => Scalar::from_bits(element.widest(), 0),
        }
    }

    /// Folds all elements; see [`Reduce::fold`]. A user function folds them in their order.
    ///
    /// # Errors
    /// Those of [`Reduce::fold`], and [`Error::UnsupportedElement`].
    #[inline]
    pub fn fold(&self, element: Element, values: &[u8], sigma: &[u8]) -> Result<Scalar, Error> {
        match self {
            Self::BuiltIn(reduce) => reduce.fold(element, values, sigma),
            Self::User(user) => user.fold(element, values, sigma),
        }
    }
}

impl Function<'_, Filter> {
    /// Appends the elements for which the condition holds to `kept`; see [`Filter::keep`].
    ///
    /// # Errors
    /// Those of [`Filter::keep`], and [`Error::UnsupportedElement`].
    #[inline]
    pub fn keep(
        &self,
        element: Element,
        values: &[u8],
        operand: &[u8],
        kept: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match self {
            Self::BuiltIn(filter) => filter.keep(element, values, operand, kept),
            Self::User(user) => user.keep(element, values, operand, kept),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Update => "update",
            Self::Reduce => "reduction",
            Self::Filter => "filter",
        })
    }
}
