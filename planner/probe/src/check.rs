// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Estimates beside points that their parameters were not fitted to.

use crate::point::{Mode, Point};
use crate::sample::{Sample, quantile};
use freeport_plan_model::local::{Machine, Operation, RequestError};

/// Accepted deviation of an estimate, as a part of the measured time.
pub const ACCEPTED: f64 = 0.15;

/// A measured time beside its estimate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compared {
    /// The point.
    pub point: Point,
    /// Measured time in nanoseconds: of a request in mode latency, and between the requests of all
    /// threads in mode rate.
    pub measured: f64,
    /// The estimate of the same.
    pub estimated: f64,
}

/// All points beside their estimates.
#[derive(Clone, PartialEq, Debug)]
pub struct Check {
    /// The points.
    pub points: Vec<Compared>,
}

impl Compared {
    /// Returns the deviation of the estimate, as a part of the measured time.
    pub fn deviation(&self) -> f64 {
        self.estimated / self.measured - 1.0
    }

    /// Returns whether the estimate is accepted.
    pub fn is_within(&self) -> bool {
        self.deviation().abs() <= ACCEPTED
    }
}

impl Check {
    /// Returns the number of points that are within the accepted deviation.
    pub fn within(&self) -> usize {
        self.points.iter().filter(|point| point.is_within()).count()
    }

    /// Returns the median deviation of an operation's points, without signs; none without points.
    pub fn median(&self, operation: Operation) -> Option<f64> {
        let of = |point: &&Compared| point.point.kind.operation() == operation;
        let deviations = self.points.iter().filter(of).map(|point| point.deviation().abs());
        let mut deviations: Vec<f64> = deviations.collect();
        (!deviations.is_empty()).then(|| quantile(&mut deviations, 0.5))
    }

    /// Returns whether the median deviation of each operation is accepted.
    pub fn is_passed(&self) -> bool {
        let medians = Operation::ALL.into_iter().filter_map(|operation| self.median(operation));
        medians.into_iter().all(|median| median <= ACCEPTED)
    }
}

/// Holds estimates against samples.
///
/// # Errors
/// The profile does not cover a point.
pub fn check(machine: &Machine, samples: &[Sample]) -> Result<Check, RequestError> {
    let compare = |sample: &Sample| {
        let point = sample.point;
        let estimate = machine.estimate(point.request())?;
        let (measured, estimated) = match point.mode {
            Mode::Latency => (sample.median, estimate.latency),
            Mode::Rate => (sample.between, 1e3 / estimate.rate),
        };
        Ok(Compared { point, measured, estimated })
    };
    Ok(Check { points: samples.iter().map(compare).collect::<Result<_, _>>()? })
}
