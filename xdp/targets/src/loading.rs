// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Selection of programs, map sizes and pins for loading an object into the kernel.

use freeport_ebpf::object::MapDefinition;
use std::path::Path;

/// Options for loading an object into the kernel. The default is all programs, with the maps as the
/// object defines them, none of which is pinned.
#[derive(Clone, Debug, Default)]
pub struct Loading<'a> {
    /// Names of the programs to load; all programs if empty.
    pub programs: Vec<&'a str>,
    /// Definitions whose sizes and initial values replace those of the object, by name.
    pub maps: &'a [MapDefinition],
    /// Folder in which maps with `LIBBPF_PIN_BY_NAME` are pinned, and reused if they are there
    /// already. Without it no map is pinned or reused.
    pub pins: Option<&'a Path>,
}
