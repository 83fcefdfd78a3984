// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of objects on targets.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason for which an object could not be compiled, loaded, run, or read.
#[derive(Debug, Error)]
pub enum Error {
    /// The compiler is not installed.
    #[error("{compiler} cannot be run: {source}; scripts/install.sh installs it")]
    NoCompiler {
        /// Name of the compiler.
        compiler: String,
        /// Cause.
        source: io::Error,
    },
    /// The compiler rejects the program.
    #[error("{file}: {messages}", file = file.display())]
    Compile {
        /// The source file.
        file: PathBuf,
        /// The compiler's messages.
        messages: String,
    },
    /// The target rejects the object, for the reason given.
    #[error("the object cannot be loaded: {0}")]
    Load(String),
    /// The program cannot run on the target: the unsupported instructions, each with the reason.
    #[error("{0}")]
    Unsupported(String),
    /// The image of a program broke a rule of the processor.
    #[error(transparent)]
    Fault(#[from] freeport_vliw::model::Fault),
    /// The object has no program with this name.
    #[error("no program {0} in the object")]
    NoProgram(String),
    /// The object has no map with this name.
    #[error("no map {0} in the object")]
    NoMap(String),
    /// The target refused an operation on a map or a packet.
    #[error("{what}: {reason}")]
    Refused {
        /// The operation.
        what: String,
        /// The target's reason.
        reason: String,
    },
}
