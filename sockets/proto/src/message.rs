// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Messages between a process and the monitor, over a Unix socket that preserves message boundaries
//! (`SOCK_SEQPACKET`).
//!
//! Every message has [`BYTES`] bytes, in native byte order: a kind, then its fields at fixed
//! offsets. Claims and passes carry the socket as ancillary data; a pairing carries a slab that the
//! process does not have yet. The monitor takes the identity of a process from the kernel
//! (`SO_PEERCRED`), never from the message.

use crate::Reason;
use crate::slab::{SLOTS, Side};

/// Size of a message in bytes.
pub const BYTES: usize = 48;

/// Time in milliseconds that the monitor waits for the other end to be claimed, while it holds a
/// copy of the socket. The kernel closes a socket only once the monitor closes its copy too: when
/// the process has exited or [withdraws](Request::Withdraw) its claim.
pub const CLAIM_MILLISECONDS: u64 = 500;

/// Maximum number of unanswered claims of a process; twice as many answers may wait to be read.
/// Claims beyond that are refused, and a member that reads too slowly is disconnected.
pub const CLAIMS_MAX: usize = 1024;

/// An encoded message.
pub type Bytes = [u8; BYTES];

/// A request of a process to the monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// The first message of each connection.
    Hello {
        /// [`VERSION`](crate::VERSION) of the sender.
        version: u32,
        /// Whether `membarrier` can make the process execute a memory barrier.
        membarrier: bool,
    },
    /// Requests acceleration of one end of a connection. Carries the socket.
    Claim {
        /// The process's name for the end; answers repeat it.
        token: u64,
        /// Number of the descriptor, for diagnostics.
        descriptor: i32,
        /// Whether the process received the descriptor from another process: it was open at its
        /// start, or arrived in a message. Other processes may then hold it too, and the claim is
        /// refused with [`Reason::Shared`] unless the monitor knows that none does. A later claim
        /// may succeed.
        inherited: bool,
    },
    /// Announces that one more process may hold a socket from now on. Sent before that process can
    /// use it, with the socket, which is in the kernel and is never claimed again by the sender.
    /// Not answered.
    Pass {
        /// The process's name for the socket.
        token: u64,
        /// Whether no other process holds it by a fork of the sender.
        alone: bool,
        /// Whether the sender itself received it from another process.
        inherited: bool,
    },
    /// Announces that neither the process nor its forked children hold a descriptor of a socket it
    /// has passed. Exit and exec need no such message: they close the connection to the monitor.
    /// Not answered.
    Part {
        /// Token of the [`Pass`](Request::Pass).
        token: u64,
    },
    /// Reports that a socket, or every socket of the process, stays in the kernel, so that users
    /// can ask why. Not answered.
    Keep {
        /// Inode of the socket; 0 means all.
        inode: u64,
        /// Reason for staying in the kernel.
        reason: Reason,
    },
    /// Withdraws a claim that has no answer yet, before the end is closed. Answered by a refusal.
    Withdraw {
        /// Token of the claim.
        token: u64,
    },
    /// Announces a fork: another process will have the slabs mapped too, so no further slots of
    /// them are assigned.
    Fork,
    /// Releases a slot.
    Release {
        /// Number of the slab.
        slab: u32,
        /// Number of the slot in it.
        slot: u32,
    },
}

/// A message of the monitor to a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Answers a hello.
    Welcome {
        /// [`VERSION`](crate::VERSION) of the monitor. If it differs from the process's, no message
        /// follows.
        version: u32,
    },
    /// Reports that both ends are claimed. Carries the slab and its [notices](crate::slab::notice),
    /// unless the process already has them.
    Paired {
        /// Token of the claim.
        token: u64,
        /// Number of the slab, from now on.
        slab: u32,
        /// Number of the slot in it.
        slot: u32,
        /// Side of the process that receives the message.
        side: Side,
        /// Whether both sides execute a memory fence with each operation, because one of them
        /// cannot use `membarrier`.
        fenced: bool,
        /// PID of the peer, for diagnostics.
        peer: u32,
        /// Cookie of the peer's socket (`SO_COOKIE`), which is unique.
        cookie: u64,
    },
    /// Reports that the other process of a slab has exited. No slot of the slab is in use, and none
    /// will be.
    Over {
        /// Number of the slab.
        slab: u32,
    },
    /// Refuses a claim: the connection stays in the kernel, for now.
    Refused {
        /// Token of the claim.
        token: u64,
        /// Reason for the refusal.
        reason: Reason,
    },
}

impl Request {
    /// Encodes the request.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Writer::default();
        match *self {
            Self::Hello { version, membarrier } => {
                bytes.kind(1).u32(16, version).u32(20, u32::from(membarrier))
            }
            Self::Claim { token, descriptor, inherited } => {
                bytes.kind(2).u64(8, token).u32(16, descriptor.cast_unsigned());
                bytes.u32(20, u32::from(inherited))
            }
            Self::Release { slab, slot } => bytes.kind(3).u32(16, slab).u32(20, slot),
            Self::Withdraw { token } => bytes.kind(4).u64(8, token),
            Self::Pass { token, alone, inherited } => {
                bytes.kind(5).u64(8, token).u32(16, u32::from(alone));
                bytes.u32(20, u32::from(inherited))
            }
            Self::Part { token } => bytes.kind(6).u64(8, token),
            Self::Fork => bytes.kind(8),
            Self::Keep { inode, reason } => {
                bytes.kind(7).u64(8, inode).u32(16, u32::from(reason as u16))
            }
        };
        bytes.0
    }

    /// Decodes a request; `None` if the bytes are no valid request.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = Reader::new(bytes)?;
        Some(match bytes.u64(0)? {
            1 => Self::Hello { version: bytes.u32(16)?, membarrier: bytes.flag(20)? },
            2 => Self::Claim {
                token: bytes.u64(8)?,
                descriptor: bytes.u32(16)?.cast_signed(),
                inherited: bytes.flag(20)?,
            },
            3 => Self::Release { slab: bytes.u32(16)?, slot: bytes.slot(20)? },
            4 => Self::Withdraw { token: bytes.u64(8)? },
            5 => Self::Pass {
                token: bytes.u64(8)?,
                alone: bytes.flag(16)?,
                inherited: bytes.flag(20)?,
            },
            6 => Self::Part { token: bytes.u64(8)? },
            7 => Self::Keep { inode: bytes.u64(8)?, reason: bytes.reason(16)? },
            8 => Self::Fork,
            _ => return None,
        })
    }
}

impl Reply {
    /// Encodes the reply.
    pub fn encode(&self) -> Bytes {
        let mut bytes = Writer::default();
        match *self {
            Self::Welcome { version } => bytes.kind(1).u32(16, version),
            Self::Paired { token, slab, slot, side, fenced, peer, cookie } => {
                bytes.kind(2).u64(8, token).u32(16, slab).u32(20, slot);
                bytes.u32(24, u32::from(side as u8)).u32(28, u32::from(fenced)).u32(32, peer);
                bytes.u64(40, cookie)
            }
            Self::Refused { token, reason } => {
                bytes.kind(3).u64(8, token).u32(16, u32::from(reason as u16))
            }
            Self::Over { slab } => bytes.kind(4).u32(16, slab),
        };
        bytes.0
    }

    /// Decodes a reply; `None` if the bytes are no valid reply.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = Reader::new(bytes)?;
        Some(match bytes.u64(0)? {
            1 => Self::Welcome { version: bytes.u32(16)? },
            2 => Self::Paired {
                token: bytes.u64(8)?,
                slab: bytes.u32(16)?,
                slot: bytes.slot(20)?,
                side: Side::from_number(u8::try_from(bytes.u32(24)?).ok()?)?,
                fenced: bytes.flag(28)?,
                peer: bytes.u32(32)?,
                cookie: bytes.u64(40)?,
            },
            3 => Self::Refused { token: bytes.u64(8)?, reason: bytes.reason(16)? },
            4 => Self::Over { slab: bytes.u32(16)? },
            _ => return None,
        })
    }
}

/// A message being written. Fields beyond its end are ignored: all offsets are constants.
struct Writer(Bytes);

impl Default for Writer {
    fn default() -> Self {
        Self([0; BYTES])
    }
}

impl Writer {
    fn kind(&mut self, kind: u64) -> &mut Self {
        self.u64(0, kind)
    }

    fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.put(at, &value.to_ne_bytes())
    }

    fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.put(at, &value.to_ne_bytes())
    }

    fn put(&mut self, at: usize, value: &[u8]) -> &mut Self {
        if let Some(place) = self.0.get_mut(at..at + value.len()) {
            place.copy_from_slice(value);
        }
        self
    }
}

/// A message being read.
struct Reader<'a>(&'a Bytes);

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    fn u64(&self, at: usize) -> Option<u64> {
        self.0.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        self.0.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes)
    }

    fn flag(&self, at: usize) -> Option<bool> {
        match self.u32(at)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn reason(&self, at: usize) -> Option<Reason> {
        Reason::from_number(u16::try_from(self.u32(at)?).ok()?)
    }

    fn slot(&self, at: usize) -> Option<u32> {
        self.u32(at).filter(|slot| *slot < SLOTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTS: [Request; 10] = [
        Request::Hello { version: 7, membarrier: true },
        Request::Claim { token: u64::MAX - 1, descriptor: -3, inherited: false },
        Request::Release { slab: 9, slot: 63 },
        Request::Withdraw { token: 3 },
        Request::Claim { token: 4, descriptor: 5, inherited: true },
        Request::Pass { token: u64::MAX, alone: true, inherited: false },
        Request::Pass { token: 0, alone: false, inherited: true },
        Request::Part { token: 6 },
        Request::Keep { inode: 14, reason: Reason::Confined },
        Request::Fork,
    ];

    fn replies() -> [Reply; 4] {
        let (side, reason) = (Side::Second, Reason::SameProcess);
        [
            Reply::Welcome { version: 8 },
            Reply::Paired { token: 5, slab: 6, slot: 7, side, fenced: true, peer: 11, cookie: 15 },
            Reply::Refused { token: 12, reason },
            Reply::Over { slab: 13 },
        ]
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for request in REQUESTS {
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
        for reply in replies() {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [REQUESTS[2].encode(), replies()[1].encode()] {
            assert_eq!(Request::decode(&bytes[1..]), None);
            assert_eq!(Reply::decode(&bytes[..BYTES - 1]), None);
        }
        for kind in [0, 9, u64::MAX] {
            let bytes = Writer::default().kind(kind).0;
            assert_eq!((Request::decode(&bytes), Reply::decode(&bytes)), (None, None));
        }
        for place in [16, 20] {
            let mut bytes = REQUESTS[5].encode();
            bytes[place] = 2;
            assert_eq!(Request::decode(&bytes), None, "neither true nor false");
        }
        let bad_slot = Request::Release { slab: 0, slot: SLOTS };
        assert_eq!(Request::decode(&bad_slot.encode()), None);
        let mut bytes = replies()[1].encode();
        bytes[24] = 2;
        assert_eq!(Reply::decode(&bytes), None, "no third side");
    }
}
