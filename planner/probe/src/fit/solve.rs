// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Least squares with values that are not negative, by the active-set method of Lawson and Hanson
//! (Solving Least Squares Problems, 1974, chapter 23) on the normal equations.

/// A system of equations in the same unknowns, each divided by what it equals: so errors are
/// relative.
#[derive(Clone, Debug)]
pub struct System {
    /// Sums of products of columns.
    products: Vec<Vec<f64>>,
    /// Sums of columns times the right side.
    sides: Vec<f64>,
    rows: Vec<Vec<f64>>,
}

/// Change of the squared error below which an unknown stays 0.
const TOLERANCE: f64 = 1e-12;
/// Relative error from which an equation counts less: a disturbed measurement (Huber's estimator).
const DISTURBED: f64 = 0.08;
/// Repetitions with other weights of equations, at most.
const REPETITIONS: usize = 50;
/// Relative change of what equations add up to below which a repetition is the last one.
const SETTLED: f64 = 1e-4;

/// The points that a value follows from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// Points whose equations depend on the value; 0 if nothing was measured.
    pub points: usize,
    /// Whether the method found the values of the least error.
    pub is_converged: bool,
}

/// Values of the unknowns.
#[derive(Clone, PartialEq, Debug)]
pub struct Solution {
    /// A value of each unknown.
    pub values: Vec<f64>,
    /// Whether the values are those of the least error. Otherwise the method ended before it found
    /// them, for example since the equations hardly tell two unknowns apart.
    pub is_converged: bool,
}

impl System {
    /// Makes a system without equations.
    pub fn new(unknowns: usize) -> Self {
        Self {
            products: vec![vec![0.0; unknowns]; unknowns],
            sides: vec![0.0; unknowns],
            rows: vec![],
        }
    }

    /// Adds an equation: the sum of weights times unknowns is `value`, which is above 0.
    pub fn add(&mut self, weights: impl IntoIterator<Item = f64>, value: f64) {
        let row: Vec<f64> = weights.into_iter().map(|weight| weight / value).collect();
        self.count(&row, 1.0);
        self.rows.push(row);
    }

    /// Adds the products of an equation, which counts as this number of equations.
    fn count(&mut self, row: &[f64], times: f64) {
        for (line, (products, side)) in self.products.iter_mut().zip(&mut self.sides).enumerate() {
            *side += times * row[line];
            for (product, other) in products.iter_mut().zip(row) {
                *product += times * row[line] * other;
            }
        }
    }

    /// Returns what an unknown's value in a solution follows from.
    pub fn evidence(&self, unknown: usize, solution: &Solution) -> Evidence {
        let points = self.rows.iter().filter(|row| row[unknown] != 0.0).count();
        Evidence { points, is_converged: solution.is_converged }
    }

    /// Returns the sum of the squared relative errors of a solution; large errors count as they
    /// are, and not squared.
    pub fn error(&self, solution: &[f64]) -> f64 {
        let of = |row: &Vec<f64>| {
            let error = deviation(row, solution);
            let least = error.min(DISTURBED);
            least * (2.0 * error - least)
        };
        self.rows.iter().map(of).sum()
    }

    /// Returns the values with the least [`error`](Self::error).
    pub fn robust(&self) -> Solution {
        let mut found = self.solve();
        for _ in 0..REPETITIONS {
            let mut system = Self::new(self.sides.len());
            for row in &self.rows {
                system.count(row, DISTURBED / deviation(row, &found.values).max(DISTURBED));
            }
            let next = system.solve();
            let change = |row: &Vec<f64>| (sum(row, &next.values) - sum(row, &found.values)).abs();
            let is_settled = self.rows.iter().all(|row| change(row) <= SETTLED);
            found = next;
            if is_settled {
                return found;
            }
        }
        Solution { is_converged: false, ..found }
    }

    /// Returns the values with the least squared error; an unknown without weights is 0.
    pub fn solve(&self) -> Solution {
        let count = self.sides.len();
        let scale: Vec<f64> =
            (0..count).map(|at| self.products[at][at].sqrt().max(1e-300)).collect();
        let mut values = vec![0.0; count];
        let mut is_free = vec![false; count];
        // Each turn frees one unknown; the method ends after few turns for each.
        for _ in 0..=10 * count {
            let gradient = |at: usize| {
                let sum: f64 = (0..count).map(|it| self.products[at][it] * values[it]).sum();
                (self.sides[at] - sum) / scale[at]
            };
            let best = (0..count)
                .filter(|at| !is_free[*at] && self.products[*at][*at] > 0.0)
                .map(|at| (at, gradient(at)))
                .max_by(|one, other| one.1.total_cmp(&other.1));
            // Without one that would lower the error, the values are those of the least error.
            let Some((at, _)) =
                best.filter(|(_, slope)| slope.is_nan() || *slope > TOLERANCE.sqrt())
            else {
                return Solution { values, is_converged: true };
            };
            is_free[at] = true;
            if !self.settle(&mut values, &mut is_free, &scale) {
                break;
            }
        }
        Solution { values, is_converged: false }
    }

    /// Solves for the free unknowns; those that would become negative are 0 and no longer free.
    /// Returns whether a solution was found.
    fn settle(&self, values: &mut [f64], is_free: &mut [bool], scale: &[f64]) -> bool {
        loop {
            let free: Vec<usize> = (0..values.len()).filter(|at| is_free[*at]).collect();
            let found = self.solution_of(&free, scale);
            let is_finite = |found: &Vec<f64>| found.iter().all(|value| value.is_finite());
            let Some(found) = found.filter(is_finite) else { return false };
            if found.iter().all(|value| *value > 0.0) {
                values.fill(0.0);
                free.iter().zip(found).for_each(|(at, value)| values[*at] = value);
                return true;
            }
            let limits = free.iter().zip(&found).filter(|(_, new)| **new <= 0.0);
            let step = limits
                .map(|(at, new)| values[*at] / (values[*at] - new).max(f64::MIN_POSITIVE))
                .fold(1.0, f64::min);
            for (at, new) in free.iter().zip(&found) {
                values[*at] += step * (new - values[*at]);
                if *new <= 0.0 && values[*at] <= 1e-12 / scale[*at] {
                    values[*at] = 0.0;
                    is_free[*at] = false;
                }
            }
        }
    }

    /// Solves the normal equations of some unknowns by elimination; none if they depend on each
    /// other.
    fn solution_of(&self, free: &[usize], scale: &[f64]) -> Option<Vec<f64>> {
        let count = free.len();
        let mut lines: Vec<Vec<f64>> = free
            .iter()
            .map(|row| {
                let of = |at: &usize| self.products[*row][*at] / scale[*row] / scale[*at];
                free.iter().map(of).chain([self.sides[*row] / scale[*row]]).collect()
            })
            .collect();
        for at in 0..count {
            let pivot = (at..count)
                .max_by(|one, other| lines[*one][at].abs().total_cmp(&lines[*other][at].abs()))?;
            lines.swap(at, pivot);
            if lines[at][at].abs() < TOLERANCE {
                return None;
            }
            let line = lines[at].clone();
            for other in (0..count).filter(|other| *other != at) {
                let factor = lines[other][at] / line[at];
                for (to, from) in lines[other].iter_mut().zip(&line).skip(at) {
                    *to -= factor * from;
                }
            }
        }
        let value = |at: usize| lines[at][count] / lines[at][at] / scale[free[at]];
        Some((0..count).map(value).collect())
    }
}

/// Returns the relative error of an equation, without sign.
fn deviation(row: &[f64], solution: &[f64]) -> f64 {
    (sum(row, solution) - 1.0).abs()
}

/// Returns the sum of weights times values.
fn sum(row: &[f64], values: &[f64]) -> f64 {
    row.iter().zip(values).map(|(weight, value)| weight * value).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_equations_give_their_solution() {
        let mut random = fastrand::Rng::with_seed(5);
        for unknowns in 1..9 {
            let truth: Vec<f64> = (0..unknowns).map(|at| (at % 3) as f64 * 7.5).collect();
            let mut system = System::new(unknowns);
            for _ in 0..3 * unknowns + 2 {
                let row: Vec<f64> = (0..unknowns).map(|_| random.f64() + 0.1).collect();
                let value = row.iter().zip(&truth).map(|(weight, value)| weight * value).sum();
                if value > 0.0 {
                    system.add(row, value);
                }
            }
            let Solution { values: found, is_converged } = system.solve();
            assert!(is_converged);
            let is_close = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-5;
            assert!(truth.iter().zip(&found).all(is_close), "{truth:?} is not {found:?}");
            assert!(system.error(&found) < 1e-12);
        }
    }

    #[test]
    fn a_disturbed_equation_changes_little() {
        let mut system = System::new(2);
        for at in 1..20 {
            let at = f64::from(at);
            system.add([1.0, at], 10.0 + 3.0 * at);
        }
        system.add([1.0, 5.0], 100.0);
        let (plain, robust) = (system.solve().values, system.robust());
        assert!(robust.is_converged);
        let robust = robust.values;
        let error = |found: &[f64]| (found[0] - 10.0).abs() + (found[1] - 3.0).abs();
        assert!(error(&robust) < 0.3 && error(&robust) < error(&plain) / 3.0, "{robust:?}");
    }

    #[test]
    fn no_value_is_negative() {
        let mut system = System::new(2);
        // Without the limit: 3 and -1.
        system.add([1.0, 1.0], 2.0);
        system.add([1.0, 2.0], 1.0);
        let found = system.solve().values;
        assert!(found.iter().all(|value| *value >= 0.0), "{found:?}");
        assert_eq!(found[1], 0.0);
        // Minimum of (x / 2 - 1)^2 + (x - 1)^2.
        assert!((found[0] - 1.2).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn an_unknown_without_weights_is_zero() {
        let mut system = System::new(2);
        system.add([2.0, 0.0], 4.0);
        let found = system.solve();
        assert_eq!(found.values, [2.0, 0.0]);
        assert_eq!([0, 1].map(|unknown| system.evidence(unknown, &found).points), [1, 0]);
        let nothing = System::new(2).robust();
        assert_eq!(nothing, Solution { values: vec![0.0, 0.0], is_converged: true });
    }

    #[test]
    fn equations_without_a_solution_end_and_say_so() {
        let mut system = System::new(2);
        system.add([1.0, 2.0], 10.0);
        assert!(system.robust().is_converged);
        system.add([f64::INFINITY, 1.0], 1.0);
        assert!(!system.robust().is_converged);
    }
}
