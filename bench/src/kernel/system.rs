// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of the `bpf` system call that the bench uses, each with its part of `union
//! bpf_attr`; the kernel takes fields behind the given ones for 0.

use super::object::MapDefinition;
use anyhow::{Context, Result, bail, ensure};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
const INSTRUCTION_BYTES: usize = 8;

/// A map of the kernel.
#[derive(Debug)]
pub struct Map {
    file: OwnedFd,
    definition: MapDefinition,
}

/// A program in the kernel.
#[derive(Debug)]
pub struct XdpProgram {
    file: OwnedFd,
}

/// A program on an interface, until this is dropped.
#[derive(Debug)]
pub struct Attachment {
    _file: OwnedFd,
}

/// What a test run gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestRun {
    /// What the program returned, for the last run.
    pub verdict: u32,
    /// Mean nanoseconds of a run, as the kernel reports it.
    pub duration_ns: u32,
    /// The frame after the last run.
    pub frame: Vec<u8>,
}

impl Map {
    /// Makes an empty map.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn create(definition: MapDefinition) -> Result<Self> {
        let mut attributes = MapAttributes {
            kind: definition.kind,
            key_bytes: definition.key_bytes,
            value_bytes: definition.value_bytes,
            entries: definition.entries,
            flags: definition.flags,
        };
        // SAFETY: the attributes hold no pointers.
        let file = unsafe { bpf(BPF_MAP_CREATE, &mut attributes) };
        let file = file.with_context(|| format!("the kernel does not make map {definition:?}"))?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(file) }, definition })
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// A key or value of another length, or what the kernel refuses, such as a full map.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(key, value.len())?;
        let mut attributes = self.entry(key, value.as_ptr() as u64);
        // SAFETY: key and value have the lengths that the map has, and outlive the call.
        let result = unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attributes) };
        result.map(drop).with_context(|| format!("map {}", self.definition.name))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A key of another length, or one that is not there.
    pub fn lookup(&self, key: &[u8]) -> Result<Vec<u8>> {
        let mut value = vec![0; self.definition.value_bytes as usize];
        self.check(key, value.len())?;
        let mut attributes = self.entry(key, value.as_mut_ptr() as u64);
        // SAFETY: as above; the kernel writes a value to memory that is as long.
        let result = unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes) };
        result.with_context(|| format!("map {}", self.definition.name))?;
        Ok(value)
    }

    fn check(&self, key: &[u8], value_bytes: usize) -> Result<()> {
        let lengths = (self.definition.key_bytes as usize, self.definition.value_bytes as usize);
        let given = (key.len(), value_bytes);
        ensure!(given == lengths, "map {} has {lengths:?}, not {given:?}", self.definition.name);
        Ok(())
    }

    fn entry(&self, key: &[u8], value: u64) -> EntryAttributes {
        let map = self.file.as_raw_fd() as u32;
        EntryAttributes { map, spare: 0, key: key.as_ptr() as u64, value, flags: 0 }
    }

    /// What a program is given in the place of the map's address.
    pub(super) fn number(&self) -> u32 {
        self.file.as_raw_fd() as u32
    }
}

impl XdpProgram {
    /// Loads instructions, as clang encodes them, in which maps are replaced by their numbers.
    ///
    /// # Errors
    /// What the verifier said last.
    pub(super) fn load(instructions: &[u8], license: &[u8]) -> Result<Self> {
        if !license.ends_with(&[0]) {
            bail!("the license is not a C string");
        }
        let mut log = vec![0_u8; 64 << 10];
        let mut attributes = LoadAttributes {
            program_type: BPF_PROG_TYPE_XDP,
            instruction_count: (instructions.len() / INSTRUCTION_BYTES) as u32,
            instructions: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 1,
            log_bytes: log.len() as u32,
            log: log.as_mut_ptr() as u64,
            kernel_version: 0,
            flags: 0,
            name: *b"freeport_peer\0\0\0",
        };
        // SAFETY: every pointer in the attributes is to memory that outlives the call, with the
        // length given beside it.
        let mut file = unsafe { bpf(BPF_PROG_LOAD, &mut attributes) };
        if file.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOSPC)) {
            // The log was too short for what the verifier has to say: only its verdict counts.
            (attributes.log_level, attributes.log_bytes, attributes.log) = (0, 0, 0);
            // SAFETY: as above.
            file = unsafe { bpf(BPF_PROG_LOAD, &mut attributes) };
        }
        let file = file.with_context(|| {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let text = String::from_utf8_lossy(&log[..end]);
            let lines: Vec<&str> = text.lines().rev().take(4).collect();
            let lines: Vec<&str> = lines.into_iter().rev().collect();
            format!("the kernel does not load the program {}", lines.join("; "))
        })?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
        Ok(Self { file: unsafe { OwnedFd::from_raw_fd(file) } })
    }

    /// Runs the program `repeat` times on one frame, each time as the last run left it.
    ///
    /// # Errors
    /// What the kernel refuses, such as a frame that does not fit a page.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestRun> {
        let mut output = vec![0_u8; frame.len() + 256];
        let mut attributes = TestRunAttributes {
            program: self.file.as_raw_fd() as u32,
            input_bytes: frame.len() as u32,
            output_bytes: output.len() as u32,
            input: frame.as_ptr() as u64,
            output: output.as_mut_ptr() as u64,
            repeat,
            ..TestRunAttributes::default()
        };
        // SAFETY: as above; the kernel writes at most `output_bytes` bytes to `output`.
        unsafe { bpf(BPF_PROG_TEST_RUN, &mut attributes) }.context("the kernel's test run")?;
        output.truncate(attributes.output_bytes as usize);
        let (verdict, duration_ns) = (attributes.verdict, attributes.duration_ns);
        Ok(TestRun { verdict, duration_ns, frame: output })
    }

    /// Runs the program on `count` frames that all start as this one, and has the kernel do with
    /// each what the program says, in the network namespace of the calling thread. The frames lie
    /// in a few hundred buffers that come back as others left them.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn send_live(&self, frame: &[u8], count: u32, batch: u32) -> Result<()> {
        let mut attributes = TestRunAttributes {
            program: self.file.as_raw_fd() as u32,
            input_bytes: frame.len() as u32,
            input: frame.as_ptr() as u64,
            repeat: count,
            flags: BPF_F_TEST_XDP_LIVE_FRAMES,
            batch,
            ..TestRunAttributes::default()
        };
        // SAFETY: as above; there is no output.
        let result = unsafe { bpf(BPF_PROG_TEST_RUN, &mut attributes) };
        result.map(drop).context("the kernel does not send live frames")
    }

    /// Puts the program on an interface of the thread's network namespace, in the driver.
    ///
    /// # Errors
    /// An interface that cannot do that, or has a program already.
    pub fn attach(&self, interface: u32) -> Result<Attachment> {
        let mut attributes = LinkAttributes {
            program: self.file.as_raw_fd() as u32,
            interface,
            place: BPF_XDP,
            flags: XDP_FLAGS_DRV_MODE,
        };
        // SAFETY: the attributes hold no pointers.
        let file = unsafe { bpf(BPF_LINK_CREATE, &mut attributes) };
        let file = file.context("the kernel does not put the program on the interface")?;
        // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
        Ok(Attachment { _file: unsafe { OwnedFd::from_raw_fd(file) } })
    }
}

/// For `BPF_MAP_CREATE`.
#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// For `BPF_MAP_LOOKUP_ELEM` and `BPF_MAP_UPDATE_ELEM`.
#[repr(C)]
struct EntryAttributes {
    map: u32,
    spare: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// For `BPF_PROG_LOAD`.
#[repr(C)]
struct LoadAttributes {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
}

/// For `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct TestRunAttributes {
    program: u32,
    verdict: u32,
    input_bytes: u32,
    output_bytes: u32,
    input: u64,
    output: u64,
    repeat: u32,
    duration_ns: u32,
    context_in_bytes: u32,
    context_out_bytes: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    processor: u32,
    batch: u32,
    spare: u32,
}

/// For `BPF_LINK_CREATE`.
#[repr(C)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    place: u32,
    flags: u32,
}

/// The `bpf` system call.
///
/// # Safety
/// `attributes` is what the command takes, and its pointers are valid for their lengths.
unsafe fn bpf<T>(command: libc::c_long, attributes: &mut T) -> std::io::Result<i32> {
    let size = size_of::<T>();
    // SAFETY: the caller vouches for what is behind the pointers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size) };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(result as i32) }
}
