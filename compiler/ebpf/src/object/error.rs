// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors of objects, with the place where they occurred.

use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// Reason for which an object was not loaded.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub struct Error {
    /// File name, if the object was opened by name.
    pub file: Option<PathBuf>,
    /// Place in the object.
    pub place: Box<Place>,
    /// Description of the error.
    pub reason: String,
}

/// A place in an object, as far as known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Section.
    pub section: Option<String>,
    /// Function in the section.
    pub function: Option<String>,
    /// Slot of the instruction in the section, as disassemblers count.
    pub instruction: Option<usize>,
    /// Source file and line of the instruction.
    pub source: Option<(String, u32)>,
}

impl Error {
    /// Creates an error that concerns the whole file.
    pub(super) fn of_file(reason: impl Into<String>) -> Self {
        Self { file: None, place: Box::default(), reason: reason.into() }
    }

    /// Creates an error in a section.
    pub(super) fn in_section(section: &str, reason: impl Into<String>) -> Self {
        let place = Place { section: Some(section.to_owned()), ..Place::default() };
        Self { file: None, place: Box::new(place), reason: reason.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        let place = self.place.to_string();
        if !place.is_empty() {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.reason)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, value) in [("section", &self.section), ("function", &self.function)] {
            if let Some(value) = value {
                write!(f, "{separator}{name} `{value}`")?;
                separator = ", ";
            }
        }
        if let Some(instruction) = self.instruction {
            write!(f, "{separator}instruction {instruction}")?;
        }
        if let Some((file, line)) = &self.source {
            write!(f, " ({file}:{line})")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_all_that_is_known() {
        let place = Place {
            section: Some("xdp".to_owned()),
            function: Some("count".to_owned()),
            instruction: Some(7),
            source: Some(("count.c".to_owned(), 12)),
        };
        let (file, reason) = (Some("count.o".into()), "is wrong".to_owned());
        let error = Error { file, place: Box::new(place), reason };
        let expected =
            "count.o: section `xdp`, function `count`, instruction 7 (count.c:12): is wrong";
        assert_eq!(error.to_string(), expected);
        assert_eq!(Error::of_file("is empty").to_string(), "is empty");
    }
}
