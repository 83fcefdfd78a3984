// SPDX-License-Identifier: Apache-2.0 OR MIT
//! This machine as the system describes it: its name, cores, caches and memory.

use crate::error::Error;
use crate::memory;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::path::Path;

/// Sizes of caches where the system reports none, in bytes: those of common processors.
const NEAR: u64 = 32 << 10;
/// Largest cache of a core by itself.
const MIDDLE: u64 = 1 << 20;
/// Last-level cache.
const LAST: u64 = 32 << 20;
/// Folder with the caches of a core.
const CACHES: &str = "/sys/devices/system/cpu/cpu0/cache";

/// A machine, as the system describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Processor, number of cores and kernel version.
    pub name: String,
    /// The cores that this process may use.
    pub cores: Vec<usize>,
    /// Size of the nearest data cache of a core, in bytes.
    pub near: u64,
    /// Size of the largest cache that a core has by itself, in bytes.
    pub middle: u64,
    /// Size of the last-level cache, in bytes.
    pub last: u64,
    /// Whether the system reports its caches. Otherwise, their sizes are assumed.
    pub reports_caches: bool,
    /// Memory that is available, in bytes: by the system, and by limits of control groups.
    pub memory: u64,
}

impl Host {
    /// Asks the system.
    ///
    /// # Errors
    /// It does not say which cores may be used.
    pub fn ask() -> Result<Self, Error> {
        let cores = cores()?;
        let reported = caches(Path::new(CACHES));
        let reports_caches = reported.is_some();
        let [near, middle, last] = reported.unwrap_or([NEAR, MIDDLE, LAST]);
        let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let memory = memory::available().unwrap_or(0);
        let processor = text("/proc/cpuinfo");
        let model = processor.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.map_or("unknown processor", |it| it.trim_start_matches([' ', '\t', ':']));
        let kernel = text("/proc/sys/kernel/osrelease");
        let name = format!("{model}, {} cores, Linux {}", cores.len(), kernel.trim());
        Ok(Self { name, cores, near, middle, last, reports_caches, memory })
    }
}

/// Returns the cores that this process may use.
fn cores() -> Result<Vec<usize>, Error> {
    let set = sched_getaffinity(None).map_err(|_| Error::Cores)?;
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect();
    if cores.is_empty() { Err(Error::Cores) } else { Ok(cores) }
}

/// Lets the calling thread run only on this core; if the system refuses, it runs anywhere.
pub fn pin_to(core: usize) {
    let mut set = CpuSet::new();
    if core < CpuSet::MAX_CPU {
        set.set(core);
        // Without it, results are only less steady.
        let _ = sched_setaffinity(None, &set);
    }
}

/// Returns the sizes of the nearest data cache, of the largest private one, and of the last one;
/// none if the system does not report them.
fn caches(folder: &Path) -> Option<[u64; 3]> {
    let mut found: Vec<(u32, u64)> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| {
            let read = |name: &str| fs::read_to_string(entry.as_ref().ok()?.path().join(name)).ok();
            let is_for_data = read("type")?.trim() != "Instruction";
            let size = size_of_text(read("size")?.trim())?;
            is_for_data.then_some((read("level")?.trim().parse().ok()?, size))
        })
        .collect();
    found.sort_unstable();
    match found[..] {
        [] => None,
        [(_, near)] => Some([near, near, near]),
        [(_, near), (_, last)] => Some([near, last.max(near), last.max(near)]),
        [(_, near), .., (_, middle), (_, last)] => {
            let middle = middle.max(near);
            Some([near, middle, last.max(middle)])
        }
    }
}

/// Parses a size such as `48K` or `32M`.
fn size_of_text(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let number: u64 = text.trim_end_matches(['K', 'M', 'G']).parse().ok()?;
    number.checked_mul(1 << shift).filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let sizes = ["48K", "2M", "1G", "100", "", "K", "-1K"].map(size_of_text);
        let expected = [Some(48 << 10), Some(2 << 20), Some(1 << 30), Some(100), None, None, None];
        assert_eq!(sizes, expected);
        assert_eq!(caches(Path::new("/nowhere")), None);
    }

    #[test]
    fn this_machine_has_cores_and_caches() {
        let host = Host::ask().expect("cores");
        assert!(!host.cores.is_empty() && host.near <= host.middle && host.middle <= host.last);
    }
}
