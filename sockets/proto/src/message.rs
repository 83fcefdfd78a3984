// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a process and the monitor tell each other, over a Unix socket that keeps messages apart
//! (`SOCK_SEQPACKET`).
//!
//! A message has always [`BYTES`], in the byte order of the machine: a kind, and what belongs to
//! it at fixed places. A claim comes with the socket, as does what is said of passing it on; a
//! pairing comes with a slab that the process does not have yet. The monitor takes who a process is
//! from the kernel (`SO_PEERCRED`), never from what it says.

use crate::Reason;
use crate::slab::{SLOTS, Side};

/// The bytes of each message.
pub const BYTES: usize = 48;

/// How long the monitor waits for the other end to be claimed, in milliseconds, while it has the
/// socket. The kernel closes a socket only when the monitor does so as well: when the process is
/// gone, or [withdraws](Request::Withdraw) its claim.
pub const CLAIM_MILLISECONDS: u64 = 500;

/// How many claims of a process may wait for an answer, and how many answers may wait to be read:
/// twice as many. What is beyond is refused, and who reads too little is dropped.
pub const CLAIMS_MAX: usize = 1024;

/// A message in its bytes.
pub type Bytes = [u8; BYTES];

/// What a process tells the monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// The first message of each connection.
    Hello {
        /// [`VERSION`](crate::VERSION) of who says it.
        version: u32,
        /// Whether it can be made to pass a barrier by `membarrier`.
        membarrier: bool,
    },
    /// Wants an end of a connection accelerated. With the socket.
    Claim {
        /// What the process calls it: the answers have it.
        token: u64,
        /// The number of the descriptor, for people.
        descriptor: i32,
        /// Whether the process has it from elsewhere: it was there at its start, or came in a
        /// message. Then others may have it as well, and it is refused with
        /// [`Reason::Shared`] unless the monitor knows that they do not. That may change.
        inherited: bool,
    },
    /// Another process may have a socket from now on: one more than before. Said before it can, and
    /// with the socket, which is in the kernel, and never claimed again by who says this. Not
    /// answered.
    Pass {
        /// What the process calls it.
        token: u64,
        /// Whether no other process has it that came from the sender by forks.
        alone: bool,
        /// Whether the sender has it from elsewhere itself.
        inherited: bool,
    },
    /// Has no descriptor any more of what it has passed, nor has what came from it by forks. Who
    /// ends need not say so, nor who becomes another program: that hangs up. Not answered.
    Part {
        /// From the message before.
        token: u64,
    },
    /// Keeps a socket in the kernel, or all of its process: for people, who may ask why. Not
    /// answered.
    Keep {
        /// The inode of the socket; 0: all.
        inode: u64,
        /// Why.
        reason: Reason,
    },
    /// Is about to close what it has claimed, and has no answer yet. Answered by a refusal.
    Withdraw {
        /// From the claim.
        token: u64,
    },
    /// Forks: another process has its slabs mapped as well. So it takes no further slots in them.
    Fork,
    /// Has no more to do with a slot.
    Release {
        /// The slab.
        slab: u32,
        /// The slot in it.
        slot: u32,
    },
}

/// What the monitor tells a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Answers a hello.
    Welcome {
        /// [`VERSION`](crate::VERSION) of the monitor. If it is another one, it says no more.
        version: u32,
    },
    /// Both ends are claimed. With the slab and its [notices](crate::slab::notice), if the process
    /// was not given those before.
    Paired {
        /// From the claim.
        token: u64,
        /// What the slab is called, from now on.
        slab: u32,
        /// The slot in it.
        slot: u32,
        /// Which side the process is.
        side: Side,
        /// Whether both sides pass a fence with each operation, because one of them cannot use
        /// `membarrier`.
        fenced: bool,
        /// The other process, for people.
        peer: u32,
        /// What the kernel calls the other end (`SO_COOKIE`), which is no other socket's name.
        cookie: u64,
    },
    /// The other process of a slab is gone, and no slot of it is used any more: nobody will.
    Over {
        /// The slab.
        slab: u32,
    },
    /// It stays in the kernel, for now.
    Refused {
        /// From the claim.
        token: u64,
        /// Why.
        reason: Reason,
    },
}

impl Request {
    /// As bytes.
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

    /// From bytes; `None` if there is no such message.
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
    /// As bytes.
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

    /// From bytes; `None` if there is no such message.
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

/// A message that is being written. What does not fit is left out: the places are constants.
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

/// A message that is being read.
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
