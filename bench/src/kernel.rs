// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's XDP as a peer: C programs compiled by clang for BPF, loaded with the `bpf` system
//! call and run by the kernel's test facility.
//!
//! `BPF_PROG_TEST_RUN` runs the JIT-compiled program on one frame a given number of times and
//! reports the mean time of a run in whole nanoseconds. That time covers the program and the
//! kernel's call of it, on a frame in the first-level cache. It involves no driver, buffers or
//! queues: it is the kernel's best case, and a real interface is slower.
//!
//! Loading needs no libbpf: [`freeport_ebpf::object`] reads the object, and `freeport_port::bpf`
//! makes the system calls. Maps are defined in section `maps`; the load of a map's address gets the
//! file descriptor of the created map.

use anyhow::{Context, Result, bail, ensure};
use freeport_ebpf::instruction::PSEUDO_MAP;
use freeport_ebpf::object::{Object, Program};
use freeport_port::bpf::{LoadOptions, MapDefinition};
use std::collections::BTreeMap;
use std::process::Command;

pub use freeport_port::bpf::{AttachMode, Attachment, Map, XdpProgram};

/// Verdict: drop the frame.
pub const XDP_DROP: u32 = 1;
/// Verdict: send the frame back.
pub const XDP_TX: u32 = 3;

/// Header shared by the programs of the bench.
const COMMON: &str = include_str!("../../programs/peer.bpf.h");

/// The loaded programs of one source, with their maps.
#[derive(Debug)]
pub struct XdpObject {
    programs: BTreeMap<String, XdpProgram>,
    maps: BTreeMap<String, Map>,
}

impl XdpObject {
    /// Compiles C source text and loads the programs in sections whose names start with `xdp`.
    /// `entries` overrides the maximum number of entries of maps.
    ///
    /// # Errors
    /// clang is missing or rejects the source, or the kernel rejects a program; the message has the
    /// section and the last lines of the verifier's log.
    pub fn compile(source: &str, entries: &[(&str, usize)]) -> Result<Self> {
        let object =
            Object::parse(&compile(source)?).context("the compiled program cannot be read")?;
        let mut maps = BTreeMap::new();
        // The other maps are variables, which no program of the bench has.
        for it in object.maps.iter().filter(|it| it.initial.is_none()) {
            let given = entries.iter().find(|(name, _)| *name == it.name);
            let definition = MapDefinition {
                name: it.name.clone(),
                kind: it.kind.number(),
                key_bytes: it.key_size,
                value_bytes: it.value_size,
                entries: given.map_or(Ok(it.max_entries), |(_, count)| u32::try_from(*count))?,
                flags: it.flags,
            };
            maps.insert(it.name.clone(), Map::create(definition)?);
        }
        let options =
            LoadOptions { name: "freeport_peer", license: &object.license, has_fragments: false };
        let mut programs = BTreeMap::new();
        for program in object.programs.iter().filter(|it| it.section.starts_with("xdp")) {
            let section = &program.section;
            let instructions = point_to_maps(program, &object, &maps).context(section.clone())?;
            let program = XdpProgram::load(&instructions, options).context(section.clone())?;
            programs.insert(section.clone(), program);
        }
        Ok(Self { programs, maps })
    }

    /// Returns the program of a section.
    ///
    /// # Errors
    /// No program is in that section.
    pub fn program(&self, section: &str) -> Result<&XdpProgram> {
        self.programs.get(section).with_context(|| format!("no program in section {section}"))
    }

    /// Returns a map by its name.
    ///
    /// # Errors
    /// No map has that name.
    pub fn map(&self, name: &str) -> Result<&Map> {
        self.maps.get(name).with_context(|| format!("no map {name}"))
    }
}

/// Returns the bytes of a program's instructions, with file descriptors in place of map numbers.
fn point_to_maps(
    program: &Program,
    object: &Object,
    maps: &BTreeMap<String, Map>,
) -> Result<Vec<u8>> {
    if let Some(refusal) = &program.refusal {
        bail!("{refusal}");
    }
    let mut instructions = program.instructions.clone();
    for (slot, number) in program.maps_used() {
        let name = &object.maps.get(number).context("a map has no definition")?.name;
        ensure!(instructions[slot].source == PSEUDO_MAP, "it needs {name}, which is not a map");
        let map = maps.get(name).context("a map has no definition")?;
        instructions[slot].immediate = map.number() as i32;
    }
    Ok(instructions.into_iter().flat_map(|it| it.to_bytes()).collect())
}

/// Compiles C source text to a BPF object.
fn compile(source: &str) -> Result<Vec<u8>> {
    let folder =
        tempfile::tempdir().context("no temporary folder can be created for the compiler")?;
    let (input, output) = (folder.path().join("p.bpf.c"), folder.path().join("p.o"));
    std::fs::write(&input, source)?;
    std::fs::write(folder.path().join("peer.bpf.h"), COMMON)?;
    let clang = std::env::var("FREEPORT_BPF_CLANG").unwrap_or_else(|_| "clang-19".into());
    // Debian keeps `asm/` in a folder named after the architecture.
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-O2", "-mcpu=v3", "-Wall", "-idirafter", &include, "-c"]);
    let result = command.arg(&input).arg("-o").arg(&output).output();
    let result = result.with_context(|| format!("{clang} cannot be run"))?;
    if !result.status.success() {
        bail!("{clang} rejects the program: {}", String::from_utf8_lossy(&result.stderr).trim());
    }
    Ok(std::fs::read(&output)?)
}

/// Returns whether an error is due to missing rights or a missing system call, not to a faulty
/// program.
#[cfg(test)]
pub(crate) fn is_refused_for_want_of_rights(error: &anyhow::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<std::io::Error>();
    let codes = [Some(libc::EPERM), Some(libc::EACCES), Some(libc::ENOSYS)];
    cause.is_some_and(|cause| codes.contains(&cause.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_testbed::skip;

    const MAC_SWAP: &str = include_str!("../../programs/mac_swap.bpf.c");

    #[test]
    fn the_object_has_a_program_and_its_license() {
        let bytes = compile(MAC_SWAP).expect("clang-19 with its BPF target is needed to build");
        let object = Object::parse(&bytes).expect("clang makes such objects");
        let program = object.programs.iter().find(|it| it.section == "xdp").expect("the program");
        assert!(!program.instructions.is_empty());
        assert_eq!(object.license, "Dual BSD/GPL");
    }

    /// Skipped only where this process may not load programs at all.
    #[test]
    fn the_kernel_swaps_the_addresses_and_sends_the_frame_back() {
        let object = match XdpObject::compile(MAC_SWAP, &[]) {
            Ok(object) => object,
            Err(error) if is_refused_for_want_of_rights(&error) => {
                skip(format_args!("{error:#}"));
                return;
            }
            Err(error) => panic!("{error:#}"),
        };
        let program = object.program("xdp").expect("it is there");
        let frame: Vec<u8> = (0..64).collect();
        let run = program.test_run(&frame, 1).expect("a frame that fits");
        let swapped = [&frame[6..12], &frame[..6], &frame[12..]].concat();
        assert_eq!((run.verdict, run.frame), (XDP_TX, swapped));
        let twice = program.test_run(&frame, 2).expect("a frame that fits");
        assert_eq!(twice.frame, frame, "the second run sees what the first one left");
    }
}
