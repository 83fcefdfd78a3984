// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program at work, wherever that is.

use crate::{Error, Statistics};
use freeport_ebpf::object::Object;
use freeport_runtime::server::Wake;
use freeport_xdp::{Contents, Target};

/// A program between interfaces.
pub trait Running {
    /// Moves some packets; says whether there were any.
    ///
    /// # Errors
    /// What keeps it from going on.
    fn round(&mut self) -> Result<bool, Error>;

    /// Sleeps until there may be packets again, or somebody wakes it.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    fn wait(&self, wake: &Wake) -> Result<(), Error>;

    /// Whether no packet will ever come again.
    fn has_ended(&self) -> bool;

    /// The target with its maps.
    fn target_mut(&mut self) -> &mut dyn Target;

    /// Has to be called when a map was changed.
    fn maps_changed(&mut self);

    /// What is in a map.
    ///
    /// # Errors
    /// No such map, or what it says.
    fn contents(&mut self, map: &str) -> Result<Vec<Part>, Error>;

    /// What was counted.
    ///
    /// # Errors
    /// A target that does not say.
    fn statistics(&mut self, object: &Object) -> Result<Statistics, Error>;

    /// Has all leave that is on its way, at the end.
    ///
    /// # Errors
    /// What went wrong with it.
    fn finish(&mut self) -> Result<(), Error>;
}

/// A map, or what one processor has of it.
pub struct Part {
    /// Which, where the map has values for each.
    pub processor: Option<usize>,
    /// What is in it.
    pub contents: Contents,
}
