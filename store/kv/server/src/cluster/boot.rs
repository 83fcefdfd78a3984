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

/// The machine was started since the last [`note`] for this folder, or there was none.
///
/// # Errors
/// A file cannot be read.
pub fn was_started(folder: &Path) -> io::Result<bool> {
    let present = fs::read_to_string(PRESENT)?;
    // Without the file, the answer is the safe one.
    Ok(fs::read_to_string(folder.join(FILE)).map_or(true, |last| last != present))
}

/// The node has a part in its shard, so what the machine has lost is settled. A node that ends
/// before still has to know it at its next start.
///
/// # Errors
/// A file cannot be read or written.
pub fn note(folder: &Path) -> io::Result<()> {
    if !was_started(folder)? {
        return Ok(());
    }
    write(folder, &folder.join(FILE), &fs::read_to_string(PRESENT)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_of_the_machine_is_known_until_it_is_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let was_started = || was_started(folder.path()).expect("a file");
        let note = || note(folder.path()).expect("a file");
        assert!(was_started());
        assert!(was_started(), "it is not noted");
        note();
        assert!(!was_started());
        fs::write(folder.path().join(FILE), "another start").expect("a file");
        assert!(was_started());
        note();
        assert!(!was_started());
    }
}
