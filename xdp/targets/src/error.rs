// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong with an object before or between packets.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why an object could not be made, loaded or asked.
#[derive(Debug, Error)]
pub enum Error {
    /// The compiler is not there.
    #[error("{compiler} cannot be run: {source}; scripts/install.sh installs it")]
    NoCompiler {
        /// Its name.
        compiler: String,
        /// Why not.
        source: io::Error,
    },
    /// The compiler does not take the program.
    #[error("{file}: {messages}", file = file.display())]
    Compile {
        /// The source.
        file: PathBuf,
        /// What the compiler says.
        messages: String,
    },
    /// The target does not take the object; the reason has its own words.
    #[error("the object cannot be loaded: {0}")]
    Load(String),
    /// Instructions of a program that cannot run there, each with the reason.
    #[error("{0}")]
    Unsupported(String),
    /// The image of a program does what it may not.
    #[error(transparent)]
    Fault(#[from] freeport_vliw::model::Fault),
    /// There is no program with this name.
    #[error("no program {0} in the object")]
    NoProgram(String),
    /// There is no map with this name.
    #[error("no map {0} in the object")]
    NoMap(String),
    /// What was asked of a map, or with a packet, is refused.
    #[error("{what}: {reason}")]
    Refused {
        /// What was asked for.
        what: String,
        /// The target's answer.
        reason: String,
    },
}
