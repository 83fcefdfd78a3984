// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the machine was started since a folder was used last. Then the last bytes of the log may
//! be lost which the system had not written, although replicas have got them.

use std::fs;
use std::io;
use std::path::Path;

use super::identity::write;

/// Name of the file in the folder.
const FILE: &str = "boot";
/// A random number of this start of the machine.
const PRESENT: &str = "/proc/sys/kernel/random/boot_id";

/// The machine was started since the last call for this folder, or there was none.
///
/// # Errors
/// A file cannot be read or written.
pub fn is_first_use_since_boot(folder: &Path) -> io::Result<bool> {
    let present = fs::read_to_string(PRESENT)?;
    let path = folder.join(FILE);
    // Without the file, the answer is the safe one.
    if fs::read_to_string(&path).is_ok_and(|last| last == present) {
        return Ok(false);
    }
    write(folder, &path, &present)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_use_is_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let is_first = || is_first_use_since_boot(folder.path()).expect("a file");
        assert!(is_first());
        assert!(!is_first());
        fs::write(folder.path().join(FILE), "another start").expect("a file");
        assert!(is_first());
    }
}
