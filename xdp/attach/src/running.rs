// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The interface of a running program, independent of its target.

use crate::{Error, Statistics};
use freeport_ebpf::object::Object;
use freeport_runtime::server::Wake;
use freeport_xdp::{Contents, Target};

/// A program that runs between interfaces.
pub trait Running {
    /// Moves some packets. Returns whether there were any.
    ///
    /// # Errors
    /// The program cannot continue.
    fn round(&mut self) -> Result<bool, Error>;

    /// Sleeps until packets may be ready, or until `wake` is triggered.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    fn wait(&self, wake: &Wake) -> Result<(), Error>;

    /// Returns whether no further packet can arrive.
    fn has_ended(&self) -> bool;

    /// Returns the target with its maps.
    fn target_mut(&mut self) -> &mut dyn Target;

    /// Must be called after a map was changed from outside the program.
    fn maps_changed(&mut self);

    /// Returns the contents of a map.
    ///
    /// # Errors
    /// There is no such map, or reading it failed.
    fn contents(&mut self, map: &str) -> Result<Vec<Part>, Error>;

    /// Returns the counters.
    ///
    /// # Errors
    /// The target cannot report them.
    fn statistics(&mut self, object: &Object) -> Result<Statistics, Error>;

    /// Flushes all packets in flight, at the end.
    ///
    /// # Errors
    /// A packet could not be flushed.
    fn finish(&mut self) -> Result<(), Error>;
}

/// Contents of a map, or one processor's values of a per-CPU map.
pub struct Part {
    /// Number of the processor, for a per-CPU map.
    pub processor: Option<usize>,
    /// The entries.
    pub contents: Contents,
}
