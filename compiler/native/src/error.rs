// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What can go wrong on the way from a program to code that runs.

use freeport_ir::{Loc, Program};
use std::path::PathBuf;

/// Why a program could not be built, loaded or asked for something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program has something that native code does not do in this version.
    #[error("{loc}: {element}: {what} cannot be native code in this version")]
    Unsupported {
        /// What it has.
        what: String,
        /// The element, function or channel that has it.
        element: String,
        /// Where it was written, as `file:line:column`.
        loc: String,
    },
    /// There is no compiler.
    #[error(
        "the C compiler {} cannot be run: {reason}; install clang 19 (on Debian and Ubuntu the \
         package clang-19), or set CLANG to where it is", compiler.display()
    )]
    CompilerMissing {
        /// What was to be run.
        compiler: PathBuf,
        /// Why it cannot be.
        reason: String,
    },
    /// The compiler did not accept the code that was emitted.
    #[error("the C compiler failed on {}:\n{message}", source_file.display())]
    CompilerFailed {
        /// The code.
        source_file: PathBuf,
        /// What the compiler said.
        message: String,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no folder that only this user can write to, or others could have written a file in
    /// it: code from there is not run.
    #[error("native code is only kept where nobody else can write: {0}")]
    NoFolder(#[source] std::io::Error),
    /// A built library could not be loaded.
    #[error("{} cannot be loaded: {reason}", library.display())]
    Load {
        /// Which library.
        library: PathBuf,
        /// Why.
        reason: String,
    },
    /// No such instance, method, variable or endpoint, or the host may not touch it.
    #[error("{whose} has no {what}")]
    Unknown {
        /// Who was asked.
        whose: String,
        /// What was asked for.
        what: String,
    },
    /// An argument, value or endpoint of a wrong kind or width.
    #[error("{what} takes {wanted}, not {given}")]
    Mismatch {
        /// What it was given to.
        what: String,
        /// What it takes.
        wanted: String,
        /// What it was given.
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
