// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loads an [`Object`] from a file.

use super::code::{Code, Debug};
use super::collect::Maps;
use super::elf::Elf;
use super::link::link;
use super::{Error, Object, typed_map};
use std::collections::HashMap;
use std::path::Path;

/// Maximum number of slots of all programs of an object.
const MAX_SLOTS: usize = 4_000_000;

impl Object {
    /// Loads an object from a file.
    ///
    /// # Errors
    /// The file cannot be read, or an error of [`Self::parse`]; the error names the file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|error| Error::of_file(format!("cannot be read: {error}")));
        let object = bytes.and_then(|bytes| Self::parse(&bytes));
        object.map_err(|error| Error { file: Some(path.to_owned()), ..error })
    }

    /// Parses an object, links its programs and checks their form.
    ///
    /// # Errors
    /// The first error in the file, with its place. An error in one program, such as a reference to
    /// a kernel function or an invalid slot, is its [`refusal`](super::Program::refusal), and an
    /// error in one map is its [`fault`](super::MapDefinition::fault): programs that do not need it
    /// run.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let elf = Elf::parse(bytes)?;
        let debug = Debug::parse(&elf)?;
        let mut maps = Maps::collect(&elf, debug.btf.as_ref())?;
        let code = Code::read(&elf, &debug, &maps)?;
        let (mut programs, mut numbers, mut slots) = (vec![], HashMap::new(), 0);
        for (number, function) in code.functions.iter().enumerate() {
            if !function.is_program {
                continue;
            }
            let program = link(&code, &debug, number)?;
            slots += program.instructions.len();
            if slots > MAX_SLOTS {
                return Err(Error::of_file(format!("all programs have over {MAX_SLOTS} slots")));
            }
            numbers.insert(number, programs.len());
            programs.push(program);
        }
        let program = |section, byte| numbers.get(&code.at(section, byte)?).copied();
        typed_map::set_slots(&elf, debug.btf.as_ref(), &mut maps, program)?;
        let (license, version) = (license(&elf)?, version(&elf)?);
        Ok(Self { programs, maps: maps.definitions, license, version })
    }
}

fn license(elf: &Elf) -> Result<String, Error> {
    let data = elf.section("license").map_or(&[][..], |section| section.data);
    let length = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = String::from_utf8(data[..length].to_vec());
    text.map_err(|_| Error::in_section("license", "is no text"))
}

fn version(elf: &Elf) -> Result<Option<u32>, Error> {
    let Some(section) = elf.section("version") else { return Ok(None) };
    match <[u8; 4]>::try_from(section.data) {
        Ok(bytes) => Ok(Some(u32::from_le_bytes(bytes))),
        Err(_) => Err(Error::in_section("version", "must have 4 bytes")),
    }
}
