// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Estimates of requests: latency, throughput, and the resource that limits it.

use crate::bounds::{Limit, limits};
use crate::path::Operation;
use crate::profile::Profile;
use crate::route::Request;
use crate::simulator::{Flow, Load, Outcome, simulate};
use thiserror::Error;

/// Requests that cannot be estimated.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum EstimateError {
    /// The path does not have the operation.
    #[error("path {path} has no {operation}: a DMA engine only reads and writes")]
    NoOperation {
        /// The path.
        path: String,
        /// The operation.
        operation: String,
    },
    /// A message that is longer than a packet.
    #[error("a message has at most {most} B (network.mtu), and not {bytes}; use read or write")]
    Message {
        /// Its payload in bytes.
        bytes: u64,
        /// The longest payload in bytes.
        most: u64,
    },
    /// A number that a request cannot have.
    #[error("{name} has to be between {least} and {most}, and not {value}")]
    Range {
        /// What it is.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Smallest accepted value.
        least: u64,
        /// Largest accepted value.
        most: u64,
    },
    /// No loads, or a load that offers nothing.
    #[error("a mix needs loads, and each has to offer more than nothing")]
    NoLoad,
}

/// Largest payload of a request in bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Largest batch.
const BATCH_MAX: u64 = 1024;

impl Request {
    /// Checks whether the profile's device can carry out the request.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self, profile: &Profile) -> Result<(), EstimateError> {
        let Self { path, operation, bytes, batch, range } = *self;
        if !path.has(operation) {
            let (path, operation) = (path.to_string(), operation.to_string());
            return Err(EstimateError::NoOperation { path, operation });
        }
        let most = profile.network.mtu as u64;
        if operation == Operation::Send && bytes > most {
            return Err(EstimateError::Message { bytes, most });
        }
        for (name, value, least, most) in [
            ("the payload in bytes", bytes, 0, BYTES_MAX),
            ("the batch", batch.into(), 1, BATCH_MAX),
            ("the range in bytes", range, 64, u64::MAX),
        ] {
            if !(least..=most).contains(&value) {
                return Err(EstimateError::Range { name, value, least, most });
            }
        }
        Ok(())
    }
}

/// What requests of one kind are expected to reach.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// The requests.
    pub request: Request,
    /// One request at a time.
    pub single: Flow,
    /// As many requests as all requesters post.
    pub full: Outcome,
    /// The lowest analytic limit.
    pub limit: Limit,
}

/// Estimates requests of one kind on an idle machine.
///
/// # Errors
/// The device cannot carry out such requests.
pub fn estimate(profile: &Profile, request: Request, seed: u64) -> Result<Estimate, EstimateError> {
    let load = Load::full(profile, request);
    let full = estimate_mix(profile, &[load], seed)?;
    let single = estimate_mix(profile, &[Load::single(request)], seed)?.flows[0];
    let limit = limits(profile, &load)[0];
    Ok(Estimate { request, single, full, limit })
}

/// Estimates loads that are there at the same time.
///
/// # Errors
/// The device cannot carry out one of them, or there are none.
pub fn estimate_mix(
    profile: &Profile,
    loads: &[Load],
    seed: u64,
) -> Result<Outcome, EstimateError> {
    for load in loads {
        load.request.check(profile)?;
        if load.offered.is_some_and(|offered| offered <= 0.0 || !offered.is_finite()) {
            return Err(EstimateError::NoLoad);
        }
        if load.machines == 0 || load.threads == 0 {
            return Err(EstimateError::NoLoad);
        }
    }
    if loads.is_empty() {
        return Err(EstimateError::NoLoad);
    }
    Ok(simulate(profile, loads, seed).expect("the operations were checked"))
}
