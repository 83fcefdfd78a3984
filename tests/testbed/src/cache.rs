// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that tests build from sources: native code, XDP objects, simulated hardware. They are
//! below `target/test-cache` under names that depend on all inputs, so each is built once for all
//! tests, and a second run builds only what has changed.

use crate::{preload, variable};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of the cache, created if it does not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cache(PathBuf);

impl Cache {
    /// Returns the folder for one kind of files, such as `native`.
    ///
    /// # Panics
    /// If the folder cannot be made.
    pub fn of(kind: &str) -> Self {
        let top = std::env::var_os(variable::CACHE).map_or_else(default_folder, PathBuf::from);
        let folder = top.join(kind);
        fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        Self(folder)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file `name` for a content; `make` creates it at a temporary path if it does not
    /// exist, so no test sees an incomplete file.
    ///
    /// # Errors
    /// An error of `make`, or a file that cannot be renamed.
    pub fn file<E: From<io::Error>>(
        &self,
        name: &str,
        content: &impl Hash,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        self.fresh_file(name, content, Path::exists, make)
    }

    /// As [`Self::file`], for a file that depends on more than its name: it is made again unless
    /// `is_fresh`.
    ///
    /// # Errors
    /// An error of `make`, or a file that cannot be renamed.
    pub fn fresh_file<E: From<io::Error>>(
        &self,
        name: &str,
        content: &impl Hash,
        is_fresh: impl FnOnce(&Path) -> bool,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let [one, other] = [1, 2].map(|salt: u64| {
            let mut hasher = DefaultHasher::new();
            (salt, content).hash(&mut hasher);
            hasher.finish()
        });
        let file = self.0.join(format!("{one:016x}{other:016x}-{name}"));
        if !is_fresh(&file) {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let unfinished = self.0.join(format!("unfinished-{}-{count}", std::process::id()));
            make(&unfinished)?;
            fs::rename(&unfinished, &file)?;
        }
        Ok(file)
    }
}

fn default_folder() -> PathBuf {
    let profile = preload::profile_folder();
    profile.parent().expect("the folder of all profiles").join("test-cache")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_made_once_for_a_content() {
        let folder = std::env::temp_dir().join(format!("freeport-cache-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let cache = Cache(folder.clone());
        let write =
            |text: &'static str| move |path: &Path| -> io::Result<()> { fs::write(path, text) };
        let first = cache.file("it", &"content", write("one")).expect("it is made");
        let again = cache.file("it", &"content", write("another")).expect("it is there");
        assert_eq!((&first, fs::read(&again).expect("text").as_slice()), (&again, &b"one"[..]));
        let other = cache.file("it", &"changed", write("two")).expect("it is made");
        assert_ne!(first, other);
        let failed = |_: &Path| Err(io::Error::other("no compiler"));
        assert!(cache.file("it", &"not made", failed).is_err());
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 2);
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
