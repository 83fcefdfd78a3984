// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that do not come from an object: instructions with one map, loaded as they are.

use super::messages;
use crate::Error;
use freeport_ebpf::instruction::{Instruction, PSEUDO_MAP};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Size of the verifier's log, in bytes; the first lines are the ones that matter.
const LOG_BYTES: usize = 64 << 10;
const PACKET_ROOM: usize = 8192;

/// A program in the kernel with an array of one value as map 0.
pub struct RawProgram {
    program: OwnedFd,
    value: MapHandle,
}

impl RawProgram {
    /// Loads instructions. Their wide loads of map 0 refer to a new array with one value of
    /// `value_bytes` bytes.
    /// # Errors
    /// The verifier rejects the program.
    pub fn load(instructions: &[Instruction], value_bytes: u32) -> Result<Self, Error> {
        let failed = |error: libbpf_rs::Error| Error::Load(error.to_string());
        let options = libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let value = MapHandle::create(MapType::Array, Some("value"), 4, value_bytes, 1, &options);
        let value = value.map_err(failed)?;
        let with_map = |slot: &Instruction| {
            let is_map = slot.is_wide() && slot.source == PSEUDO_MAP;
            let immediate = if is_map { value.as_fd().as_raw_fd() } else { slot.immediate };
            Instruction { immediate, ..*slot }.to_bytes()
        };
        let slots: Vec<[u8; 8]> = instructions.iter().map(with_map).collect();
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = libbpf_sys::bpf_prog_load_opts {
            sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as _,
            log_buf: log.as_mut_ptr().cast(),
            log_size: LOG_BYTES as u32,
            ..Default::default()
        };
        // SAFETY: the strings end with 0, the slots have the kernel's layout and the stated count,
        // and the log has the length in the options; all outlive the call.
        let descriptor = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_XDP,
                c"random".as_ptr(),
                c"Dual BSD/GPL".as_ptr(),
                slots.as_ptr().cast(),
                slots.len() as _,
                &raw mut options,
            )
        };
        if descriptor < 0 {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let said = messages::last_lines(&String::from_utf8_lossy(&log[..end]));
            let reason = io::Error::from_raw_os_error(-descriptor);
            return Err(Error::Load(format!("{reason}\n{said}")));
        }
        // SAFETY: the descriptor is open, and this value is its only owner.
        Ok(Self { program: unsafe { OwnedFd::from_raw_fd(descriptor) }, value })
    }

    /// Sets the map's value to zeros and runs the program on a packet. Returns its result, the
    /// packet and the value.
    ///
    /// # Errors
    /// The kernel rejects the packet.
    pub fn run(&self, packet: &[u8]) -> Result<(u32, Vec<u8>, Vec<u8>), Error> {
        let refused = |reason: String| Error::Refused { what: "a program".into(), reason };
        let said = |error: libbpf_rs::Error| refused(error.to_string());
        let empty = vec![0; self.value.value_size() as usize];
        self.value.update(&[0; 4], &empty, MapFlags::ANY).map_err(said)?;
        let mut output = vec![0_u8; PACKET_ROOM];
        let mut options = libbpf_sys::bpf_test_run_opts {
            sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
            data_in: packet.as_ptr().cast(),
            data_size_in: packet.len() as u32,
            data_out: output.as_mut_ptr().cast(),
            data_size_out: output.len() as u32,
            repeat: 1,
            ..Default::default()
        };
        // SAFETY: both buffers have the lengths in the options and outlive the call.
        let result = unsafe {
            libbpf_sys::bpf_prog_test_run_opts(self.program.as_raw_fd(), &raw mut options)
        };
        if result < 0 {
            return Err(refused(io::Error::from_raw_os_error(-result).to_string()));
        }
        output.truncate(options.data_size_out as usize);
        let value = self.value.lookup(&[0; 4], MapFlags::ANY).map_err(said)?;
        Ok((options.retval, output, value.unwrap_or_default()))
    }
}
