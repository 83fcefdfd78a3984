// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of the manager.

use crate::device::DeviceError;
use crate::layout::ValueError;

/// Reason why the manager cannot execute a request.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A name that the program does not have.
    #[error("there is no {what} {name}; there are {}", .known.join(", "))]
    Unknown {
        /// Kind of name.
        what: &'static str,
        /// The name as written.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// Too many or too few arguments of a call.
    #[error("{path}: {given} arguments given; the signature is {signature}")]
    Arguments {
        /// Instance and method.
        path: String,
        /// Number of arguments given.
        given: usize,
        /// The method with its parameters.
        signature: String,
    },
    /// A call that had to succeed has answered no.
    #[error(
        "{path} answers no: there may be no room or no such entry, or a value is out of range; the \
         element's page says when"
    )]
    Refused {
        /// Instance and method.
        path: String,
    },
    /// The text is not the name of a variable.
    #[error("{0}: a variable is written instance.variable or instance.variable[index]")]
    Path(String),
    /// An element beyond the last one.
    #[error("{path}: index {index}, the array has {count} elements")]
    Index {
        /// The variable.
        path: String,
        /// The requested index.
        index: u64,
        /// Number of elements.
        count: u64,
    },
    /// A value that does not fit the variable.
    #[error("{path}: {source}")]
    Value {
        /// The variable.
        path: String,
        /// Reason.
        source: ValueError,
    },
    /// Initial values that are not JSON, or of another shape.
    #[error("initial values: {0}")]
    Initial(String),
}
