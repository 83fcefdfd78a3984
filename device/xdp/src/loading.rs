// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What of an object is loaded into the kernel, and how.

use freeport_ebpf::object::MapDefinition;
use std::path::Path;

/// By default all programs, as the object has them, with maps of their own.
#[derive(Clone, Debug, Default)]
pub struct Loading<'a> {
    /// The programs that are loaded; all if there are none.
    pub programs: Vec<&'a str>,
    /// Maps whose sizes and first values may be others than in the object.
    pub maps: &'a [MapDefinition],
    /// Where maps are pinned that the object asks to be pinned, so that a later load finds them
    /// again. None: they are maps like any other, and those that others have pinned stay theirs.
    pub pins: Option<&'a Path>,
}
