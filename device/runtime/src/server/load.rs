// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading of a replacement program. The requesting client's thread compiles and loads it while
//! traffic flows; the worker only moves the state and continues with the new device.

use crate::device::Device;
use crate::layouts::Layouts;
use std::path::Path;

/// A program in a device, ready to replace another.
pub struct Loaded {
    /// The device, which has not run yet.
    pub device: Box<dyn Device + Send>,
    /// Layouts of its variables.
    pub layouts: Layouts,
    /// Name of the program's file.
    pub file: String,
}

/// Compiles and loads programs with the options of the running one.
pub trait Load: Send + Sync {
    /// Loads the program of a file.
    ///
    /// # Errors
    /// A description of the problem, for the user.
    fn load(&self, file: &Path) -> Result<Loaded, String>;
}
