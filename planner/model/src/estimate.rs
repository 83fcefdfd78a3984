// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Estimates of requests: latency, throughput, and the resource that limits it.

use crate::bounds::{Limit, limits};
use crate::path::{Operation, Path};
use crate::profile::Profile;
use crate::route::Request;
use crate::simulator::{Flow, Load, Outcome, simulate};
use thiserror::Error;

/// Requests that cannot be estimated.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum EstimateError {
    /// The path does not have the operation.
    #[error(
        "path {path} has no {operation}: a DMA engine reads and writes, and other machines are \
         written to"
    )]
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
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Smallest accepted value.
        least: u64,
        /// Largest accepted value.
        most: u64,
    },
    /// No loads.
    #[error("a mix needs loads")]
    NoLoad,
    /// A rate that cannot be offered.
    #[error("a load offers from {least} to {most} million requests per second, and not {0}",
            least = OFFERED.0, most = OFFERED.1)]
    Offered(f64),
    /// The plain NIC beside paths of the device.
    #[error("path rnic belongs to another device, and cannot share one with other paths")]
    TwoDevices,
    /// Too few requests are completed in a simulation of bearable length.
    #[error("too few requests are completed to estimate them; ask for fewer in flight")]
    NotSteady,
}

/// Largest payload of a request in bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Largest batch.
const BATCH_MAX: u64 = 256;
/// Rates that can be offered, in millions of requests per second.
const OFFERED: (f64, f64) = (1e-6, 1e6);
/// Most requests of a load that are in flight.
const IN_FLIGHT_MAX: u64 = 1 << 17;

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

/// Expected results of requests of one kind.
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
    estimate_load(profile, &Load::full(profile, request), seed)
}

/// Estimates requests of one kind that given threads post, on an idle machine.
///
/// # Errors
/// The device cannot carry out such requests, or too few are completed.
pub fn estimate_load(profile: &Profile, load: &Load, seed: u64) -> Result<Estimate, EstimateError> {
    let request = load.request;
    let full = estimate_mix(profile, &[*load], seed)?;
    if !full.is_steady {
        return Err(EstimateError::NotSteady);
    }
    let single = estimate_mix(profile, &[Load::single(request)], seed)?.flows[0];
    let limit = limits(profile, load)[0];
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
        let (least, most) = OFFERED;
        if let Some(offered) = load.offered.filter(|offered| !(least..=most).contains(offered)) {
            return Err(EstimateError::Offered(offered));
        }
        for (name, value, most) in [
            ("the number of machines", load.machines.into(), 1024),
            ("the number of threads", load.threads.into(), 4096),
            ("the number of requests in flight", load.in_flight(), IN_FLIGHT_MAX),
        ] {
            if !(1..=most).contains(&value) {
                return Err(EstimateError::Range { name, value, least: 1, most });
            }
        }
    }
    let plain = loads.iter().filter(|load| load.request.path == Path::Rnic).count();
    match plain {
        _ if loads.is_empty() => return Err(EstimateError::NoLoad),
        0 => {}
        all if all == loads.len() => {}
        _ => return Err(EstimateError::TwoDevices),
    }
    Ok(simulate(profile, loads, seed).expect("the operations were checked"))
}
