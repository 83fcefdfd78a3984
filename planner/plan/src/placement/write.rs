// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Writing plan files and placement files.

use super::{Placement, PlanFile, Setting, Settings, VERSION};
use crate::file::FileError;
use crate::function::Service;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use thiserror::Error;
use toml_edit::Value;

/// A placement file that cannot be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// There is a file of another kind.
    #[error("{0}; the file is not a placement, and stays as it is: choose another name")]
    Other(FileError),
    /// The file cannot be read or written.
    #[error("{file} cannot be written: {source}")]
    File {
        /// The file.
        file: String,
        /// The reason.
        source: io::Error,
    },
}

impl PlanFile {
    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let Self { service, function, device, rate, limit, shares } = self;
        let mut text = head("A plan; `freeport plan apply` makes a placement of it.", "plan");
        text += &format!(
            "service = {}\nfunction = {}\ndevice = {}\nmillions_per_second = {}\nlimited_by = {}\n",
            quoted(service.name()),
            quoted(function),
            quoted(device),
            number(*rate),
            quoted(limit),
        );
        text + &list("shares", shares)
    }
}

impl Placement {
    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut text = head("A placement, written by `freeport plan apply`.", "placement");
        for (service, settings) in &self.services {
            let Settings { plan, function, device, shares } = settings;
            let name = service.name();
            text += &format!(
                "\n[{name}]\nplan = {}\nfunction = {}\ndevice = {}\n",
                quoted(plan),
                quoted(function),
                quoted(device),
            );
            text += &list(&format!("{name}.shares"), shares);
        }
        text
    }
}

/// Puts the settings of a service into a placement file, whose other services stay. The file is
/// replaced as a whole, without comments that it had. Several calls at once for a folder wait
/// for each other.
///
/// # Errors
/// There is a file that is not a placement, or the file cannot be read or written.
pub fn write(path: &Path, service: Service, settings: Settings) -> Result<(), WriteError> {
    let file = path.display().to_string();
    let failed = |source| WriteError::File { file: file.clone(), source };
    // The target of a symbolic link is replaced, and not the link.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // Held until the file is replaced.
    let _folder = locked_folder(&target).map_err(failed)?;
    let mut placement = match fs::read(&target) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            Placement::parse(&file, &text).map_err(WriteError::Other)?
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Placement::default(),
        Err(error) => return Err(failed(error)),
    };
    placement.services.insert(service, settings);
    replace(&target, &placement.text()).map_err(failed)
}

/// Opens the folder of a file, and waits until no other process has locked it.
fn locked_folder(path: &Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")))?;
    // On a file system without locks, two changes at once may lose one.
    let _ = folder.lock();
    Ok(folder)
}

/// Replaces a file: it has either its old or its new text at any time.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    // A file of that name that is there already is not removed.
    let file = OpenOptions::new().write(true).create_new(true).open(&new)?;
    let written = write_new(file, path, text).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // A failure to remove the new file is not worth a message of its own.
        let _ = fs::remove_file(&new);
    }
    written
}

fn write_new(mut file: File, like: &Path, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(like) {
        file.set_permissions(old.permissions())?;
    }
    file.sync_all()
}

fn head(about: &str, kind: &str) -> String {
    format!("# {about}\nkind = {}\nversion = {VERSION}\n", quoted(kind))
}

fn list(name: &str, shares: &[Setting]) -> String {
    let of = |setting: &Setting| {
        let Setting { alternative, share, paths, bytes, batch, compression } = setting;
        let paths: Vec<String> = paths.iter().map(|path| quoted(path.name())).collect();
        format!(
            "\n[[{name}]]\nalternative = {}\nshare = {}\npaths = [{}]\n\
             bytes = {bytes}\nbatch = {batch}\ncompression = {}\n",
            quoted(alternative),
            number(*share),
            paths.join(", "),
            quoted(compression.name()),
        )
    };
    shares.iter().map(of).collect()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn number(number: f64) -> String {
    Value::from(number).to_string()
}
