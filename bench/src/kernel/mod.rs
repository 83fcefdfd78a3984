// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's XDP as a peer: a program in C, compiled by clang for BPF, loaded with the `bpf`
//! system call and run by the kernel's own test facility.
//!
//! `BPF_PROG_TEST_RUN` runs the translated program on one frame a given number of times and reports
//! the mean time of a run in whole nanoseconds. That figure has the program and the kernel's call
//! of it, on a frame that is in the nearest cache. It has no driver, no buffers, no queues: it is
//! the kernel at its best, and a real interface is slower.

mod object;

use anyhow::{Context, Result, bail};
use object::Object;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// What the program says to do with a frame.
pub const XDP_TX: u32 = 3;

/// A loaded XDP program.
#[derive(Debug)]
pub struct XdpProgram {
    file: OwnedFd,
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

impl XdpProgram {
    /// Compiles C source text and loads the program in its section `xdp`.
    ///
    /// # Errors
    /// No clang, a program it refuses, or one that the kernel refuses: the message says which and
    /// has the verifier's last lines.
    pub fn compile(source: &str) -> Result<Self> {
        let bytes = compile(source)?;
        let object = Object::parse(&bytes).context("the compiled program")?;
        Self::load(object.section("xdp")?, object.section("license")?)
    }

    /// Loads instructions, as clang encodes them.
    fn load(instructions: &[u8], license: &[u8]) -> Result<Self> {
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
            name: *b"mac_swap\0\0\0\0\0\0\0\0",
        };
        // SAFETY: every pointer in the attributes is to memory that outlives the call, with the
        // length given beside it.
        let file = unsafe { bpf(BPF_PROG_LOAD, &mut attributes) };
        let file = file.with_context(|| {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            let text = String::from_utf8_lossy(&log[..end]);
            let lines: Vec<&str> = text.lines().rev().take(3).collect();
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
}

/// Compiles C source text to an object for BPF.
fn compile(source: &str) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir().context("no folder for the compiler")?;
    let (input, output) = (folder.path().join("p.bpf.c"), folder.path().join("p.o"));
    std::fs::write(&input, source)?;
    let clang = std::env::var("FREEPORT_BPF_CLANG").unwrap_or_else(|_| "clang-19".into());
    // Debian keeps `asm/` in the folder of the machine's architecture.
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(&clang);
    command.args(["-target", "bpf", "-O2", "-mcpu=v3", "-Wall", "-idirafter", &include, "-c"]);
    let result = command.arg(&input).arg("-o").arg(&output).output();
    let result = result.with_context(|| format!("{clang} cannot be run"))?;
    if !result.status.success() {
        bail!("{clang} refuses the program: {}", String::from_utf8_lossy(&result.stderr).trim());
    }
    Ok(std::fs::read(&output)?)
}

const INSTRUCTION_BYTES: usize = 8;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_PROG_TYPE_XDP: u32 = 6;

/// The first fields of `union bpf_attr` for `BPF_PROG_LOAD`; the kernel takes the rest for 0.
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

/// The fields of `union bpf_attr` for `BPF_PROG_TEST_RUN`.
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

#[cfg(test)]
mod tests {
    use super::*;

    const MAC_SWAP: &str = include_str!("../../../programs/mac_swap.bpf.c");

    #[test]
    fn the_program_compiles_to_whole_instructions() {
        let bytes = compile(MAC_SWAP).expect("clang-19 with its BPF target is needed to build");
        let object = Object::parse(&bytes).expect("clang makes such objects");
        let instructions = object.section("xdp").expect("the program").len();
        assert!(instructions > 0 && instructions.is_multiple_of(INSTRUCTION_BYTES));
        assert_eq!(object.section("license").expect("the license"), b"Dual BSD/GPL\0");
    }

    /// Skipped with a message only where this process may not load programs at all.
    #[test]
    fn the_kernel_swaps_the_addresses_and_sends_the_frame_back() {
        let program = match XdpProgram::compile(MAC_SWAP) {
            Ok(program) => program,
            Err(error) if is_refused_for_want_of_rights(&error) => {
                eprintln!("skipped: {error:#}");
                return;
            }
            Err(error) => panic!("{error:#}"),
        };
        let frame: Vec<u8> = (0..64).collect();
        let run = program.test_run(&frame, 1).expect("a frame that fits");
        let swapped = [&frame[6..12], &frame[..6], &frame[12..]].concat();
        assert_eq!((run.verdict, run.frame), (XDP_TX, swapped));
        let twice = program.test_run(&frame, 2).expect("a frame that fits");
        assert_eq!(twice.frame, frame, "the second run sees what the first one left");
    }

    fn is_refused_for_want_of_rights(error: &anyhow::Error) -> bool {
        let cause = error.root_cause().downcast_ref::<std::io::Error>();
        let codes = [Some(libc::EPERM), Some(libc::EACCES), Some(libc::ENOSYS)];
        cause.is_some_and(|cause| codes.contains(&cause.raw_os_error()))
    }
}
