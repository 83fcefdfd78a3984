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

/// Points of one operation and mode, by one thread or by several.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Group {
    /// The operation.
    pub operation: Operation,
    /// The mode.
    pub mode: Mode,
    /// Whether several threads posted requests.
    pub has_threads: bool,
    /// Number of points.
    pub points: usize,
    /// Number of points that are within the accepted deviation.
    pub within: usize,
    /// Median deviation without signs, as a part of the measured time.
    pub median: f64,
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

    /// Returns the points by operation, by mode, and by whether several threads measured them.
    /// Groups without points are left out.
    pub fn groups(&self) -> Vec<Group> {
        let all = Operation::ALL.into_iter().flat_map(|operation| {
            let of_mode = move |mode| [false, true].map(|is_shared| (operation, mode, is_shared));
            [Mode::Latency, Mode::Rate].into_iter().flat_map(of_mode)
        });
        all.filter_map(|key| self.group(key)).collect()
    }

    fn group(&self, (operation, mode, has_threads): (Operation, Mode, bool)) -> Option<Group> {
        let is_in = |compared: &&Compared| {
            let point = compared.point;
            let is_operation = point.kind.operation() == operation && point.mode == mode;
            is_operation && (point.threads > 1) == has_threads
        };
        let points: Vec<&Compared> = self.points.iter().filter(is_in).collect();
        let mut deviations: Vec<f64> = points.iter().map(|it| it.deviation().abs()).collect();
        let within = points.iter().filter(|point| point.is_within()).count();
        let median = quantile(&mut deviations, 0.5);
        let group = Group { operation, mode, has_threads, points: points.len(), within, median };
        (!points.is_empty()).then_some(group)
    }

    /// Returns whether the median deviation of each group is accepted.
    pub fn is_passed(&self) -> bool {
        self.groups().iter().all(|group| group.median <= ACCEPTED)
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
            Mode::Latency => (sample.quiet_median, estimate.latency),
            Mode::Rate => (sample.between, 1e3 / estimate.rate),
        };
        Ok(Compared { point, measured, estimated })
    };
    Ok(Check { points: samples.iter().map(compare).collect::<Result<_, _>>()? })
}
