// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Bounds of loops (ClickNP 4.8): by counting the iterations if everything is constant, by the
//! maximum of the limit that the iterator is compared with, or by the array that the iterator
//! indexes.

use super::assigned;
use super::body::Body;
use super::constants::Constant;
use super::names::{Binding, Scope};
use crate::ast::{BinaryOperator, Expr, ExprKind, Loop, LoopKind, StatementKind};
use crate::types::Type;
use freeport_ir::{BinaryOp, Bits, UnaryOp};

/// Maximum iterations that are counted one by one.
const COUNTED_ROUNDS: u64 = 65_536;
/// Maximum width of a type whose maximum value alone may bound a loop.
const NARROW_BITS: u64 = 16;

/// Properties of a loop.
#[derive(Default)]
pub struct Bound {
    /// Maximum number of iterations.
    pub bound: Option<u64>,
    /// Iterator and its maximum value inside the loop.
    pub iterator: Option<(String, i128)>,
    /// Number of iterations each time, if it is certain and nothing leaves the loop early.
    pub rounds: Option<u64>,
    /// Whether its condition is true for every value that the iterator takes.
    pub is_endless: bool,
}

/// A loop with a counter variable.
struct Counter<'e> {
    name: &'e str,
    start: &'e Expr,
    cond: &'e Expr,
    step: &'e Expr,
}

impl<'a> Body<'_, 'a> {
    pub(super) fn bound_of(&mut self, one: &'a Loop) -> Bound {
        let Some(counter) = counter_of(one) else { return Bound::default() };
        let inside = assigned::of_statement(&one.body);
        if inside.assigned.contains(counter.name) {
            return self.bound_by_array(&counter, &inside);
        }
        let counted = self.count(&counter).unwrap_or_default();
        if counted.bound.is_some() {
            return counted;
        }
        let is_endless = counted.is_endless || self.is_always_true(&counter);
        let by_limit = self.bound_by_limit(&counter);
        let found = match by_limit.bound.is_some() {
            true => by_limit,
            false => self.bound_by_array(&counter, &inside),
        };
        let rounds = found.rounds.filter(|_| !is_endless);
        Bound { rounds, is_endless, ..found }
    }

    /// Evaluates the loop's head alone, as far as possible, and detects repeated values.
    fn count(&mut self, counter: &Counter) -> Option<Bound> {
        let ty = self.type_of_variable(counter.name)?;
        let mut value = self.try_constant(counter.start)?.converted(&ty)?;
        let mut most = value.as_i128()?;
        let mut earlier = None;
        for rounds in 0..=COUNTED_ROUNDS {
            self.scopes.push(Scope::new());
            let scope = self.scopes.last_mut().expect("just pushed");
            let binding = Binding::Constant(value.clone());
            scope.insert(counter.name.to_string(), (binding, counter.start.span));
            let continues = self.try_constant(counter.cond);
            let next = self.stepped(counter, &value);
            self.scopes.pop();
            if !continues?.truth() {
                let iterator = Some((counter.name.to_string(), most));
                let (bound, rounds) = (Some(rounds), Some(rounds));
                return Some(Bound { bound, iterator, rounds, is_endless: false });
            }
            if rounds.is_power_of_two() {
                earlier = Some(value.clone());
            }
            most = most.max(value.as_i128()?);
            value = next?.converted(&ty)?;
            if earlier.as_ref() == Some(&value) {
                return Some(Bound { is_endless: true, ..Bound::default() });
            }
        }
        None
    }

    /// Returns whether the condition compares the iterator with a constant that no value of its
    /// type exceeds. Over the negative values, and over the others, a comparison changes at most
    /// once.
    fn is_always_true(&mut self, counter: &Counter) -> bool {
        self.always_true(counter).unwrap_or(false)
    }

    fn always_true(&mut self, counter: &Counter) -> Option<bool> {
        let ExprKind::Binary(op, left, right) = &counter.cond.kind else { return None };
        use BinaryOperator::{Ge, Gt, Le, Lt};
        let is_left = is_name(left, counter.name);
        if !matches!(op, Lt | Le | Gt | Ge) || is_left == is_name(right, counter.name) {
            return None;
        }
        let limit = self.try_constant(if is_left { right } else { left })?;
        let int = self.type_of_variable(counter.name)?.as_integer()?;
        let minus_one = Bits::unary(UnaryOp::Not, &Bits::zero(int.width));
        let most = match int.is_signed {
            true => Bits::binary(BinaryOp::LShr, &minus_one, &Bits::from_u64(int.width, 1)),
            false => minus_one.clone(),
        };
        let least = Bits::unary(UnaryOp::Not, &most);
        let ends = [Bits::zero(int.width), most, least, minus_one];
        for bits in ends {
            let value = Constant { ty: Type::Int(int), bits };
            let (left, right) = if is_left { (&value, &limit) } else { (&limit, &value) };
            if !Constant::binary(*op, left, right)?.truth() {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns the iterator after a step, given its value before.
    fn stepped(&mut self, counter: &Counter, before: &Constant) -> Option<Constant> {
        let one = Constant::of(crate::types::INT, 1);
        match &counter.step.kind {
            ExprKind::Step { increment, target, .. } if is_name(target, counter.name) => {
                let op = if *increment { BinaryOperator::Add } else { BinaryOperator::Sub };
                Constant::binary(op, before, &one)
            }
            ExprKind::Assign(op, target, value) if is_name(target, counter.name) => {
                let value = self.try_constant(value)?;
                match op {
                    None => Some(value),
                    Some(op) => Constant::binary(*op, before, &value),
                }
            }
            _ => None,
        }
    }

    /// Bounds `i < limit`, counting up, by the maximum of the limit.
    fn bound_by_limit(&mut self, counter: &Counter) -> Bound {
        self.limit(counter).unwrap_or_default()
    }

    fn limit(&mut self, counter: &Counter) -> Option<Bound> {
        let by = self.increment(counter)?;
        let ty = self.type_of_variable(counter.name)?;
        // The start is not negative, so counting begins at 0 at the earliest.
        let start = match self.try_constant(counter.start) {
            Some(start) => start.converted(&ty)?.as_i128().filter(|start| *start >= 0)?,
            None if ty.as_integer()?.is_signed => self.least(counter.start)?,
            None => 0,
        };
        let limit = self.limit_of_cond(counter.name, counter.cond)?;
        let distance = limit.checked_sub(start)?.max(0);
        let rounds = u64::try_from(distance.checked_add(by - 1)? / by).ok()?;
        let most = (limit - 1).max(start);
        let iterator = Some((counter.name.to_string(), most));
        let certain = self.is_certain(counter).then_some(rounds);
        Some(Bound { bound: Some(rounds), iterator, rounds: certain, is_endless: false })
    }

    /// Returns whether start and limit are known, so that the bound is the number of iterations.
    fn is_certain(&mut self, counter: &Counter) -> bool {
        let ExprKind::Binary(_, left, right) = &counter.cond.kind else { return false };
        let limit = if is_name(left, counter.name) { right } else { left };
        self.try_constant(counter.start).is_some() && self.try_constant(limit).is_some()
    }

    /// Returns one more than the maximum value of the iterator for which the condition can be true.
    fn limit_of_cond(&mut self, name: &str, cond: &Expr) -> Option<i128> {
        let ExprKind::Binary(op, left, right) = &cond.kind else { return None };
        match op {
            // Either side of `&&` alone can end the loop.
            BinaryOperator::And => {
                let (left, right) =
                    (self.limit_of_cond(name, left), self.limit_of_cond(name, right));
                left.into_iter().chain(right).min()
            }
            BinaryOperator::Lt if is_name(left, name) => self.most(right),
            BinaryOperator::Le if is_name(left, name) => self.most(right)?.checked_add(1),
            BinaryOperator::Gt if is_name(right, name) => self.most(left),
            BinaryOperator::Ge if is_name(right, name) => self.most(left)?.checked_add(1),
            _ => None,
        }
    }

    fn increment(&mut self, counter: &Counter) -> Option<i128> {
        let by = match &counter.step.kind {
            ExprKind::Step { increment: true, target, .. } if is_name(target, counter.name) => 1,
            ExprKind::Assign(Some(BinaryOperator::Add), target, by)
                if is_name(target, counter.name) =>
            {
                self.try_constant(by)?.as_i128()?
            }
            ExprKind::Assign(None, target, value) if is_name(target, counter.name) => {
                match &value.kind {
                    ExprKind::Binary(BinaryOperator::Add, left, by)
                        if is_name(left, counter.name) =>
                    {
                        self.try_constant(by)?.as_i128()?
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        (by > 0).then_some(by)
    }

    /// Bounds a loop by the size of an array, if the iterator indexes it and every iteration
    /// advances the iterator.
    fn bound_by_array(&mut self, counter: &Counter, inside: &assigned::Names) -> Bound {
        let is_moved_once = !inside.assigned.contains(counter.name);
        if !is_moved_once || self.increment(counter).is_none() {
            return Bound::default();
        }
        let in_cond = assigned::of_expr(counter.cond);
        let indexed = in_cond.indexed.iter().chain(&inside.indexed);
        let arrays: Vec<_> = indexed.filter(|(_, index)| index == counter.name).collect();
        let counts = arrays.into_iter().filter_map(|(array, _)| self.array_size(array));
        let Some(size) = counts.collect::<Vec<_>>().into_iter().min() else {
            return Bound::default();
        };
        let iterator = Some((counter.name.to_string(), i128::from(size) - 1));
        Bound { bound: Some(size), iterator, ..Bound::default() }
    }

    fn array_size(&mut self, array: &Expr) -> Option<u64> {
        match self.type_of_place(array)? {
            Type::Array(_, count) => Some(count),
            _ => None,
        }
    }

    /// Returns the type of a variable or a part of one, without evaluating anything.
    fn type_of_place(&mut self, expr: &Expr) -> Option<Type> {
        match &expr.kind {
            ExprKind::Name(name, _) => self.type_of_variable(name),
            ExprKind::Index(of, _) => match self.type_of_place(of)? {
                Type::Array(item, _) => Some(item.as_ref().clone()),
                _ => None,
            },
            ExprKind::Member { of, member, .. } => match self.type_of_place(of)? {
                Type::Record(record) => {
                    let (field, _) = crate::types::layout::find(&record, &member.text)?;
                    Some(field.ty.clone())
                }
                _ => None,
            },
            ExprKind::Cast(ty, _) => self.quietly(|body| body.resolve(ty)),
            ExprKind::Slice(_, high, low) => {
                let (high, low) = (self.try_constant(high)?, self.try_constant(low)?);
                let width = high.as_u64()?.checked_sub(low.as_u64()?)? + 1;
                Some(Type::uint(u32::try_from(width).ok()?))
            }
            _ => None,
        }
    }

    fn type_of_variable(&mut self, name: &str) -> Option<Type> {
        match self.lookup(name)? {
            Binding::Variable(place) => Some(place.ty),
            Binding::Constant(constant) => Some(constant.ty),
            Binding::Table(table) => Some(table.ty.clone()),
            _ => None,
        }
    }

    /// Returns the minimum of an expression, if it cannot be negative: all parts are unsigned.
    fn least(&mut self, expr: &Expr) -> Option<i128> {
        self.most(expr).map(|_| 0)
    }

    /// Returns the maximum of an expression that is never negative.
    fn most(&mut self, expr: &Expr) -> Option<i128> {
        if let Some(constant) = self.try_constant(expr) {
            return constant.as_i128().filter(|value| *value >= 0);
        }
        if let ExprKind::Name(name, _) = &expr.kind
            && let Some(most) = self.iterators.get(name)
        {
            return Some(*most);
        }
        match &expr.kind {
            ExprKind::Binary(BinaryOperator::Add, left, right) => {
                self.most(left)?.checked_add(self.most(right)?)
            }
            ExprKind::Binary(BinaryOperator::Mul, left, right) => {
                self.most(left)?.checked_mul(self.most(right)?)
            }
            ExprKind::Binary(BinaryOperator::Div, left, right) => {
                let by = self.try_constant(right)?.as_i128().filter(|by| *by > 0)?;
                Some(self.most(left)? / by)
            }
            ExprKind::Binary(BinaryOperator::Shr, left, right) => {
                let by = self.try_constant(right)?.as_u64().filter(|by| *by < 127)?;
                Some(self.most(left)? >> by)
            }
            ExprKind::Binary(BinaryOperator::Rem, left, right) => {
                self.most(left)?;
                let by = self.try_constant(right)?.as_i128().filter(|by| *by > 0)?;
                Some(by - 1)
            }
            ExprKind::Binary(BinaryOperator::BitAnd, left, right) => {
                let masks = [self.try_constant(left), self.try_constant(right)];
                masks.into_iter().flatten().find_map(|mask| mask.as_i128().filter(|m| *m >= 0))
            }
            // A minimum written with `?:` is at most its larger side.
            ExprKind::Conditional(_, yes, no) => Some(self.most(yes)?.max(self.most(no)?)),
            _ => {
                let ty = self.type_of_place(expr)?;
                let int = ty.as_integer()?;
                let is_narrow = !int.is_signed && ty.value_bits() <= NARROW_BITS;
                is_narrow.then(|| (1 << int.width) - 1)
            }
        }
    }
}

/// Returns the counter of a `for` loop, if it has that form.
fn counter_of(one: &Loop) -> Option<Counter<'_>> {
    let LoopKind::For { init: Some(init), step: Some(step) } = &one.kind else { return None };
    let (name, start) = match &init.kind {
        StatementKind::Declare(declarations) => match declarations.as_slice() {
            [one] if one.dimensions.is_empty() => {
                (one.name.as_ref()?.text.as_str(), one.init.as_ref()?)
            }
            _ => return None,
        },
        StatementKind::Expr(Expr { kind: ExprKind::Assign(None, target, value), .. }) => {
            match &target.kind {
                ExprKind::Name(name, _) => (name.as_str(), value.as_ref()),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(Counter { name, start, cond: one.cond.as_ref()?, step })
}

fn is_name(expr: &Expr, name: &str) -> bool {
    matches!(&expr.kind, ExprKind::Name(own, _) if own == name)
}
