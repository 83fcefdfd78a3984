// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Cost of one kind of operation: mean and variance of its memory accesses, and their causes.

use crate::access::{Accesses, Cause};

/// Memory accesses of operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    operations: u64,
    accesses: Accesses,
    squares: u64,
    largest: u64,
}

impl Cost {
    /// Adds an operation that made these accesses.
    pub fn add(&mut self, accesses: Accesses) {
        let total = accesses.total();
        self.operations += 1;
        self.accesses += accesses;
        self.squares += total * total;
        self.largest = self.largest.max(total);
    }

    /// Number of operations.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// Mean number of accesses; 0 if there were no operations.
    pub fn mean(&self) -> f64 {
        self.per_operation(self.accesses.total())
    }

    /// Mean number of accesses for one cause.
    pub fn mean_of(&self, cause: Cause) -> f64 {
        self.per_operation(self.accesses.of(cause))
    }

    /// Variance of the number of accesses.
    pub fn variance(&self) -> f64 {
        self.per_operation(self.squares) - self.mean().powi(2)
    }

    /// Largest number of accesses of an operation.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Accesses of all operations.
    pub fn accesses(&self) -> &Accesses {
        &self.accesses
    }

    fn per_operation(&self, count: u64) -> f64 {
        count as f64 / self.operations.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Direction;

    #[test]
    fn mean_and_variance_are_those_of_the_operations() {
        let mut cost = Cost::default();
        assert_eq!((cost.mean(), cost.variance(), cost.largest()), (0.0, 0.0, 0));
        for data in [1, 1, 1, 5] {
            let mut accesses = Accesses::default();
            accesses.count_many(Cause::Data, Direction::Read, data);
            accesses.count(Cause::Bucket, Direction::Write);
            cost.add(accesses);
        }
        assert_eq!((cost.operations(), cost.mean(), cost.variance()), (4, 3.0, 3.0));
        assert_eq!((cost.mean_of(Cause::Data), cost.mean_of(Cause::Slab)), (2.0, 0.0));
        assert_eq!((cost.largest(), cost.accesses().total()), (6, 12));
    }
}
