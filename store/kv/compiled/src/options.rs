// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of the compiler of user functions.

use std::path::PathBuf;

/// How to compile functions.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders in which imported files are searched, after the folder of the importing file.
    pub library: Vec<PathBuf>,
    /// How functions are executed.
    pub code: Code,
}

/// How functions are executed. The results are the same.
#[derive(Clone, Debug)]
pub enum Code {
    /// As native code, or in the interpreter if native code cannot be built on this machine.
    Native(Box<freeport_native::Options>),
    /// In the interpreter, which takes about a microsecond for each operation of a function.
    Interpreted,
}

impl Default for Code {
    fn default() -> Self {
        Self::Native(Box::default())
    }
}

impl Options {
    /// Returns options for which no C compiler is needed.
    pub fn interpreted() -> Self {
        Self { code: Code::Interpreted, ..Self::default() }
    }
}
