// SPDX-License-Identifier: Apache-2.0 OR MIT
//! XDP programs: loading them, running them on frames with the kernel's test facility, and
//! attaching them to interfaces.

use super::{BpfError, INSTRUCTION_BYTES, bpf, bpf_descriptor};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_TEST_RUN: libc::c_long = 10;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;
const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// Bytes that the kernel keeps of a program's name, with a 0 at the end.
const NAME_BYTES: usize = 16;
const LOG_BYTES: usize = 64 << 10;
/// Lines of the verifier's log that an error contains.
const TOLD_LINES: usize = 4;

/// A program in the kernel.
#[derive(Debug)]
pub struct XdpProgram {
    file: OwnedFd,
}

/// Properties of a program other than its instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadOptions<'a> {
    /// Name shown by `bpftool`, which keeps at most 15 bytes.
    pub name: &'a str,
    /// The licence, which decides which kernel helpers the program may call.
    pub license: &'a str,
    /// Whether it accepts frames that lie in several buffers, as on interfaces with large frames.
    pub has_fragments: bool,
}

/// Place on an interface where a program runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttachMode {
    /// In the driver, before the kernel builds a socket buffer for the frame.
    Native,
    /// After the driver: works on every interface, and costs one more copy.
    Generic,
}

/// A program attached to an interface, until this value is dropped or the process ends.
#[derive(Debug)]
pub struct Attachment {
    _file: OwnedFd,
}

/// Result of a test run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestRun {
    /// Return value of the program's last run.
    pub verdict: u32,
    /// Mean nanoseconds of a run, as the kernel reports it.
    pub duration_ns: u32,
    /// The frame after the last run.
    pub frame: Vec<u8>,
}

impl XdpProgram {
    /// Loads instructions, as clang encodes them, in which maps are replaced by their numbers.
    ///
    /// # Errors
    /// The last lines of the verifier's log.
    pub fn load(instructions: &[u8], options: LoadOptions<'_>) -> Result<Self, BpfError> {
        let license = [options.license.as_bytes(), &[0]].concat();
        let mut name = [0; NAME_BYTES];
        let kept = options.name.len().min(NAME_BYTES - 1);
        name[..kept].copy_from_slice(&options.name.as_bytes()[..kept]);
        let mut log = vec![0_u8; LOG_BYTES];
        let mut attributes = LoadAttributes {
            program_type: BPF_PROG_TYPE_XDP,
            instruction_count: (instructions.len() / INSTRUCTION_BYTES) as u32,
            instructions: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 1,
            log_bytes: log.len() as u32,
            log: log.as_mut_ptr() as u64,
            kernel_version: 0,
            flags: if options.has_fragments { BPF_F_XDP_HAS_FRAGS } else { 0 },
            name,
        };
        // SAFETY: every pointer in the attributes is to memory that outlives the call, with the
        // length given beside it, and the command returns a descriptor.
        let mut file = unsafe { bpf_descriptor(BPF_PROG_LOAD, &mut attributes) };
        if file.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENOSPC)) {
            // The log buffer was too small for the verifier's log: only its verdict counts.
            (attributes.log_level, attributes.log_bytes, attributes.log) = (0, 0, 0);
            // SAFETY: as above.
            file = unsafe { bpf_descriptor(BPF_PROG_LOAD, &mut attributes) };
        }
        match file {
            Ok(file) => Ok(Self { file }),
            Err(source) => {
                Err(BpfError::Load { name: options.name.into(), log: last_lines(&log), source })
            }
        }
    }

    /// Runs the program `repeat` times on one frame; each run gets the frame as the last one left
    /// it.
    ///
    /// # Errors
    /// The kernel refuses the run, for example for a frame that does not fit a page.
    pub fn test_run(&self, frame: &[u8], repeat: u32) -> Result<TestRun, BpfError> {
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
        unsafe { bpf(BPF_PROG_TEST_RUN, &mut attributes) }.map_err(BpfError::TestRun)?;
        output.truncate(attributes.output_bytes as usize);
        let (verdict, duration_ns) = (attributes.verdict, attributes.duration_ns);
        Ok(TestRun { verdict, duration_ns, frame: output })
    }

    /// Runs the program on `count` frames that all start as this one, and lets the kernel carry out
    /// the program's verdict on each, in the network namespace of the calling thread. The frames
    /// lie in a few hundred buffers, which are reused with the contents that earlier runs left.
    ///
    /// # Errors
    /// The kernel refuses the run.
    pub fn send_live(&self, frame: &[u8], count: u32, batch: u32) -> Result<(), BpfError> {
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
        result.map(drop).map_err(BpfError::TestRun)
    }

    /// Attaches the program to an interface of the thread's network namespace, by its index there.
    ///
    /// # Errors
    /// An interface that does not support this mode, or has a program already.
    pub fn attach(&self, interface: u32, mode: AttachMode) -> Result<Attachment, BpfError> {
        attach(self.file.as_fd(), interface, mode)
    }
}

/// Attaches an XDP program, loaded by any process, to an interface of the thread's network
/// namespace, by its index there.
///
/// # Errors
/// An interface that does not support this mode, or has a program already.
pub fn attach(
    program: BorrowedFd<'_>,
    interface: u32,
    mode: AttachMode,
) -> Result<Attachment, BpfError> {
    let mut attributes = LinkAttributes {
        program: program.as_raw_fd() as u32,
        interface,
        place: BPF_XDP,
        flags: match mode {
            AttachMode::Native => XDP_FLAGS_DRV_MODE,
            AttachMode::Generic => XDP_FLAGS_SKB_MODE,
        },
    };
    // SAFETY: the attributes hold no pointers, and the command returns a descriptor.
    let file = unsafe { bpf_descriptor(BPF_LINK_CREATE, &mut attributes) };
    Ok(Attachment { _file: file.map_err(BpfError::Attach)? })
}

/// Returns the last lines of a log that ends with a 0.
fn last_lines(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("; ")
}

/// Attributes of `BPF_PROG_LOAD`.
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
    name: [u8; NAME_BYTES],
}

/// Attributes of `BPF_PROG_TEST_RUN`.
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

/// Attributes of `BPF_LINK_CREATE`.
#[repr(C)]
struct LinkAttributes {
    program: u32,
    interface: u32,
    place: u32,
    flags: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_testbed::skip;

    #[test]
    fn an_error_has_the_end_of_the_verifiers_log() {
        assert_eq!(last_lines(b"1\n2\n3\n4\n5\n\0\0"), "2; 3; 4; 5");
        assert_eq!(last_lines(b"\0"), "");
    }

    #[test]
    fn a_program_that_does_not_end_is_refused_with_the_reason() {
        // r0 = 0, and no exit after it.
        let instructions = 0xb7_u64.to_le_bytes();
        let options = LoadOptions { name: "endless", license: "GPL", has_fragments: false };
        let error = XdpProgram::load(&instructions, options).expect_err("it has no end");
        let code = error.system().and_then(std::io::Error::raw_os_error);
        if matches!(code, Some(libc::EPERM | libc::ENOSYS)) {
            skip(error);
            return;
        }
        let text = error.to_string();
        assert!(text.contains("endless") && text.contains("last insn"), "{text}");
    }
}
