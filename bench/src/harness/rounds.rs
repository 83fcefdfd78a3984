// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Measurement in turn: every subject runs once per round, always in the same order (A B A B), so
//! that a temporary disturbance of the machine affects all of them.
//!
//! A measurement is one rate per round. The median is the reported figure; the spread, and the rate
//! that 99 % of the rounds reach, show how reliable it is.

use anyhow::Result;
use std::time::Duration;

/// A subject of measurement.
pub trait Subject {
    /// Returns the subject's name.
    fn name(&self) -> &str;

    /// Does its work once; returns the amount of work and the time it took.
    ///
    /// # Errors
    /// The reason why it could not work, which ends the measurement.
    fn run(&mut self) -> Result<Work>;
}

/// An amount of work and the time it took.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Work {
    /// Number of frames.
    pub frames: f64,
    /// Time that they took.
    pub elapsed: Duration,
}

impl Work {
    /// Returns the rate in millions of frames per second.
    pub fn million_per_second(&self) -> f64 {
        self.frames / self.elapsed.as_secs_f64().max(1e-9) / 1e6
    }
}

/// The rates of one subject.
#[derive(Clone, PartialEq, Debug)]
pub struct Measurement {
    /// Name of the subject.
    pub name: String,
    /// Millions of frames per second, by round.
    pub rates: Vec<f64>,
}

/// Runs all subjects `rounds` times in turn, after one warm-up round that is discarded.
///
/// # Errors
/// The error of a subject, with its name.
pub fn alternate(
    subjects: &mut [Box<dyn Subject + '_>],
    rounds: usize,
) -> Result<Vec<Measurement>> {
    let names = subjects.iter().map(|subject| subject.name().to_owned());
    let mut measurements: Vec<Measurement> =
        names.map(|name| Measurement { name, rates: Vec::with_capacity(rounds) }).collect();
    for round in 0..=rounds {
        for (subject, measurement) in subjects.iter_mut().zip(&mut measurements) {
            let work = subject.run().map_err(|error| error.context(measurement.name.clone()))?;
            if round > 0 {
                measurement.rates.push(work.million_per_second());
            }
        }
    }
    Ok(measurements)
}

impl Measurement {
    /// Returns the median rate; the lower of two.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the rate that 99 % of the rounds reach; the lowest of fewer than a hundred.
    pub fn reached_by_99_percent(&self) -> f64 {
        self.quantile(0.01)
    }

    /// Returns the value that 1 % of the rounds exceed, where lower is better; the highest of fewer
    /// than a hundred.
    pub fn exceeded_by_1_percent(&self) -> f64 {
        self.quantile(0.99)
    }

    /// Returns the range from the worst to the best round, relative to the median.
    pub fn spread(&self) -> f64 {
        (self.quantile(1.0) - self.quantile(0.0)) / self.median().max(f64::MIN_POSITIVE)
    }

    /// Returns the quantile `at` of the rounds, by nearest rank.
    fn quantile(&self, at: f64) -> f64 {
        let mut sorted = self.rates.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (at * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    struct Fake {
        name: &'static str,
        order: Rc<RefCell<Vec<&'static str>>>,
    }

    impl Subject for Fake {
        fn name(&self) -> &str {
            self.name
        }

        fn run(&mut self) -> Result<Work> {
            self.order.borrow_mut().push(self.name);
            let frames = self.order.borrow().len() as f64 * 1e6;
            Ok(Work { frames, elapsed: Duration::from_secs(1) })
        }
    }

    #[test]
    fn subjects_take_turns_and_the_first_round_does_not_count() {
        let order = Rc::new(RefCell::new(vec![]));
        let fake = |name| Box::new(Fake { name, order: order.clone() }) as Box<dyn Subject>;
        let results = alternate(&mut [fake("a"), fake("b")], 2).expect("nothing fails");
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "a", "b"]);
        assert_eq!((&results[0].rates, &results[1].rates), (&vec![3.0, 5.0], &vec![4.0, 6.0]));
    }

    #[test]
    fn quantiles_are_of_the_rounds() {
        let rates: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let many = Measurement { name: "x".into(), rates };
        assert_eq!((many.median(), many.reached_by_99_percent()), (100.0, 2.0));
        assert_eq!(many.exceeded_by_1_percent(), 198.0);
        assert!((many.spread() - 1.99).abs() < 1e-9);
        let few = Measurement { name: "x".into(), rates: vec![5.0, 3.0, 4.0] };
        assert_eq!((few.median(), few.reached_by_99_percent()), (4.0, 3.0));
    }
}
