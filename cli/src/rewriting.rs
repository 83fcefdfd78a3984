// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files that are read, changed and written back, single ones and those of whole folders, and
//! standard input with standard output. A file is replaced atomically.

use anyhow::{Context, bail};
use freeport_clicknp::library::{FILE_BYTES_MAX, read};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// Maximum depth of nested folders that are searched.
const FOLDER_DEPTH_MAX: u32 = 64;

/// A text that is read and written back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Standard input and output.
    Input,
    /// A file.
    File(PathBuf),
}

/// The sources that these paths name. A folder stands for the `.cnp` files below it, except those
/// in hidden folders and behind symbolic links.
///
/// # Errors
/// A path that does not exist, a folder that cannot be read, or `-` together with others.
pub fn sources(paths: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    if paths.iter().any(|path| path.as_os_str() == "-") {
        if paths.len() > 1 {
            bail!("`-` stands for standard input, and cannot be combined with other files");
        }
        return Ok(vec![Source::Input]);
    }
    let mut files = vec![];
    for path in paths {
        let meta = fs::metadata(path).with_context(|| path.display().to_string())?;
        match meta.is_dir() {
            true => collect(path, 0, &mut files)?,
            false => files.push(path.clone()),
        }
    }
    Ok(files.into_iter().map(Source::File).collect())
}

fn collect(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if depth > FOLDER_DEPTH_MAX {
        bail!("{}: more than {FOLDER_DEPTH_MAX} nested folders", folder.display());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if kind.is_dir() && !is_hidden {
            collect(&path, depth + 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|it| it == "cnp") {
            files.push(path);
        }
    }
    Ok(())
}

impl Source {
    /// Its name in messages.
    pub fn name(&self) -> PathBuf {
        match self {
            Source::Input => "standard input".into(),
            Source::File(path) => path.clone(),
        }
    }

    /// Reads the text.
    ///
    /// # Errors
    /// A message: the text cannot be read, is too large, or is not UTF-8.
    pub fn read(&self) -> Result<String, String> {
        let Source::File(path) = self else {
            let mut bytes = vec![];
            let mut input = io::stdin().lock().take(FILE_BYTES_MAX + 1);
            input.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
            if bytes.len() as u64 > FILE_BYTES_MAX {
                return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
            }
            return String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".into());
        };
        read(path)
    }

    /// Replaces the text. A file keeps its permissions and, if this user may set it, its owner.
    ///
    /// # Errors
    /// The file cannot be written; it is then unchanged.
    pub fn write(&self, text: &str) -> io::Result<()> {
        match self {
            Source::Input => {
                print!("{text}");
                Ok(())
            }
            Source::File(path) => replace(path, text),
        }
    }
}

/// Writes a file beside the one of this path, and gives it that name. A file keeps its permissions
/// and, if this user may set it, its owner. Anything but a file, such as a pipe, is written to.
///
/// # Errors
/// The file cannot be written. An old one is then unchanged.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let (path, new, meta) = places(path);
    if meta.as_ref().is_some_and(|meta| !meta.is_file()) {
        return fs::write(path, text);
    }
    let written = write_new(&new, text, meta.as_ref()).and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        // A failure to remove the new file is not worth a message of its own.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Checks that [`replace`] could write this file, and leaves nothing behind.
///
/// # Errors
/// The file cannot be written.
pub fn check_replace(path: &Path) -> io::Result<()> {
    let (path, new, meta) = places(path);
    if meta.is_some_and(|meta| !meta.is_file()) {
        return fs::OpenOptions::new().write(true).open(path).map(drop);
    }
    write_new(&new, "", None)?;
    fs::remove_file(new)
}

/// Returns the path of a file, which is the target of a symbolic link and not the link; the path of
/// a new file beside it; and the metadata of an old one.
fn places(path: &Path) -> (PathBuf, PathBuf, Option<fs::Metadata>) {
    let meta = fs::metadata(path).ok();
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    (path, new, meta)
}

fn write_new(path: &Path, text: &str, like: Option<&fs::Metadata>) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    if let Some(like) = like {
        // Fails unless this user is root or already the owner.
        let _ = chown(path, Some(like.uid()), Some(like.gid()));
        file.set_permissions(fs::Permissions::from_mode(like.mode()))?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn folders_mean_the_programs_below_them() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("b/deep")).unwrap();
        fs::create_dir_all(at(".hidden")).unwrap();
        for name in ["b/deep/x.cnp", "b/a.cnp", "b/a.test", ".hidden/y.cnp", "c.cnp"] {
            fs::write(at(name), "").unwrap();
        }
        symlink(at("b"), at("link")).unwrap();
        let files =
            |names: &[&str]| names.iter().map(|it| Source::File(at(it))).collect::<Vec<_>>();
        let found = sources(&[top.path().to_owned()]).unwrap();
        assert_eq!(found, files(&["b/a.cnp", "b/deep/x.cnp", "c.cnp"]));
        assert_eq!(sources(&[at("b/a.test")]).unwrap(), files(&["b/a.test"]));
        assert!(sources(&[at("none")]).is_err());
        assert_eq!(sources(&["-".into()]).unwrap(), [Source::Input]);
        assert!(sources(&["-".into(), at("c.cnp")]).is_err());
    }

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_through_links() {
        let top = tempfile::tempdir().unwrap();
        let (file, link) = (top.path().join("a.cnp"), top.path().join("b.cnp"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        Source::File(link.clone()).write("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn files_are_replaced_at_once_and_checks_leave_nothing() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let names = || fs::read_dir(top.path()).unwrap().count();
        check_replace(&at("new")).unwrap();
        assert_eq!(names(), 0);
        replace(&at("new"), "one").unwrap();
        symlink(at("new"), at("link")).unwrap();
        fs::set_permissions(at("new"), fs::Permissions::from_mode(0o600)).unwrap();
        check_replace(&at("link")).unwrap();
        replace(&at("link"), "two").unwrap();
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "two");
        assert_eq!(fs::metadata(at("new")).unwrap().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(names(), 2);
        for path in [at("none/new"), top.path().to_owned()] {
            assert!(check_replace(&path).is_err() && replace(&path, "").is_err());
        }
        assert_eq!(names(), 2);
        // A device is not replaced by a file.
        check_replace(Path::new("/dev/null")).unwrap();
        replace(Path::new("/dev/null"), "text").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
