// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading of the program that is to replace the running one. It is compiled and loaded by the
//! thread of the client that asks, while traffic flows; the worker only moves state and goes on
//! with the other device.

use crate::device::Device;
use crate::layouts::Layouts;
use std::path::Path;

/// A program in a device, ready to run in place of another.
pub struct Loaded {
    /// It has not run yet.
    pub device: Box<dyn Device + Send>,
    /// What its variables hold.
    pub layouts: Layouts,
    /// The program's file.
    pub file: String,
}

/// Compiles and loads a program as the running one was.
pub trait Load: Send + Sync {
    /// Loads the program of a file.
    ///
    /// # Errors
    /// What is wrong with it, for the user.
    fn load(&self, file: &Path) -> Result<Loaded, String>;
}
