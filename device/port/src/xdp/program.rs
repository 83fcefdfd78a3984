// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The program on an interface with an AF_XDP port: a frame goes to the socket of the queue it
//! arrived in, or, if there is none, to the network stack. It is short enough to be written down as
//! instructions, so that no compiler is needed at run time.

use crate::bpf::{
    AttachMode, Attachment, BpfError, INSTRUCTION_BYTES, LoadOptions, Map, MapDefinition,
    XdpProgram,
};
use std::os::fd::{AsRawFd, BorrowedFd};

const BPF_MAP_TYPE_XSKMAP: u32 = 17;
/// `bpf_redirect_map`, number 51 of the kernel's helpers.
const REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
/// Offset of `rx_queue_index` in `struct xdp_md`.
const QUEUE_OFFSET: i16 = 16;
/// Source register of a 64-bit load whose number is a map's: `BPF_PSEUDO_MAP_FD`.
const OF_MAP: u8 = 1;

/// The program on an interface, with the sockets it sends frames to.
#[derive(Debug)]
pub(super) struct Entry {
    mode: AttachMode,
    sockets: Map,
    // The program is detached from the interface before the map is closed.
    _attachment: Attachment,
}

impl Entry {
    /// Attaches the program to an interface of the thread's namespace, in the driver or, if that is
    /// refused and `may_be_generic`, after it; queues up to `queues` may have a socket.
    ///
    /// # Errors
    /// The kernel refuses the map, the program or its attachment.
    pub fn open(interface: u32, queues: u32, may_be_generic: bool) -> Result<Self, BpfError> {
        let sockets = Map::create(MapDefinition {
            name: "xsks".into(),
            kind: BPF_MAP_TYPE_XSKMAP,
            key_bytes: 4,
            value_bytes: 4,
            entries: queues.max(1),
            flags: 0,
        })?;
        let options =
            LoadOptions { name: "freeport_port", license: "Dual MIT/GPL", has_fragments: true };
        let program = match XdpProgram::load(&instructions(sockets.number()), options) {
            // A kernel without support for frames in fragments (before 5.18).
            Err(error) if is_one_of(&error, &[libc::EINVAL]) => {
                let options = LoadOptions { has_fragments: false, ..options };
                XdpProgram::load(&instructions(sockets.number()), options)?
            }
            program => program?,
        };
        let refusals = [libc::EOPNOTSUPP, libc::EINVAL, libc::ERANGE, libc::ENOSPC, libc::ENOMEM];
        let (mode, attachment) = match program.attach(interface, AttachMode::Native) {
            Err(error) if may_be_generic && is_one_of(&error, &refusals) => {
                (AttachMode::Generic, program.attach(interface, AttachMode::Generic)?)
            }
            attachment => (AttachMode::Native, attachment?),
        };
        Ok(Self { mode, sockets, _attachment: attachment })
    }

    /// Returns where on the interface the program runs.
    pub fn mode(&self) -> AttachMode {
        self.mode
    }

    /// Redirects the frames of a queue to a socket.
    ///
    /// # Errors
    /// The kernel refuses the socket.
    pub fn join(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), BpfError> {
        self.sockets.update(&queue.to_le_bytes(), &socket.as_raw_fd().to_le_bytes())
    }

    /// Returns the frames of a queue to the network stack.
    pub fn leave(&self, queue: u32) {
        // A missing entry has already been removed: the kernel removes sockets that are closed.
        drop(self.sockets.delete(&queue.to_le_bytes()));
    }
}

fn is_one_of(error: &BpfError, codes: &[i32]) -> bool {
    let code = error.system().and_then(std::io::Error::raw_os_error);
    code.is_some_and(|code| codes.contains(&code))
}

/// `return bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS)`
fn instructions(sockets: u32) -> Vec<u8> {
    let code = [
        // r2 = *(u32 *)(r1 + QUEUE_OFFSET)
        instruction(0x61, 2, 1, QUEUE_OFFSET, 0),
        // r1 = the map, in two instructions
        instruction(0x18, 1, OF_MAP, 0, sockets as i32),
        instruction(0x00, 0, 0, 0, 0),
        // r3 = XDP_PASS, which is returned if the queue has no socket
        instruction(0xb7, 3, 0, 0, XDP_PASS),
        // r0 = bpf_redirect_map(r1, r2, r3)
        instruction(0x85, 0, 0, 0, REDIRECT_MAP),
        // return r0
        instruction(0x95, 0, 0, 0, 0),
    ];
    code.concat()
}

/// Encodes an instruction for the kernel (RFC 9669, 3).
fn instruction(
    code: u8,
    target: u8,
    source: u8,
    offset: i16,
    immediate: i32,
) -> [u8; INSTRUCTION_BYTES] {
    let [offset_low, offset_high] = offset.to_le_bytes();
    let [first, second, third, fourth] = immediate.to_le_bytes();
    [code, source << 4 | target, offset_low, offset_high, first, second, third, fourth]
}
