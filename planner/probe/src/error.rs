// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of measurements.

use std::io;
use thiserror::Error;

/// A measurement that failed.
#[derive(Debug, Error)]
pub enum Error {
    /// The second process could not be started.
    #[error("the second process cannot be started: {0}")]
    Start(#[source] io::Error),
    /// The socket to the other process failed.
    #[error("the socket to the other process: {0}; run the probe again")]
    Socket(#[source] io::Error),
    /// The fabric refused an operation.
    #[error("the fabric between the two processes: {0}")]
    Fabric(#[from] freeport_fabric::Error),
    /// The other process ended.
    #[error("the other process ended during the measurement; run the probe again")]
    Gone,
    /// A thread of the probe ended.
    #[error("a thread of the probe panicked: a fault of this program")]
    Thread,
    /// The largest range of addresses is too small or too large.
    #[error("the largest range has to be between {least} and {most} bytes, and not {value}")]
    Range {
        /// Its value.
        value: u64,
        /// Smallest accepted value.
        least: u64,
        /// Largest accepted value.
        most: u64,
    },
    /// More memory than is available.
    #[error(
        "{threads} threads with ranges of {range} bytes each need more memory than the {available} \
         bytes that are available; choose a smaller range, or end other programs"
    )]
    Memory {
        /// Number of threads, each with a range of its own.
        threads: u32,
        /// The largest range in bytes.
        range: u64,
        /// Available memory in bytes, also by limits of control groups.
        available: u64,
    },
    /// A point that cannot be measured.
    #[error("{0} cannot be measured: {1}")]
    Point(String, &'static str),
    /// A time that is not positive.
    #[error("the time has to be above 0 and at most {most} seconds, and not {value}")]
    Seconds {
        /// Its value.
        value: f64,
        /// Largest accepted value.
        most: f64,
    },
    /// Too few cores.
    #[error("the system does not say which cores this process may use")]
    Cores,
}
