// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors in building, loading and using native code.

use freeport_ir::{Loc, Program};
use std::path::PathBuf;

/// Why a program could not be built or loaded, or a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program uses a feature that native code does not support in this version.
    #[error("{loc}: {element}: native code does not support {what} in this version")]
    Unsupported {
        /// Unsupported feature.
        what: String,
        /// Element, function or channel that uses it.
        element: String,
        /// Source location, as `file:line:column`.
        loc: String,
    },
    /// The compiler cannot be run.
    #[error(
        "the C compiler {} cannot be run: {reason}; install clang 19 (on Debian and Ubuntu the \
         package clang-19), or set CLANG to where it is", compiler.display()
    )]
    CompilerMissing {
        /// Compiler command.
        compiler: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// The compiler rejected the emitted code.
    #[error("the C compiler failed on {}:\n{message}", source_file.display())]
    CompilerFailed {
        /// Path of the code.
        source_file: PathBuf,
        /// Output of the compiler.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// No folder can be trusted, because other users could have written to it or to a file in it;
    /// code from there is not executed.
    #[error("native code is only kept where no other user can write: {0}")]
    NoFolder(#[source] std::io::Error),
    /// A built library could not be loaded.
    #[error("{} cannot be loaded: {reason}", library.display())]
    Load {
        /// Path of the library.
        library: PathBuf,
        /// Reason for the failure.
        reason: String,
    },
    /// The instance, method, variable or endpoint does not exist, or the host may not access it.
    #[error("{whose} has no {what}")]
    Unknown {
        /// Owner of the requested object.
        whose: String,
        /// Requested object.
        what: String,
    },
    /// An argument, value or endpoint has the wrong kind or width.
    #[error("{what} takes {wanted}, not {given}")]
    Mismatch {
        /// Receiver of the value.
        what: String,
        /// Kind that it accepts.
        wanted: String,
        /// Kind that was given.
        given: String,
    },
}

impl Error {
    pub(crate) fn unsupported(program: &Program, what: &str, whose: &str, loc: Loc) -> Self {
        let file = program.files.get(loc.file.index()).map_or(program.name.as_str(), |name| name);
        Self::Unsupported {
            what: what.to_owned(),
            element: whose.to_owned(),
            loc: format!("{file}:{}:{}", loc.line, loc.column),
        }
    }

    pub(crate) fn mismatch(
        what: impl Into<String>,
        wanted: impl Into<String>,
        given: impl Into<String>,
    ) -> Self {
        Self::Mismatch { what: what.into(), wanted: wanted.into(), given: given.into() }
    }

    pub(crate) fn unknown(whose: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Unknown { whose: whose.into(), what: what.into() }
    }
}
