// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines from an executable's file whether its program can be accelerated.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Size of the 64-bit ELF header, and of a section header.
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
/// Type of the program header that names the loader (`PT_INTERP`).
const LOADER: u32 = 3;
/// Limits on program headers, sections and bytes of names: more than any real program has.
const PARTS_MAX: u64 = 1 << 16;
const NAMES_MAX: u64 = 1 << 22;
/// Section in which Go records the build of a program.
const GO: &[u8] = b".go.buildinfo";

/// Kind of an executable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Dynamically linked; as far as can be seen, it makes system calls through libraries.
    Dynamic,
    /// Statically linked: it loads no library.
    Static,
    /// Built by Go, with a loader: it loads the library, but makes system calls itself.
    Go,
    /// Not a 64-bit program: a script, or no program at all.
    Other,
}

impl Kind {
    /// Determines the kind of the executable at `path`.
    ///
    /// # Errors
    /// It cannot be opened or read, or is truncated.
    pub fn of(path: &Path) -> io::Result<Self> {
        // Non-blocking, so that opening a FIFO in place of a program does not wait for its writer.
        Self::read(File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?)
    }

    /// Determines the kind of an open file.
    ///
    /// # Errors
    /// It cannot be read, or is truncated.
    pub fn read(mut file: impl Read + Seek) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        match file.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Self::Other),
            read => read?,
        }
        if &header[..5] != b"\x7fELF\x02" {
            return Ok(Self::Other);
        }
        if !has_loader(&mut file, &header)? {
            return Ok(Self::Static);
        }
        // Unreadable section names are treated as missing.
        let is_go = has_section(file, &header, GO).unwrap_or(false);
        Ok(if is_go { Self::Go } else { Self::Dynamic })
    }

    /// Reason for which such a program stays in the kernel; `None` if it does not for that.
    pub const fn why_in_kernel(self) -> Option<&'static str> {
        match self {
            Self::Static => Some("it is linked statically, so it loads no library"),
            Self::Go => Some("it is a Go program, which makes system calls without the C library"),
            Self::Dynamic | Self::Other => None,
        }
    }
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let digits = bytes.get(at..at + length).unwrap_or_default().iter().rev();
    digits.fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn has_loader(file: &mut (impl Read + Seek), header: &[u8]) -> io::Result<bool> {
    let (start, length, count) =
        (number(header, 32, 8), number(header, 54, 2), number(header, 56, 2));
    for part in 0..count.min(PARTS_MAX) {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(start.saturating_add(part * length)))?;
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == LOADER {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_section(mut file: impl Read + Seek, header: &[u8], name: &[u8]) -> io::Result<bool> {
    let (start, length, count) =
        (number(header, 40, 8), number(header, 58, 2), number(header, 60, 2));
    if length != SECTION_BYTES as u64 {
        return Ok(false);
    }
    let mut section = |index: u64| -> io::Result<[u8; SECTION_BYTES]> {
        let mut bytes = [0; SECTION_BYTES];
        file.seek(SeekFrom::Start(start.saturating_add(index * length)))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    let all: Vec<_> = (0..count.min(PARTS_MAX)).map(&mut section).collect::<io::Result<_>>()?;
    let Some(of_names) = all.get(number(header, 62, 2) as usize) else { return Ok(false) };
    let mut names = vec![];
    file.seek(SeekFrom::Start(number(of_names, 24, 8)))?;
    file.take(number(of_names, 32, 8).min(NAMES_MAX)).read_to_end(&mut names)?;
    let is_it = |section: &[u8; SECTION_BYTES]| {
        let at = number(section, 0, 4) as usize;
        names.get(at..at + name.len() + 1).is_some_and(|it| it.strip_suffix(&[0]) == Some(name))
    };
    Ok(all.iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Builds a file with program headers of these types and sections of these names.
    fn made(folder: &Path, parts: &[u32], sections: &[&str]) -> Kind {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        (bytes[32], bytes[54], bytes[56]) = (64, 56, parts.len() as u8);
        for kind in parts {
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 52]);
        }
        let names = format!("\0{}\0", sections.join("\0"));
        let at_names = bytes.len() as u64;
        bytes.extend(names.as_bytes());
        let start = bytes.len() as u64;
        bytes[40..48].copy_from_slice(&start.to_le_bytes());
        (bytes[58], bytes[60], bytes[62]) = (64, sections.len() as u8 + 1, 0);
        let section = |name: u32| {
            let mut section = vec![0; SECTION_BYTES];
            section[..4].copy_from_slice(&name.to_le_bytes());
            section[24..32].copy_from_slice(&at_names.to_le_bytes());
            section[32..40].copy_from_slice(&(names.len() as u64).to_le_bytes());
            section
        };
        bytes.extend(section(0));
        for name in sections {
            bytes.extend(section(names.find(name).unwrap() as u32));
        }
        let path = folder.join("it");
        fs::write(&path, bytes).unwrap();
        Kind::of(&path).unwrap()
    }

    #[test]
    fn loaders_and_sections_tell_what_a_program_is() {
        let folder = tempfile::tempdir().unwrap();
        let made = |parts: &[u32], sections: &[&str]| made(folder.path(), parts, sections);
        assert_eq!(made(&[1, 2, 6], &[".text"]), Kind::Static);
        assert_eq!(made(&[1, 2, 6], &[".text", ".go.buildinfo"]), Kind::Static);
        assert_eq!(made(&[6, 3, 1], &[".text", ".data"]), Kind::Dynamic);
        assert_eq!(made(&[6, 3, 1], &[".text", ".go.buildinfo", ".data"]), Kind::Go);
        assert_eq!(made(&[6, 3, 1], &[".go.buildinfo.not"]), Kind::Dynamic);
        assert_eq!(Kind::of(Path::new("/proc/self/exe")).unwrap(), Kind::Dynamic);
        fs::write(folder.path().join("it"), "#!/bin/sh").unwrap();
        assert_eq!(Kind::of(&folder.path().join("it")).unwrap(), Kind::Other);
        assert!(Kind::of(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_file_that_is_cut_anywhere_is_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        made(folder.path(), &[6, 3, 1], &[".text", ".go.buildinfo"]);
        let path = folder.path().join("it");
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let _ = Kind::of(&path);
        }
        for at in 0..HEADER_BYTES {
            let mut changed = whole.clone();
            changed[at] = 0xff;
            fs::write(&path, changed).unwrap();
            let _ = Kind::of(&path);
        }
    }
}
