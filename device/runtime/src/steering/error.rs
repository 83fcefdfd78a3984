// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a device cannot be steered as it was asked.

use crate::device::DeviceError;
use crate::layout::ValueError;

/// Why the manager cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// In the device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A name that the program does not have.
    #[error("there is no {what} {name}; there are {}", .known.join(", "))]
    Unknown {
        /// Kind of thing.
        what: &'static str,
        /// What was written.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Too many or too few arguments of a call.
    #[error("{path}: {given} arguments given, it is {signature}")]
    Arguments {
        /// Instance and method.
        path: String,
        /// How many were given.
        given: usize,
        /// The method with its parameters.
        signature: String,
    },
    /// A call that had to be done has answered no.
    #[error(
        "{path} answers no: there may be no room or no such entry, or a value is out of range; the \
         element's page says when"
    )]
    Refused {
        /// Instance and method.
        path: String,
    },
    /// Not the name of a variable.
    #[error("{0}: a variable is written instance.variable or instance.variable[index]")]
    Path(String),
    /// An element beyond the last.
    #[error("{path}: index {index}, the array has {count} elements")]
    Index {
        /// The variable.
        path: String,
        /// What was asked for.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// A value that does not fit the variable.
    #[error("{path}: {source}")]
    Value {
        /// The variable.
        path: String,
        /// Why.
        source: ValueError,
    },
    /// Initial values that are not JSON, or of another shape.
    #[error("initial values: {0}")]
    Initial(String),
}
