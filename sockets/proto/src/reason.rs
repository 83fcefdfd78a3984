// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a connection is not accelerated.

/// Why a connection stays in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u16)]
pub enum Reason {
    /// The other end was not claimed: its process is not preloaded, or has hardly used it.
    PeerPlain = 1,
    /// The other end is on another machine.
    PeerElsewhere = 2,
    /// Both ends are in the same process.
    SameProcess = 3,
    /// A policy forbids it.
    Policy = 4,
    /// Not a stream socket.
    NotStream = 5,
    /// Not a socket of a family that is accelerated.
    Family = 6,
    /// Bytes went past the library, so it does not know where the stream is.
    PastLibrary = 7,
    /// Several processes have it, or may.
    Shared = 8,
    /// A stream of the C library has it.
    Stdio = 9,
    /// Urgent data was used.
    Urgent = 10,
    /// No memory, or no descriptors.
    Resources = 11,
    /// The connection is not established, or no more.
    NotConnected = 12,
    /// No monitor answers.
    NoMonitor = 13,
    /// Too few operations so far.
    Young = 14,
    /// A Unix socket of another namespace of the network than the monitor's.
    Namespace = 15,
    /// It was accelerated, and came back to be handed on, or for what only the kernel can do.
    HandedOn = 16,
    /// It was accelerated, and came back since the rules did not allow it any more.
    Recalled = 17,
    /// Its process asks the kernel through rings (`io_uring`).
    IoUring = 18,
    /// The users of both ends have as much as two may have with each other, or one of them as many
    /// claims as one may have.
    UserLimit = 19,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::PeerPlain,
        Self::PeerElsewhere,
        Self::SameProcess,
        Self::Policy,
        Self::NotStream,
        Self::Family,
        Self::PastLibrary,
        Self::Shared,
        Self::Stdio,
        Self::Urgent,
        Self::Resources,
        Self::NotConnected,
        Self::NoMonitor,
        Self::Young,
        Self::Namespace,
        Self::HandedOn,
        Self::Recalled,
        Self::IoUring,
        Self::UserLimit,
    ];

    /// The one with that number.
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u16 == number)
    }

    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::PeerPlain => "the peer is not preloaded, or has hardly used its end",
            Self::PeerElsewhere => "the peer is on another machine",
            Self::SameProcess => "both ends are in one process",
            Self::Policy => "a policy forbids it",
            Self::NotStream => "not a stream socket",
            Self::Family => "neither a TCP nor a Unix socket",
            Self::PastLibrary => "bytes went past the library",
            Self::Shared => "several processes have it, or may",
            Self::Stdio => "a stream of the C library has it",
            Self::Urgent => "urgent data was used",
            Self::Resources => "no memory or no descriptors for it",
            Self::NotConnected => "not connected",
            Self::NoMonitor => "no monitor answers",
            Self::Young => "too few operations so far",
            Self::Namespace => "a Unix socket of another namespace of the network",
            Self::UserLimit => "its users have as much as they may have",
            Self::HandedOn => "handed on: it is the kernel's again",
            Self::Recalled => {
                "it was accelerated, and came back: the rules do not allow it any more"
            }
            Self::IoUring => "its process uses io_uring, which nobody can see into",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_reasons() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_number(reason as u16), Some(reason));
        }
        assert_eq!(Reason::from_number(0), None);
        assert_eq!(Reason::from_number(20), None);
    }
}
